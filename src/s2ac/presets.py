"""Named settings: `--preset NAME`. Each holds fields of the run and of the algorithm; a field that an algorithm lacks is
left out for it, and `s2ac`, `s2ac-amortized`, `s2ac-phi` and `sql` hold what is that algorithm's own. Every number's source is beside it. `default` and
`paper` are others on the MuJoCo tasks, `default` on multigoal; `target-networks` and `ten-particles` are others than `default` on the MuJoCo tasks alone."""

import re
from dataclasses import fields
from typing import Any

from s2ac.algorithms.s2ac import S2acConfig
from s2ac.algorithms.sql import SqlConfig
from s2ac.checks import check_name
from s2ac.samplers.kernel import released_factor

Preset = dict[str, dict[str, Any]]

_TABLE: Preset = {  # the paper's tables "Hyperparameters for multi-goal environment" and "Hyperparameters"
    "run": {"batch_size": 100, "capacity": 1_000_000, "num_envs": 1},
    "algorithm": {
        "hidden": (256, 256),
        "activation": "relu",
        "learning_rate": 3e-4,
        "target_rate": 0.005,
        "num_particles": 10,
        "form": "paper",
        "bandwidth_factor": released_factor(10),  # the printed formula is over ten times too wide; the released code's
        "scale_step_by_alpha": True,  # the paper's velocity is α times ours
        "max_jacobian_norm": None,
        "min_std": 0.1,  # released code
        "max_std": 1.0,  # released code
    },
}

MUJOCO = re.compile(r"(Hopper|Walker2d|HalfCheetah|Ant|Humanoid)-v[45]")

_SACS_START = {"start_alpha": 0.0, "start_ratio": 1.0}  # S²AC's start has SAC's loss: no gradient through the sampler

_MUJOCO: Preset = {  # the setting of the published results: docs/studies/mujoco.md tells how it was chosen
    "run": {
        "steps": 300_000,
        "num_envs": 8,  # and as many updates a round: on an accelerator a step of one costs as much as a step of eight
        "num_updates": 8,
        "batch_size": 256,
        "capacity": 1_000_000,
        "warmup_steps": 5_000,  # as in CleanRL's SAC
        "log_every": 1_000,  # 15 seconds on two cores, and as long as Ctrl-C takes
        "evaluate_every": 10_000,
        "episodes": 10,
        "checkpoint_every": 50_000,
        "overlap": True,
    },
    "algorithm": {
        "learn_alpha": True,
        "batch_norm": True,  # CrossQ's critics: SAC's return is 1.04 to 3.3 times as high, by task
        "adam_b1": 0.5,  # CrossQ's
        "critic_learning_rate": 1e-3,  # as in CleanRL's SAC; at 100k steps of HalfCheetah 13 % above 3e-4
        "min_std": 0.0067,  # a floor of 0.3 would keep the entropy above the temperature's aim, and α would go to 0
        "max_std": 7.389,
        "form": "normalized",  # with `all` a particle feels 1/M of its own score, and few steps move nothing
        "step_size": 0.1,
        "scale_step_by_alpha": True,
        "normalize": True,  # PPO's; as in CleanRL's
    },
    "s2ac": {
        **_SACS_START,
        "guide": (128, 128),  # a critic for the sampler alone, with cheap particles: logs 18 and 20
        "num_flows": 3,  # the start is SAC-NF's: log 21
        "num_particles": 4,
        "num_steps": 1,
    },
    "s2ac-amortized": _SACS_START,
    "s2ac-phi": {  # the steps are all it has
        "num_steps": 20,  # the paper's
        "step_size": 0.4,
        "learn_alpha": False,  # a fixed start meets no entropy's aim
    },
}

_ON_MUJOCO: dict[str, Preset] = {
    "default": _MUJOCO,
    "ten-particles": {**_MUJOCO, "s2ac": _SACS_START},  # S²AC's particles and steps as in the paper, no guide, no flows
    "target-networks": {  # and the critics' targets too
        **_MUJOCO,
        "algorithm": {**_MUJOCO["algorithm"], "batch_norm": False, "adam_b1": 0.9, "step_size": 0.4},
        "s2ac": _SACS_START,
    },
}
"""What has results of its own: in results/mujoco, and in results/mujoco-NAME."""

