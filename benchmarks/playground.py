"""SAC of Brax on a task of MuJoCo Playground, with Playground's own setting for it: what `s2ac train playground:TASK --algo sac` is measured against.

    python benchmarks/playground.py CheetahRun
    s2ac train playground:CheetahRun --algo sac --select mean --episodes 128 --out runs/cheetah

Needs the extra `playground`. Each line is one evaluation: steps, mean return of 128 episodes by the deterministic action, seconds since the start with compilation.
"""

import argparse
import functools
import time
from typing import Any

import jax
import jax.numpy as jnp
from brax.training.agents.sac import networks, train
from mujoco_playground import registry, wrapper
from mujoco_playground.config import dm_control_suite_params


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--given", nargs="*", default=[], help="settings other than Playground's, as name=integer")
    given = parser.parse_args()
    settings: dict[str, Any] = dm_control_suite_params.brax_sac_config(given.task).to_dict()
    settings.pop("num_resets_per_eval")  # which this version of Brax's SAC does not have
    factory = functools.partial(networks.make_sac_networks, **settings.pop("network_factory"))
    settings |= {name: int(value) for name, value in (one.split("=") for one in given.given)}
    # Brax 0.14.2 calls it, and JAX has it no more.
    jax.device_put_replicated = lambda tree, devices: jax.tree.map(lambda leaf: jnp.stack([leaf] * len(devices)), tree)
    begin = time.perf_counter()

    def tell(steps: int, metrics: dict[str, Any]) -> None:
        print(f"{steps} {metrics['eval/episode_reward']:.1f} {time.perf_counter() - begin:.0f}", flush=True)

    load = lambda: registry.load(given.task, config_overrides={"impl": "jax"})  # noqa: E731
    train.train(
        environment=load(),
        eval_env=load(),
        wrap_env_fn=wrapper.wrap_for_brax_training,
        network_factory=factory,
        progress_fn=tell,
        deterministic_eval=True,
        seed=given.seed,
        **settings,
    )


if __name__ == "__main__":
    main()
