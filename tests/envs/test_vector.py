"""Vector environments as input: their own functions make the members, so an autoreset mode cannot spoil a transition."""

from functools import partial

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import s2ac
from counting import Counter
from s2ac.agent import Agent
from s2ac.errors import InvalidArgument

TINY = {"hidden": (4,), "batch_size": 4, "warmup_steps": 24, "log_every": 20, "capacity": 100}


FUNCTIONS = [partial(Counter, number) for number in (2, 3, 4)]


ASYNC = partial(AsyncVectorEnv, context="forkserver")


@pytest.mark.parametrize(
    ("kind", "mode"),
    [*((SyncVectorEnv, mode) for mode in AutoresetMode), (ASYNC, AutoresetMode.SAME_STEP)],
)
def test_every_transition_is_of_one_episode_in_any_autoreset_mode(kind, mode, tmp_path):
    vector = kind(FUNCTIONS, autoreset_mode=mode)
    try:
        agent = Agent(vector, "sac", directory=tmp_path / "run", **TINY).learn(24)
    finally:
        vector.close()
    assert agent.config.num_envs == 3
    replay = agent._run.loop.state.replay
    rows = {name: np.asarray(field[0, :24]) for name, field in replay.data._asdict().items()}
    observation, following = rows["observation"], rows["next_observation"]
    assert set(observation[:, 0]) == {2, 3, 4}  # the n-th function makes the n-th environment
    np.testing.assert_array_equal(following, observation + np.array([0, 1]))
    np.testing.assert_array_equal(rows["truncated"] > 0, following[:, 1] == following[:, 0])


def test_the_advice_to_resume_an_own_environment_works(tmp_path, capsys):
    fields = {**TINY, "warmup_steps": 60}
    Agent(partial(Counter, 3), "sac", directory=tmp_path / "run", **fields).learn(60, callback=lambda progress: False)
    advice = capsys.readouterr().out.partition("resume with: ")[2].partition(", with your environment")[0]
    assert advice.endswith("env=...).learn(40)")
    agent = eval(advice.replace("...", "make"), {"s2ac": s2ac, "make": partial(Counter, 3)})
    assert agent.env_step == 60


def test_what_cannot_be_had_right_is_refused_in_one_line():
    with pytest.raises(InvalidArgument, match="RecordEpisodeStatistics: must be a plain SyncVectorEnv") as caught:
        Agent(RecordEpisodeStatistics(SyncVectorEnv(FUNCTIONS)), "sac", **TINY)
    assert "\n" not in str(caught.value)
    one = Counter(2)
    with pytest.raises(InvalidArgument, match="returned the same environment twice"):
        Agent(SyncVectorEnv([lambda: one] * 2), "sac", **TINY)
