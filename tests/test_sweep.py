"""Sweeps: what they are asked for, what they leave, and that a kill changes nothing."""

import ast
import csv
import importlib.util
import json
import os
import random
import re
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

import s2ac
from report_runs import Outline
from runs import COMMAND, digest, environment
from s2ac.cli.main import main
from s2ac.errors import InvalidArgument
from s2ac.runs.lock import holder
from s2ac.sweep.asked import read_asked
from s2ac.sweep.plan import plan
from s2ac.sweep.search import space_of, usual_of

PACKAGE = Path(s2ac.__file__).parent
RAY = importlib.util.find_spec("ray") is not None

FILE = """
env = "multigoal"
algo = ["sac", "s2ac"]
seeds = [0, 1]
steps = {steps}

[settings]
hidden = [8]
num_envs = 2
batch_size = 8
warmup_steps = 20
capacity = 100
log_every = 40
evaluate_every = 80
checkpoint_every = 40
episodes = 2
learning_rate = [3e-4, 1e-3]

[settings.s2ac]
num_particles = 3
num_references = 2
num_steps = 1
"""


def written(tmp_path, text=None):
    path = tmp_path / "sweep.toml"
    path.write_text(text or FILE.format(steps=80))
    return path


def planned(path, flags=None, changes=()):
    return plan(*read_asked(path, flags or {}, changes))


def test_every_combination_is_a_run_with_a_name_from_its_settings(tmp_path):
    runs = planned(written(tmp_path))
    assert len(runs) == len({run.name for run in runs}) == 8
    assert runs[1].name == "multigoal-sac-learning_rate=0.0003-seed1"
    assert runs[1].chosen == {"learning_rate": 3e-4}
    assert (runs[1].settings.run.first_seed, runs[1].settings.run.seeds, runs[1].settings.run.steps) == (1, 1, 80)
    assert runs[-1].settings.algorithm.num_particles == 3
    assert runs[0].settings.algorithm.hidden == (8,)  # one value, not an axis


def test_flags_count_more_and_make_a_sweep_of_their_own(tmp_path):
    runs = planned(written(tmp_path), {"algo": ["sac"], "seeds": 3}, ("hidden=[[8],[4,4]]", "learning_rate=1e-2"))
    assert [run.name for run in runs] == ["multigoal-sac-hidden=8-seeds0-2", "multigoal-sac-hidden=4x4-seeds0-2"]
    (run,) = planned(None, {"env": ["multigoal"]}, ("s2ac.num_steps=2", "activation=elu", "max_jacobian_norm=0.5"))
    assert (run.settings.algorithm.num_steps, run.settings.algorithm.activation) == (2, "elu")
    long = planned(None, {"env": ["multigoal"]}, [f"{name}=[1,2]" for name in ("episodes", "num_envs", "horizon", "num_updates", "batch_size", "log_every", "evaluate_every", "checkpoint_every")])  # fmt: skip
    assert len({run.name for run in long}) == 256
    assert max(len(run.name) for run in long) == 120


def test_the_files_of_the_documentation_can_be_run(tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "sweeps.md").read_text(encoding="utf-8")
    grid, search = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert len(planned(written(tmp_path, grid))) == 2 * 3 * (4 + 8)
    assert space(written(tmp_path, search)).chosen == {"step_size", "num_particles", "activation"}


