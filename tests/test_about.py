"""What a run's own file says: which runs are the same, and settings of earlier versions."""

import json
import re
from dataclasses import asdict

import pytest

from s2ac.algorithms import ALGORITHMS
from s2ac.errors import S2acError
from s2ac.runs.about import configs_of, same_run
from s2ac.settings import RunConfig


def test_a_run_that_was_written_before_a_field_came_or_went_is_still_the_same_run(tmp_path):
    about = {
        "algo": "sac",
        "env": "multigoal",
        "algorithm": asdict(ALGORITHMS["sac"].config),
        "run": asdict(RunConfig()),
    }
    about = json.loads(json.dumps(about))
    older = {**about, "algorithm": {name: value for name, value in about["algorithm"].items() if name != "batch_norm"}}
    assert same_run(older, about)
    assert not same_run(older, {**about, "algorithm": {**about["algorithm"], "batch_norm": True}})
    assert not same_run(older, {**about, "env": "multigoal-far"})

    def with_late(value):  # a field that is no more
        return {**about, "algorithm": {**about["algorithm"], "late_action": value}}

    assert same_run(with_late(False), about)
    assert configs_of(with_late(False), tmp_path)[0] == ALGORITHMS["sac"].config
    with pytest.raises(S2acError, match=r"run.json cannot be used: sac has no field late_action in this version"):
        configs_of(with_late(True), tmp_path)


OLD = {  # S²AC's own settings of version 2, as the MuJoCo preset had them
    "num_particles": 4, "num_steps": 1, "step_size": 0.1, "scale_step_by_alpha": True, "bandwidth": None, "bandwidth_factor": 0.25,
    "form": "normalized", "density": "trace", "hessian": "hutchinson", "max_jacobian_norm": 0.9, "differentiate_score": True,
    "resample": False, "guide": [], "score_precision": "auto", "start": "learned", "start_alpha": 0.0, "start_ratio": 1.0,
    "mode_alpha": None, "start_std": 0.707, "num_flows": 0, "flow": "radial", "amortized": False,
}  # fmt: skip


@pytest.mark.parametrize(("old", "new"), [
    ({}, {"num_references": 0, "step_size": 0.1, "start_std": None, "start_alpha": 0.0, "weighted": False}),
    ({"scale_step_by_alpha": False}, {"step_size": 0.5}),  # at α = 0.2
    ({"start": "fixed", "start_alpha": None}, {"start_std": 0.707, "start_alpha": None}),
    ({"resample": True}, "s2ac has no field resample in this version"),
    ({"scale_step_by_alpha": False, "learn_alpha": True}, "has no field scale_step_by_alpha"),
    ({"start_alpha": 10.0}, "has no field start_ratio"),
    ({"hessian": "exact"}, "has no field hessian"),
    ({"form": "tracer", "density": "log-det"}, "form = 'tracer': its steps are shorter since version 3"),
    ({"amortized": True}, "amortized = True: f_ψ is another network since version 3"),
])  # fmt: skip
def test_settings_of_version_2_are_taken_over_or_refused_by_name(old, new, tmp_path):
    algorithm = {**asdict(ALGORITHMS["sac"].config), "learn_alpha": False, "alpha": 0.2, **OLD, **old}
    about = {"version": 2, "env": "multigoal", "algo": "s2ac", "algorithm": algorithm, "run": asdict(RunConfig())}
    about = json.loads(json.dumps(about))
    if isinstance(new, str):
        with pytest.raises(S2acError, match=re.escape(new)):
            configs_of(about, tmp_path)
        return
    config, _ = configs_of(about, tmp_path)
    assert {name: getattr(config, name) for name in new} == pytest.approx(new)
    with pytest.raises(S2acError, match=r"version 7 of run\.json: this s2ac reads up to 6"):
        configs_of({**about, "version": 7}, tmp_path)


def test_fields_that_version_4_had_not_are_what_they_did_then(tmp_path):
    """And version 5 must have them."""
    algorithm = json.loads(json.dumps(asdict(ALGORITHMS["sac"].config)))
    del algorithm["categorical"]
    about = {"version": 4, "env": "multigoal", "algo": "sac", "algorithm": algorithm, "run": asdict(RunConfig())}
    about = json.loads(json.dumps(about))
    assert configs_of(about, tmp_path)[0] == ALGORITHMS["sac"].config
    assert same_run(about, {**about, "version": 5, "algorithm": {**algorithm, "categorical": False}})
    assert not same_run(about, {**about, "version": 5, "algorithm": {**algorithm, "categorical": True}})
