"""Ready-made callbacks, by what they do to a training; and the greedy rule that `deterministic` stands for."""

import numpy as np
import pytest

import s2ac
from s2ac.callbacks import Progress
from s2ac.errors import InvalidArgument

SMALL = {
    "hidden": (8,),
    "batch_size": 8,
    "warmup_steps": 20,
    "log_every": 20,
    "evaluate_every": 20,
    "capacity": 100,
    "episodes": 2,
}


def progress(step, *returns, rule="sample", agent=None):
    rows = [{"kind": "evaluation", "rule": rule, "seed": seed, "return": value} for seed, value in enumerate(returns)]
    return Progress(step, [{"kind": "train", "seed": 0}, *rows], agent)


def test_an_evaluation_is_the_mean_over_seeds_of_one_rule():
    assert progress(1, 1.0, 3.0).evaluated() == 2.0
    assert progress(1, 1.0, rule="argmax").evaluated("sample") is None
    assert progress(1).evaluated() is None


def test_training_stops_at_the_threshold_and_not_before():
    stop = s2ac.StopAt(2.0)
    assert [stop(progress(1)), stop(progress(2, 1.0, 2.9)), stop(progress(3, 1.0, 3.0))] == [True, True, False]


def test_together_calls_each_and_stops_if_one_says_so():
    called = []
    both = s2ac.together(lambda p: called.append("one") or False, lambda p: called.append("other"))
    assert both(progress(1)) is False
    assert called == ["one", "other"]
    assert s2ac.together(lambda p: None, lambda p: True)(progress(1)) is True


def test_the_best_agent_is_kept_and_loads(tmp_path):
    agent = s2ac.Agent("multigoal", "sac", directory=tmp_path / "run", **SMALL)
    keep, seen = s2ac.KeepBest(tmp_path / "best"), []
    agent.learn(80, callback=s2ac.together(keep, lambda p: seen.append((p.evaluated(), p.env_step))))
    best, step = max(seen)
    assert keep.best == best
    assert s2ac.load(tmp_path / "best").env_step == step
    stopped = s2ac.Agent("multigoal", "sac", directory=tmp_path / "stopped", **SMALL)
    assert stopped.learn(1_000, callback=s2ac.StopAt(-1e9)).env_step < 100


@pytest.mark.parametrize(("algo", "greedy"), [("sac", "mean"), ("sql", "argmax")])
def test_deterministic_is_the_greedy_rule(algo, greedy):
    agent = s2ac.Agent("multigoal", algo, hidden=(8,))
    place = np.zeros(2, np.float32)
    assert agent.algorithm.greedy == greedy
    np.testing.assert_array_equal(
        agent.predict(place, deterministic=True, draw=1), agent.predict(place, greedy, draw=1)
    )
    np.testing.assert_array_equal(agent.predict(place, deterministic=True), agent.predict(place, deterministic=True))
    assert (agent.predict(place, draw=1) != agent.predict(place, deterministic=True, draw=1)).any()
    with pytest.raises(InvalidArgument, match="deterministic = True: must be left out beside select = 'sample'"):
        agent.predict(place, "sample", deterministic=True)