@pytest.mark.parametrize(("old", "new", "message"), [
    ("steps = 80", "step = 80", "sweep.toml, line 5: 'step': no such key (did you mean 'steps'?)"),
    ("learning_rate", "learning_rat", "sweep.toml, line 17: 'learning_rat': no such setting of sac (did you mean 'learning_rate'?)"),
    ("num_steps", "num_step", "sweep.toml, line 22: 'num_step': no such setting of s2ac (did you mean 'num_steps'?)"),
    ("[settings.s2ac]", "[settings.s2acc]", "sweep.toml, line 19: [settings.s2acc]: no such algorithm (did you mean 's2ac'?)"),
    ("[settings.s2ac]", "", "sweep.toml, line 20: 'num_particles' is no setting of sac: put it under [settings.s2ac]"),
    ("hidden = [8]", "seeds = 2", "sweep.toml, line 8: 'seeds' stands at the top, not among the settings"),
    ("3e-4, 1e-3", "3e-4, -1", "sweep.toml, line 17: learning_rate = -1: must be a finite number above 0 (of sac on multigoal)"),
    ("3e-4, 1e-3", "", "sweep.toml, line 17: learning_rate = []: nothing to choose from"),
    ("3e-4, 1e-3", "1, 1", "the run multigoal-s2ac-learning_rate=1-seed0 is asked for twice"),
    ("[0, 1]", "[0, -1]", "sweep.toml, line 4: seeds = -1: must be an integer of at least 0"),
    ("[0, 1]", "[", "sweep.toml is not valid TOML: "),
    ('"multigoal"', '"multigaol"', "env = 'multigaol': Gymnasium knows no such environment (did you mean 'multigoal'?)"),
    ('"multigoal"', "3", "sweep.toml, line 2: env = 3: must be a name or a list of names"),
    ('"sac"', '"sca"', "algo = 'sca': must be one of"),
    ("steps = 80", "on = 3", "sweep.toml, line 5: on = '3': must be here"),
    ("[settings.s2ac]\nnum_particles = 3\nnum_references = 2\nnum_steps = 1", "s2ac = 3", "sweep.toml, line 19: s2ac = 3: must be a table"),
    ("steps = 80", 'steps = "x"', "sweep.toml, line 5: steps = 'x': must be a number at least 1"),
    ("steps = 80", "gpus = 1", "sweep.toml, line 5: gpus = 1: goes with on = 'ray'"),
    ("steps = 80", 'on = "local"', "sweep.toml, line 5: on = 'local': must be here, local:N"),
])  # fmt: skip
def test_a_mistake_is_one_line_that_says_where(old, new, message, tmp_path):
    path = written(tmp_path, FILE.format(steps=80).replace(old, new))
    with pytest.raises(InvalidArgument) as error:
        planned(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_sweep_without_a_file_or_with_one_that_is_not_there(tmp_path, capsys):
    assert main(["sweep"]) == 2
    assert "sweep over what? For instance" in capsys.readouterr().err
    assert main(["sweep", str(tmp_path / "none.toml")]) == 2
    assert "cannot read" in capsys.readouterr().err
    assert main(["sweep", "--env", "multigoal", "--set", "steps"]) == 2
    assert "must be NAME=VALUE" in capsys.readouterr().err


SEARCH = """
env = "multigoal"
search = "optuna"
samples = 4
steps = 900
on = "ray"
[settings]
hidden = [8]
step_size = {low = 0.01, high = 1.0, log = true}
num_particles = {low = 4, high = 8}
activation = ["relu", "elu"]
"""


def space(path):
    return space_of(*read_asked(path, {}))


def test_the_space_of_a_search(tmp_path):
    found = space(written(tmp_path, SEARCH))
    assert found.ranges == {"step_size": (0.01, 1.0, True, False), "num_particles": (4, 8, False, True)}
    assert found.lists == {"activation": ["relu", "elu"]}
    assert found.fixed == {"hidden": [8], "seeds": 1, "evaluate_every": 100}


def test_a_search_begins_with_the_default_where_its_space_holds_it(tmp_path):
    def first(text):
        asked, where = read_asked(written(tmp_path, text), {})
        return usual_of(asked, space_of(asked, where), where)

    text = SEARCH.replace("high = 8", "high = 32")
    assert first(text) == [{"step_size": 0.1, "num_particles": 16, "activation": "elu"}]
    assert first(SEARCH) == []  # 16 particles are too many
    assert first(text.replace('"relu", "elu"', '"relu", "tanh"')) == []
    sizes = text.replace("hidden = [8]", "hidden = [[8], [128, 128]]")
    assert first(sizes)[0]["hidden"] == [128, 128]


@pytest.mark.parametrize(("old", "new", "message"), [
    ("{low = 0.01, high = 1.0, log = true}", "{low = 0.01}", "sweep.toml, line 9: step_size = {'low': 0.01}: a range needs its bounds, {low = …, high = …}"),
    ("{low = 0.01, high = 1.0, log = true}", "{}", "line 9: step_size = {}: a range needs its bounds"),
    ("low = 0.01", "low = 0", "line 9: step_size = {'low': 0, 'high': 1.0, 'log': True}: a range needs low below high, and low above 0 with log = true"),
    ("low = 0.01", "low = 2", "a range needs low below high"),
    ("high = 8", "high = 8.5", "line 10: num_particles = {'low': 4, 'high': 8.5}: a range must be of whole numbers"),
    ("low = 4", "low = 0", "line 10: num_particles = 0: must be an integer of at least 1"),
    ("step_size", "step_sise", "line 9: 'step_sise': no such setting of s2ac (did you mean 'step_size'?)"),
    ('"optuna"', '"optun"', "search = 'optun': must be one of optuna"),
    ('on = "ray"', 'on = "local:2"', "search = 'optuna': needs on = 'ray'"),
    ("samples = 4", "samples = 0", "samples = 0: must be an integer of at least 1"),
    ('"multigoal"', '["multigoal", "Pendulum-v1"]', "line 2: env = ['multigoal', 'Pendulum-v1']: a search needs exactly one"),
    ("samples = 4", "seeds = [0, 1]", "line 4: seeds = [0, 1]: must be a number in a search"),
])  # fmt: skip
def test_a_search_space_that_cannot_be_is_one_line(old, new, message, tmp_path):
    with pytest.raises(InvalidArgument) as error:
        space(written(tmp_path, SEARCH.replace(old, new)))
    assert message in str(error.value)


def test_a_range_goes_with_a_search(tmp_path):
    with pytest.raises(InvalidArgument, match=r"line 9: step_size = .*: a range goes with search = 'optuna'"):
        planned(written(tmp_path, SEARCH.replace('search = "optuna"', "")))
    with pytest.raises(InvalidArgument, match="a search needs something to choose"):
        space(written(tmp_path, SEARCH.partition("step_size")[0]))


def sweep(path, out, on="local:2"):
    return ["sweep", str(path), "--out", str(out), "--on", on]


def rows(out):
    with (out / "results.csv").open() as file:
        return list(csv.DictReader(file))


def test_a_cluster_that_is_not_there(tmp_path, capsys):
    """The address is looked at before Ray is asked for, which takes long to say so."""
    arguments = sweep(written(tmp_path), tmp_path / "out", "ray://127.0.0.1:1")
    assert main(arguments) == 2
    assert "on = 'ray://127.0.0.1:1': no cluster answers there" in capsys.readouterr().err


@pytest.mark.skipif(RAY, reason="Ray is installed")
def test_without_ray(tmp_path, capsys):
    assert main(sweep(written(tmp_path), tmp_path / "out", "ray")) == 2
    assert "needs Ray, which is missing (No module named 'ray'): pip install 's2ac[ray]'" in capsys.readouterr().err


def test_ray_is_imported_where_it_is_asked_for():
    """Not with `import s2ac` and not for help: only `launch/trials.py` imports it at its top, and nothing imports that at its own."""
    for path in PACKAGE.rglob("*.py"):
        modules = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)]
        names = {getattr(node, "module", None) or node.names[0].name for node in modules}
        assert not names & {"ray", "s2ac.launch.trials", "optuna"} or path.name == "trials.py", path


