"""A Gymnasium environment that does what the careless do, and a loop on it."""

import gymnasium
import numpy as np
from gymnasium import spaces

from s2ac.settings import RunConfig
from s2ac.training.host import HostLoop


class Awkward(gymnasium.Env):
    """Reuses one float64 array for its observations, gives int rewards, and ends by itself on the clock's last step."""

    action_space = spaces.Box(np.array([-1.0, 0.0]), np.array([3.0, 0.5]), dtype=np.float64)
    observation_space = spaces.Box(-1e6, 1e6, (2,), np.float64)

    def __init__(self):
        self.seen, self.array = [], np.zeros(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.array[:] = self.np_random.uniform(1, 2), 0
        return self.array, {}

    def step(self, action):
        self.seen.append(action.copy())
        self.array[1] += 1
        last = bool(self.array[1] >= 4)
        return self.array, 7, last, last, {}


def awkward_loop(make_algorithm, env=Awkward, **config):
    config = {"num_envs": 2, "batch_size": 8, "capacity": 2000, "warmup_steps": 1200, **config}
    return HostLoop(env, "Awkward", make_algorithm, [0], RunConfig(**config))