_SQL_REWARD_SCALES = {"Hopper": 30, "Walker2d": 10, "HalfCheetah": 30, "Ant": 300, "Humanoid": 100}
"""Of SQL's authors (haarnoja/softqlearning, examples/mujoco_all_sql.py): rewards times a scale at α = 1 are rewards at α = 1/scale."""

_MULTIGOAL: Preset = {  # chosen by the gap to the exact optimum: docs/studies/multigoal.md
    "run": {"num_envs": 4, "batch_size": 100, "capacity": 50_000, "warmup_steps": 1_000, "steps": 80_000},
    "algorithm": {
        "hidden": (128, 128),
        "activation": "elu",
        "frequency": 1.5,  # without it no critic sees a goal's edge
        "learning_rate": 1e-3,
        "target_rate": 0.01,
        "discount": 0.8,  # released code
        "score_precision": "float32",  # bfloat16 rounds Q = −82 by up to 0.25, more than α = 0.2
    },
    "s2ac": {
        "num_critics": 1,  # a minimum of two is a bias against goals that are seldom visited, where they disagree
        "num_particles": 32,
        "num_steps": 0,
        "resample": True,
        "start_alpha": 10.0,
        "mode_alpha": 0.6,
        "min_std": 0.05,
        "max_std": 2.0,
    },
}

_MULTIGOAL["s2ac-amortized"] = _MULTIGOAL["s2ac"]

PRESETS: dict[str, Preset] = {
    "default": {"run": {}, "algorithm": {}},
    "target-networks": {"run": {}, "algorithm": {}},
    "ten-particles": {"run": {}, "algorithm": {}},
    "paper": {
        "run": _TABLE["run"],
        "algorithm": {
            **_TABLE["algorithm"],
            "discount": 0.8,
            "step_size": 0.01,
            "start_std": 0.3**0.5,  # N(0, 0.3 I)
        },
    },
    "paper-mujoco": {
        "run": {**_TABLE["run"], "warmup_steps": 10_000},  # released code
        "algorithm": {
            **_TABLE["algorithm"],
            "discount": 0.99,
            "alpha": 1.0,
            "step_size": 0.1,
            "start_std": 0.5**0.5,  # N(0, 0.5 I)
        },
        "s2ac-phi": {"num_steps": 20},
    },
    "demo": {  # a small S²AC(φ) that reaches all three goals in under two minutes on two cores
        "run": {"batch_size": 64, "steps": 24_000, "warmup_steps": 500, "log_every": 2_000, "evaluate_every": 24_000},
        "algorithm": {
            "hidden": (64, 64),
            "learning_rate": 1e-3,
            "target_rate": 0.01,
            "discount": 0.8,
            "alpha": 1.0,
            "form": "leave-one-out",
            "num_particles": 8,
        },
    },
}


def preset_of(name: str, env: str) -> Preset:
    """The settings that a name stands for on an environment."""
    check_name("preset", name, PRESETS)
    usual = name in _ON_MUJOCO
    if usual and env in ("multigoal", "multigoal-far"):
        discount = {"discount": 0.95} if env == "multigoal-far" else {}
        return {**_MULTIGOAL, "algorithm": {**_MULTIGOAL["algorithm"], **discount}}
    if not (task := MUJOCO.fullmatch(env)):
        return PRESETS[name]
    if usual:
        return {**_ON_MUJOCO[name], "sql": {"alpha": 1 / _SQL_REWARD_SCALES[task[1]]}}
    if name in ("paper", "paper-mujoco"):
        alpha = 0.2 if env.startswith("Ant") else 1.0  # the paper's table
        whole = PRESETS["paper-mujoco"]
        return {**whole, "algorithm": {**whole["algorithm"], "alpha": alpha}}
    return PRESETS[name]


def fields_of(name: str, part: str, config: Any, env: str = "") -> dict[str, Any]:
    """A preset's fields for one part, `run` or `algorithm`, as far as `config` has them."""
    known = {field.name for field in fields(config)}
    preset = preset_of(name, env)
    given = {**preset[part], **preset.get(_own_part(config), {})}
    return {field: value for field, value in given.items() if field in known}


def _own_part(config: Any) -> str:
    """The part of a preset that holds an algorithm's own fields; no part is called "", which stands for none."""
    if isinstance(config, S2acConfig):
        learned = "s2ac-amortized" if config.amortized else "s2ac"
        return learned if config.start == "learned" else "s2ac-phi"
    return "sql" if isinstance(config, SqlConfig) else ""