def test_a_failed_run_is_a_row_and_leaves_the_others(tmp_path, monkeypatch, capsys):
    """In this process; then the same command tries it again, and another sweep is refused."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", os.environ.get("JAX_COMPILATION_CACHE_DIR", ""))
    path, out = written(tmp_path, FILE.format(steps=80).replace('["sac", "s2ac"]', '"sac"').replace("[0, 1]", "1").replace("[settings.s2ac]", "[x]").partition("[x]")[0]), tmp_path / "out"  # fmt: skip
    first, second = planned(path)
    blocked = out / "runs" / first.name
    (blocked / "checkpoints" / "step_000000000040").mkdir(parents=True)  # without a run.json: nothing may begin here
    arguments = sweep(path, out, "here")
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert "1 of 2 done, 0 running, 1 failed; best on multigoal: " in said.out
    assert f"1 of 2 runs failed, {first.name}: out = " in said.err
    assert [(row["status"], row["step"]) for row in rows(out)] == [("failed", ""), ("done", "80")]
    assert "holds a run without its run.json" in rows(out)[0]["reason"]
    (blocked / "checkpoints" / "step_000000000040").rmdir()
    before = (out / "runs" / second.name / "metrics.jsonl").stat().st_mtime_ns
    assert main(arguments) == 0
    assert "2 runs in" in (said := capsys.readouterr().out)
    assert "1 done before" in said
    assert [row["status"] for row in rows(out)] == ["done", "done"]
    assert (out / "runs" / second.name / "metrics.jsonl").stat().st_mtime_ns == before
    (out / "report.html").unlink()
    assert main(["report", str(out)]) == 0
    page = json.loads(Outline((out / "report.html").read_text()).scripts[0])["sweep"]
    assert page["counts"] == {"done": 2, "failed": 0}
    (env,) = page["envs"]
    assert env["groups"][0]["mean"] == page["rows"][0]["return"] >= page["rows"][1]["return"]
    assert env["groups"][0]["curve"]["steps"] == [80]
    assert main([*arguments, "--steps", "160"]) == 2
    assert "holds a sweep with other steps: take another --out" in capsys.readouterr().err
    asked = json.loads((out / "sweep.json").read_text())["asked"]
    assert (asked["env"], asked["seeds"]) == (["multigoal"], 1)


def processes_with(token: str) -> list[int]:
    """Living processes that have this word in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if token.encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found


