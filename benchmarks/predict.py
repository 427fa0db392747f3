"""Single-observation latency: `agent.predict`, its compiled function alone, and the exported policy in onnxruntime.

python benchmarks/predict.py [--hidden 256] [--repeats 2000]
"""

import argparse
import tempfile
import time
from pathlib import Path

import jax
import numpy as np

import s2ac
from s2ac.deploy.export import load_onnx

SIZES = {"Hopper": (11, 3), "Humanoid": (348, 17)}


def make_agent(observation_size, action_size, hidden):
    """An untrained agent of a MuJoCo task's dimensions; its environment is never stepped."""
    import gymnasium
    from gymnasium import spaces

    class Still(gymnasium.Env):
        observation_space = spaces.Box(-10, 10, (observation_size,), np.float32)
        action_space = spaces.Box(-1, 1, (action_size,), np.float32)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return np.zeros(observation_size, np.float32), {}

    return s2ac.Agent(Still, "s2ac-amortized", hidden=(hidden, hidden), capacity=10, num_envs=1)


def microseconds(repeats, call, *arguments):
    """The median of single calls, in µs: what a control loop waits for."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        jax.block_until_ready(call(*arguments))
        times.append(time.perf_counter() - begin)
    return 1e6 * float(np.median(times))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=2000)
    options = parser.parse_args()
    print(f"{'task':10} {'rule':10} {'compiled':>10} {'predict':>10} {'overhead':>10} {'onnx':>10}   (µs, median)")
    for task, (observation_size, action_size) in SIZES.items():
        agent = make_agent(observation_size, action_size, options.hidden)
        observation = np.random.default_rng(0).standard_normal(observation_size).astype(np.float32)
        for rule in ("amortized", "mean", "sample", "argmax"):
            agent.predict(observation, rule)
            given = agent.policy_state(), agent._key, np.uint32(1), observation
            alone = microseconds(options.repeats, agent._compiled[rule], *given)
            whole = microseconds(options.repeats, agent.predict, observation, rule)
            with tempfile.TemporaryDirectory() as folder:
                made = agent.export(Path(folder) / "policy.onnx", select=rule)
                run = load_onnx(made.file)
            noise = np.random.default_rng(1).standard_normal((1, made.noise_size)).astype(np.float32)
            onnx = microseconds(options.repeats, run, observation[None], noise)
            print(f"{task:10} {rule:10} {alone:10.1f} {whole:10.1f} {whole - alone:10.1f} {onnx:10.1f}", flush=True)


if __name__ == "__main__":
    main()
