"""Our defaults on an environment that nobody tuned, beside another library's default SAC.

    python benchmarks/defaults.py Pendulum-v1 --steps 10000 --seeds 5
    python benchmarks/defaults.py Pendulum-v1 --steps 10000 --seeds 3 --algos --peer PYTHON

No setting is given but the steps. Returns are of the deterministic action (`mean`), 50 episodes a seed, on fresh environments; brackets are 95 % t intervals
over seeds. PYTHON is the interpreter of an environment with `sbx-rl` (SBX, SAC in JAX with Stable-Baselines3's interface); nothing of it is needed otherwise.
"""

import argparse
import json
import subprocess
import tempfile
import time

import gymnasium
import numpy as np
import scipy.stats

import s2ac

EPISODES = 50

PEER = """
import json, sys, time
import gymnasium
from sbx import SAC
from stable_baselines3.common.evaluation import evaluate_policy

env, steps, seeds, episodes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
for seed in range(seeds):
    model = SAC("MlpPolicy", env, seed=seed)
    begin = time.perf_counter()
    model.learn(steps)
    seconds = time.perf_counter() - begin
    fresh = gymnasium.make(env)
    fresh.reset(seed=1000 + seed)
    mean, _ = evaluate_policy(model, fresh, episodes, deterministic=True, warn=False)
    print(json.dumps([float(mean), steps / seconds]), flush=True)
"""


def play(agent: s2ac.Agent, env: str, seed_index: int) -> float:
    """The mean return of the deterministic action on an environment of its own."""
    fresh, returns = gymnasium.make(env), []
    observation, _ = fresh.reset(seed=1000 + seed_index)
    for _ in range(EPISODES):
        total, ended = 0.0, False
        while not ended:
            action = agent.predict(observation, "mean", seed_index=seed_index)
            observation, reward, terminated, truncated, _ = fresh.step(action)
            total, ended = total + float(reward), terminated or truncated
        returns.append(total)
        observation, _ = fresh.reset()
    return float(np.mean(returns))


def ours(env: str, algo: str, steps: int, seed: int) -> tuple[float, float]:
    """Return and steps per second of one seed with no flag."""
    with tempfile.TemporaryDirectory() as place:
        agent = s2ac.Agent(env, algo, directory=f"{place}/run", first_seed=seed)
        begin = time.perf_counter()
        agent.learn(steps)
        speed = steps / (time.perf_counter() - begin)
        return play(agent, env, 0), speed


def peer(python: str, env: str, steps: int, seeds: int) -> list[tuple[float, float]]:
    """The same of the other library."""
    given = [python, "-c", PEER, env, str(steps), str(seeds), str(EPISODES)]
    told = subprocess.run(given, check=True, capture_output=True, text=True).stdout
    return [tuple(json.loads(line)) for line in told.splitlines() if line.startswith("[")]


def tell(name: str, found: list[tuple[float, float]]) -> None:
    returns, speeds = np.array(found).T
    half = (
        scipy.stats.t.ppf(0.975, len(found) - 1) * returns.std(ddof=1) / len(found) ** 0.5 if len(found) > 1 else np.nan
    )
    each = " ".join(f"{value:.0f}" for value in returns)
    print(
        f"{name}: {returns.mean():.1f} [{returns.mean() - half:.1f}, {returns.mean() + half:.1f}], seeds {each}; "
        f"{np.median(speeds):.0f} steps/s with compilation",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("env")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--algos", nargs="*", default=["sac", "s2ac"])
    parser.add_argument("--peer", help="interpreter of an environment with sbx-rl")
    given = parser.parse_args()
    print(f"{given.env}, {given.steps:,} steps, {given.seeds} seeds")
    if given.peer:
        tell("SBX's SAC", peer(given.peer, given.env, given.steps, given.seeds))
    for algo in given.algos:
        tell(algo, [ours(given.env, algo, given.steps, seed) for seed in range(given.seeds)])


if __name__ == "__main__":
    main()
