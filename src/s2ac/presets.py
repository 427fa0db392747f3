"""Named settings: `--preset NAME`. Each holds fields of the run and of the algorithm; a field that an algorithm lacks is
left out for it. Every number's source is beside it. `default` and `paper` are others on the MuJoCo tasks."""

import re
from dataclasses import fields
from typing import Any

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

_MUJOCO: Preset = {  # the setting of the published results: docs/studies/mujoco.md tells how it was chosen
    "run": {
        "steps": 300_000,
        "num_envs": 1,
        "batch_size": 256,
        "capacity": 1_000_000,
        "warmup_steps": 5_000,  # as in CleanRL's SAC
        "log_every": 5_000,
        "evaluate_every": 10_000,
        "episodes": 10,
        "checkpoint_every": 50_000,
        "overlap": True,
    },
    "algorithm": {
        "learn_alpha": True,
        "min_std": 0.0067,  # a floor of 0.3 would keep the entropy above the temperature's aim, and α would go to 0
        "max_std": 7.389,
        "step_size": 0.02,
        "scale_step_by_alpha": True,
    },
}

PRESETS: dict[str, Preset] = {
    "default": {"run": {}, "algorithm": {}},
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
    if not MUJOCO.fullmatch(env):
        return PRESETS[name]
    if name == "default":
        return _MUJOCO
    if name in ("paper", "paper-mujoco"):
        alpha = 0.2 if env.startswith("Ant") else 1.0  # the paper's table
        whole = PRESETS["paper-mujoco"]
        return {**whole, "algorithm": {**whole["algorithm"], "alpha": alpha}}
    return PRESETS[name]


def fields_of(preset: str, part: str, config: Any, env: str = "") -> dict[str, Any]:
    """A preset's fields for one part, `run` or `algorithm`, as far as `config` has them."""
    known = {field.name for field in fields(config)}
    return {name: value for name, value in preset_of(preset, env)[part].items() if name in known}
