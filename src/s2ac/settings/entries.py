"""What a preset changes on an environment, by algorithm: `entry_of(preset, env)`.

An entry names the algorithms that a field is for, so no field reaches a config by having a name in common with it (a test holds
every entry to the schema). Where there is no entry, an algorithm's own defaults hold. Every number's source is beside it.
"""

import re
from typing import Any

from s2ac.errors import check_name
from s2ac.samplers.kernel import released_factor

STEIN = ("s2ac", "s2ac-phi", "s2ac-amortized")
MAXENT = (*STEIN, "sac", "sac-nf")
OFF_POLICY = (*MAXENT, "sql", "ddpg")
EVERY = (*OFF_POLICY, "ppo")
GAUSSIAN = tuple(algo for algo in MAXENT if algo != "s2ac-phi")  # those with a learned start

Fields = dict[str, Any]
Entry = dict[str, Fields]
"""Of each algorithm, the fields of the run and of its config that differ from its defaults."""


def _entry(*parts: tuple[tuple[str, ...], Fields]) -> Entry:
    """Parts that name the algorithms they are for; a later one wins."""
    made: Entry = {algo: {} for algo in EVERY}
    for algorithms, fields in parts:
        for algo in algorithms:
            made[algo] |= fields
    return made


_TABLE = (  # the paper's tables "Hyperparameters for multi-goal environment" and "Hyperparameters"
    (EVERY, {"hidden": (256, 256), "activation": "relu"}),
    (OFF_POLICY, {"batch_size": 100, "capacity": 1_000_000}),
    (EVERY, {"learning_rate": 3e-4}),
    (OFF_POLICY, {"num_envs": 1, "target_rate": 0.005}),
    (MAXENT, {"alpha": 0.2, "learn_alpha": False}),  # released code
    (GAUSSIAN, {"min_std": 0.1, "max_std": 1.0}),  # released code
    ((*STEIN, "sql"), {"num_particles": 10}),
    (
        STEIN,
        {
            "form": "paper",
            "num_references": 0,
            "bandwidth_factor": released_factor(10),  # the printed formula is over ten times too wide; released code's
            "max_jacobian_norm": None,
            "weighted": False,
            "start_alpha": None,
        },
    ),
)

_PAPER = _entry(
    *_TABLE, (EVERY, {"discount": 0.8}), (STEIN, {"step_size": 0.01}), (("s2ac-phi",), {"start_std": 0.3**0.5})
)  # N(0, 0.3 I)


def _paper_mujoco(alpha: float = 1.0) -> Entry:
    return _entry(
        *_TABLE,
        (EVERY, {"discount": 0.99}),
        (OFF_POLICY, {"warmup_steps": 10_000}),  # released code
        ((*MAXENT, "sql"), {"alpha": alpha}),
        (STEIN, {"step_size": 0.1}),
        (("s2ac-phi",), {"num_steps": 20, "start_std": 0.5**0.5}),  # N(0, 0.5 I)
    )


_WEIGHTED = {  # multigoal, where modes matter: chosen by the gap to the exact optimum, docs/studies/multigoal-log.md, log 13
    "weighted": True,
    "num_critics": 1,  # a minimum of two is a bias against goals that are seldom visited, where they disagree
    "num_particles": 16,
    "num_references": 16,
    "num_steps": 5,
    "step_size": 0.1,
    "explore_alpha": 3.0,
}
_HOT_START = {"start_alpha": 10.0, "min_std": 0.05, "max_std": 2.0}  # wide enough for every mode

_DEMO = _entry(  # a small agent that reaches all three goals in under two minutes on two cores
    (EVERY, {"steps": 40_000, "log_every": 2_000, "evaluate_every": 40_000}),
    (OFF_POLICY, {"batch_size": 64, "warmup_steps": 500}),
    (EVERY, {"hidden": (64, 64), "learning_rate": 1e-3, "discount": 0.8}),
    (OFF_POLICY, {"num_envs": 4, "target_rate": 0.01, "frequency": 1.5}),
    (MAXENT, {"learn_alpha": False}),
    ((*MAXENT, "sql"), {"alpha": 1.0}),
    (STEIN, _WEIGHTED),
    (("s2ac", "s2ac-amortized"), _HOT_START),
)