def killed_sweep(arguments, out, env, cwd, kills, seed, strike=None):
    """Run a sweep to its end; at random moments while runs are trained a worker or the driver is killed, in turn, and once something
    else is struck. How often it was begun."""
    generator, begun = random.Random(seed), 0
    while True:
        begun += 1
        with subprocess.Popen([*COMMAND, *arguments], env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as driver:  # fmt: skip
            while kills and driver.poll() is None:
                if workers := [pid for run in sorted(out.glob("runs/*")) if (pid := holder(run))]:
                    time.sleep(generator.uniform(0, 2))
                    if kills % 2 == 0:
                        driver.kill()
                    else:
                        with suppress(ProcessLookupError):
                            os.kill(generator.choice(workers), signal.SIGKILL)
                    kills -= 1
                    if strike and kills == 1:
                        strike()
                    time.sleep(1)
            said = driver.stdout.read()
        if driver.returncode != -signal.SIGKILL:
            assert driver.returncode == 0, said
            assert kills == 0, f"ended with {kills} kills left: too few steps"
            return begun


def check_killed(tmp_path, on, kills, seeds=2, strike=None):
    """A sweep that is killed leaves the csv and the final states of one of local:2 that is not, and no process; four runs for each seed."""
    token = f"sweep-{os.getpid()}-{time.time()}"
    path = written(tmp_path, FILE.format(steps=4000).replace("[0, 1]", str(list(range(seeds)))))
    env = {**environment(tmp_path / "compiled"), "S2AC_TEST": token}
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run([*COMMAND, *sweep(path, whole)], env=env, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    assert killed_sweep(sweep(path, killed, on), killed, env, tmp_path, kills, on, strike) > 1
    assert (killed / "results.csv").read_bytes() == (whole / "results.csv").read_bytes()
    names = [row["run"] for row in rows(whole)]
    assert len(names) == 4 * seeds
    for name in names:
        assert digest(killed / "runs" / name) == digest(whole / "runs" / name), name
    until = time.monotonic() + 60  # Ray's agents look for their parent every few seconds
    while processes_with(token) and time.monotonic() < until:
        time.sleep(0.5)
    assert processes_with(token) == []


@pytest.mark.slow
def test_a_sweep_that_is_killed_gives_the_bits_of_one_that_is_not(tmp_path):
    check_killed(tmp_path, "local:2", 6)
