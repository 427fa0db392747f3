"""An exported policy on a robot: numpy and onnxruntime alone, no JAX and no s2ac.

    s2ac export RUN --format onnx --select amortized --out policy.onnx
    python examples/deploy_onnx.py policy.onnx Pendulum-v1

The file takes an observation, and standard normal noise if its rule draws any; the action is in the environment's units.
"""

import os
import sys

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import gymnasium
import numpy as np
import onnxruntime


def make_policy(file, seed=0):
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    sizes = {each.name: each.shape for each in session.get_inputs()}  # static: [1, O] and [1, K]
    generator = np.random.default_rng(seed)

    def policy(observation):
        inputs = {"observation": np.asarray(observation, np.float32).reshape(sizes["observation"])}
        if "noise" in sizes:
            inputs["noise"] = generator.standard_normal(sizes["noise"], np.float32)
        return session.run(["action"], inputs)[0][0]

    return policy


def main(file, name, episodes=10):
    if name.startswith("s2ac/"):
        import s2ac.envs.multigoal.gymnasium  # noqa: F401  registers it
    policy, env, returns = make_policy(file), gymnasium.make(name), []
    for episode in range(episodes):
        observation, _ = env.reset(seed=episode)
        total, ended = 0.0, False
        while not ended:
            observation, reward, terminated, truncated, _ = env.step(policy(observation))
            total, ended = total + float(reward), terminated or truncated
        returns.append(total)
    env.close()
    print(f"{name}: return {np.mean(returns):.1f} ± {np.std(returns):.1f} over {episodes} episodes")
    return returns


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