SCALED_ALPHA = 0.01
"""Where the temperature starts beside categorical critics, whose rewards are scaled so that returns are within 5 (FlashSAC's)."""

_LOCOMOTION = (  # the setting of the published results: docs/studies/mujoco.md tells how it was chosen
    (
        MAXENT,
        {
            "alpha": 0.2,  # where it starts
            "batch_norm": True,  # CrossQ's critics: SAC's return is 1.04 to 3.3 times as high, by task
            "adam_b1": 0.5,  # CrossQ's
            "critic_learning_rate": 1e-3,  # as in CleanRL's SAC; at 100k steps of HalfCheetah 13 % above 3e-4
        },
    ),
    (
        STEIN,
        {
            "form": "normalized",  # as in the published results; with `all` a particle feels 1/M of its own score
            "num_references": 0,
            "num_particles": 10,
            "step_size": 0.1,
            "weighted": False,
        },
    ),
    # The steps are all it has, and a fixed start meets no entropy's aim. Twenty steps are the paper's.
    (("s2ac-phi",), {"num_steps": 20, "step_size": 0.4, "learn_alpha": False}),
    # A critic for the sampler alone, with cheap particles (logs 18 and 20); the start is SAC-NF's (log 21).
    (("s2ac",), {"guide": (128, 128), "num_flows": 3, "num_particles": 4, "num_steps": 1}),
)

_ON_MUJOCO = (
    (
        EVERY,
        {
            "steps": 300_000,
            "log_every": 1_000,  # 15 seconds on two cores, and as long as Ctrl-C takes
            "evaluate_every": 10_000,
            "episodes": 10,
            "checkpoint_every": 50_000,
        },
    ),
    # As many updates a round as environments: on an accelerator a step of one costs as much as a step of eight.
    (OFF_POLICY, {"num_envs": 8, "num_updates": 8, "overlap": True}),
    (OFF_POLICY, {"capacity": 1_000_000, "warmup_steps": 5_000}),  # the second as in CleanRL's SAC
    *_LOCOMOTION,
    (("ppo",), {"normalize": True}),  # as in CleanRL's
)

_MUJOCO: dict[str, Entry] = {
    "default": _entry(*_ON_MUJOCO),
    "categorical": _entry(  # FlashSAC's critics, batch, target rate and temperature; no results yet
        *_ON_MUJOCO,
        (STEIN, {"guide": (128, 128)}),  # the critics are large, and a sampler would climb them many times
        # 100 times the default's: a step is in units of α, and with rewards divided by roughly 100 so is α, for the same log-density.
        (STEIN, {"step_size": 10.0}),
        (("s2ac-phi",), {"step_size": 40.0}),
        (
            MAXENT,
            {
                "categorical": True,
                "batch_norm": False,
                "batch_size": 512,
                "adam_b1": 0.9,
                "critic_learning_rate": 3e-4,
                "target_rate": 0.01,
                "alpha": SCALED_ALPHA,
            },
        ),
    ),
}
"""The setting of the results in results/mujoco, and one that has none yet."""

_SQL_REWARD_SCALES = {"Hopper": 30, "Walker2d": 10, "HalfCheetah": 30, "Ant": 300, "Humanoid": 100}
"""Of SQL's authors (haarnoja/softqlearning, examples/mujoco_all_sql.py): rewards times a scale at α = 1 are rewards at α = 1/scale."""


