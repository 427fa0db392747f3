"""Your own environment: a boat that must reach a buoy, with asymmetric action bounds and a Dict observation.

    python examples/custom_env.py            trains for a few hundred steps, saves, loads, and compares predictions

Any gymnasium.Env with a bounded one-dimensional Box of actions works; flat Dict observations are put in a row.
"""

import sys

import gymnasium
import numpy as np
from gymnasium import spaces

import s2ac


class Boat(gymnasium.Env):
    action_space = spaces.Box(np.array([-0.2, -1.0], np.float32), np.array([1.0, 1.0], np.float32))  # throttle, rudder
    observation_space = spaces.Dict(
        {"position": spaces.Box(-10, 10, (2,)), "heading": spaces.Box(-1, 1, (2,)), "speed": spaces.Box(-1, 2, (1,))}
    )

    def observe(self):
        heading = np.array([np.cos(self.angle), np.sin(self.angle)], np.float32)
        return {"position": self.position.copy(), "heading": heading, "speed": np.array([self.speed], np.float32)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position = self.np_random.uniform(-3, 3, 2).astype(np.float32)
        self.angle, self.speed, self.time = self.np_random.uniform(-np.pi, np.pi), 0.0, 0
        return self.observe(), {}

    def step(self, action):
        self.speed = 0.8 * self.speed + 0.3 * float(action[0])
        self.angle += 0.4 * float(action[1])
        course = np.array([np.cos(self.angle), np.sin(self.angle)])
        self.position = np.clip(self.position + self.speed * course, -10, 10).astype(np.float32)
        self.time += 1
        distance = float(np.linalg.norm(self.position))
        return self.observe(), -distance, distance < 0.3, self.time >= 40, {}


def main(directory="runs/boat", steps=600, **fields):
    small = {"hidden": (32, 32), "num_particles": 4, "batch_size": 32, "warmup_steps": 100, "log_every": 200, **fields}
    agent = s2ac.Agent(Boat, algo="s2ac", directory=f"{directory}/run", episodes=5, **small)
    agent.learn(steps, callback=lambda progress: progress.env_step < 100_000)  # False would end it early
    print("return:", round(agent.evaluate(episodes=5).mean, 1))
    agent.save(f"{directory}/agent")

    loaded = s2ac.load(f"{directory}/agent")  # predicts without the environment; learning needs load(..., env=Boat)
    observation, _ = Boat().reset(seed=0)
    actions = [one.predict(observation, "argmax", draw=0) for one in (agent, loaded)]
    assert np.array_equal(*actions), actions
    print("throttle and rudder:", actions[0], "entropy:", float(loaded.sample(observation, num=64).entropy))


if __name__ == "__main__":
    main(*sys.argv[1:2])