def _multigoal(discount: float) -> Entry:
    return _entry(  # chosen by the gap to the exact optimum: docs/studies/multigoal.md
        (EVERY, {"steps": 80_000}),
        (OFF_POLICY, {"batch_size": 100, "capacity": 50_000}),
        (EVERY, {"hidden": (128, 128), "activation": "elu", "learning_rate": 1e-3}),
        (EVERY, {"discount": discount}),  # 0.8: released code
        (OFF_POLICY, {"num_envs": 4, "target_rate": 0.01}),
        (OFF_POLICY, {"frequency": 1.5}),  # without it no critic sees a goal's edge
        (MAXENT, {"alpha": 0.2, "learn_alpha": False}),  # the temperature is the study's axis
        (STEIN, _WEIGHTED),
        (("s2ac-phi",), {"num_steps": 10}),
        (("s2ac", "s2ac-amortized"), _HOT_START),
    )


_PLAYGROUND = _entry(  # thousands of simulators on an accelerator: few updates a step, large batches
    (EVERY, {"steps": 5_000_000, "log_every": 102_400, "evaluate_every": 1_024_000, "checkpoint_every": 1_024_000}),
    # As many samples a step as in Playground's own setting for SAC (brax_sac_config: 128 simulators, 8 updates of 512), in half the updates:
    # 54,000 steps a second on an H200 instead of 38,000.
    (OFF_POLICY, {"num_envs": 1024, "num_updates": 32, "batch_size": 1024, "capacity": 1_048_576}),
    (OFF_POLICY, {"warmup_steps": 0}),  # the first round alone has 1,024 actions of a start that is nearly uniform
    *_LOCOMOTION,
)


_REPEAT = 8
"""Steps of PointMaze that take one action: a longer action matters more beside the errors of a critic."""


def _pointmaze(env_steps: int) -> Entry:
    """Several goals and a sparse reward; the environment's steps are the DrAC paper's. How the rest was chosen: docs/studies/pointmaze.md."""
    steps = env_steps // _REPEAT
    return _entry(
        (EVERY, {"action_repeat": _REPEAT, "discount": 0.99**_REPEAT}),
        (EVERY, {"steps": steps, "log_every": 250, "evaluate_every": steps // 20, "checkpoint_every": steps // 5}),
        (OFF_POLICY, {"num_envs": 4, "num_updates": 16, "capacity": steps}),
        (OFF_POLICY, {"warmup_steps": 5_000 // _REPEAT}),  # or only some goals are met before the policy prefers one
        # Below it, errors of the critics between goals that are equally good decide which of them are kept.
        ((*MAXENT, "sql"), {"alpha": 5.0, "num_critics": 1, "relative_entropy": True}),
        (MAXENT, {"learn_alpha": False}),
        (STEIN, _WEIGHTED),
        (("s2ac", "s2ac-amortized"), {**_HOT_START, "start_alpha": 3.0}),
    )


MUJOCO = re.compile(r"(Hopper|Walker2d|HalfCheetah|Ant|Humanoid)-v[45]")
MULTIGOAL = {"multigoal": _multigoal(0.8), "multigoal-far": _multigoal(0.95)}
POINTMAZE = {
    "pointmaze-simple": _pointmaze(100_000),
    "pointmaze-medium": _pointmaze(200_000),
    "pointmaze-hard": _pointmaze(300_000),
}
PRESETS = ("default", "paper", "demo", "categorical")
"""`categorical` differs from `default` on the MuJoCo tasks alone."""


def entry_of(preset: str, env: str) -> Entry:
    """What the preset changes on the environment; empty where it has nothing to say of it."""
    check_name("preset", preset, PRESETS)
    task = MUJOCO.fullmatch(env)
    if preset == "demo":
        return _DEMO
    if preset == "paper":
        return _paper_mujoco(0.2 if env.startswith("Ant") else 1.0) if task else _PAPER  # α by the paper's table
    if task:
        made = _MUJOCO[preset]
        return {**made, "sql": {**made["sql"], "alpha": 1 / _SQL_REWARD_SCALES[task[1]]}}
    return _PLAYGROUND if env.startswith("playground:") else {**MULTIGOAL, **POINTMAZE}.get(env, {})
