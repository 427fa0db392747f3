"""Runs as training leaves them, without the training: plain, odd and hostile ones."""

import dataclasses
import json
from html.parser import HTMLParser

import numpy as np

from s2ac.algorithms.s2ac import S2acConfig
from s2ac.report.records import Reader
from s2ac.settings import RunConfig

ABOUT = {
    "version": 3,
    "env": "multigoal",
    "algo": "s2ac",
    "algorithm": dataclasses.asdict(
        S2acConfig(hidden=(8, 8), learn_alpha=False, min_std=0.3, form="normalized", num_references=0, step_size=0.1)
    ),
    "run": dataclasses.asdict(RunConfig(seeds=3, steps=1200, log_every=100, warmup_steps=50)),
}


def train_row(seed, step, **changes):
    row = {
        "return": step / 10 + seed * 7 % 5,
        "alpha": 1.0,
        "entropy": 0.5,
        "entropy_start": 2.0,
        "entropy_sampler": -1.0,
    }
    row |= {
        "entropy_squash": -0.5,
        "guarded": 0.1,
        "step_size": 0.1,
        "jacobian_norm": 0.2,
        "particle_std": 0.5,
        "std": 0.7,
    }
    row |= {"critic_loss": 3.0, "q_mean": 1.0, "episodes": 5.0, "wall_steps_per_second": 900.0}
    return {"kind": "train", "seed": seed, "env_step": step, **row, **changes}


def make_run(directory, seeds=3, records=12, about=None, changes=None, evaluate=True):
    """A run's directory as training leaves it, without its checkpoints."""
    directory.mkdir(parents=True)
    (directory / "run.json").write_text(json.dumps({**ABOUT, **(about or {})}))
    rows = []
    for step in range(100, 100 * records + 1, 100):
        rows += [train_row(seed, step, **(changes or {})) for seed in range(seeds)]
        if evaluate and step % 400 == 0:
            rows += [{"kind": "evaluation", "seed": s, "env_step": step, "rule": "sample", "return": step / 9 + 3 * s,
                      "returns": [1.0], "length": 9.0} for s in range(seeds)]  # fmt: skip
    (directory / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return directory


def read(*directories):
    readers = [Reader(directory) for directory in directories]
    for reader in readers:
        reader.update()
    return readers


def cloud_data(dimension, num_states=3):
    """Clouds as `collect_clouds` gives them."""
    generator = np.random.default_rng(0)
    grid = {1: 121, 2: 37**2}.get(dimension)
    states = []
    for index in range(num_states):
        particles, executed = generator.uniform(-1, 1, (2, 64, dimension))
        state = {"episode": 0, "time": index, "observation": [float(index), 0.5], "entropy": 1.0}
        state |= {"executed": executed.tolist(), "executed_q": executed[:, 0].tolist()}
        state |= {"particles": particles.tolist(), "log_prob": [-1.0] * 64, "q": particles[:, 0].tolist()}
        states.append(state | ({"grid": generator.uniform(-9, 9, grid).tolist()} if grid else {}))
    common = {"seed": 0, "step": 1200, "rule": "sample", "low": [-1.0] * dimension, "high": [1.0] * dimension, "set": 8}
    return {**common, "states": states, "paths": [[[0.0, 0.5], [1.0, 0.5], [2.0, 0.5]]] if dimension == 2 else None}


HOSTILE = [
    "</script><script>window.hacked=1</script>", "<img src=x onerror=window.hacked=1>", "<svg/onload=window.hacked=1>",
    "<!--", "-->", "]]>", "<![CDATA[", "'\"><script>alert(1)</script>", "\" onmouseover=\"window.hacked=1", "' autofocus onfocus='alert(1)",
    "javascript:window.hacked=1", "data:text/html,<script>alert(1)</script>", "</style><script>window.hacked=1</script>",
    "</title><script>window.hacked=1</script>", "<iframe src='javascript:alert(1)'>", "<base href=//evil.example/>",
    "<meta http-equiv=refresh content='0;url=http://evil.example'>", "<link rel=stylesheet href=http://evil.example/x.css>",
    "{{constructor.constructor('window.hacked=1')()}}", "${window.hacked=1}", "`;window.hacked=1;`", "\\u003cscript\\u003e",
    "=cmd|' /C calc'!A0", "@SUM(1+1)*cmd()", "\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b[2J", "a\u202egnp.exe\u2066\u200f", "nul\x00byte\r\nsecond line",
    "\u2028\u2029\x85", "__proto__", "constructor", "\ud800 lone", "\U000e0041tag\ufeff", "A" * 100_000, "@@DATA@@ @@SCRIPT@@", "\u0301" * 200,
]  # fmt: skip


class Outline(HTMLParser):
    """Elements and the text of scripts, as a browser's parser sees them."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.scripts = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.lasttag == "script" and self.elements[-1][0] == "script":
            self.scripts[-1] += data


def hostile_run(directory):
    """Hostile strings wherever a run can hold text."""
    about = {
        "env": HOSTILE[0],
        "algo": HOSTILE[1],
        "algorithm": {**{text: text for text in HOSTILE}, "hidden": HOSTILE},
        "run": {**ABOUT["run"], **{text: [text] for text in HOSTILE}},
    }
    run = make_run(directory, about=about, changes=dict.fromkeys(HOSTILE, 1.0))
    rows = [{"kind": "evaluation", "seed": 0, "env_step": 1200, "rule": text, "return": 1.0} for text in HOSTILE]
    rows += [{"kind": text, "seed": 0, "env_step": 100, "x": 1.0} for text in HOSTILE]
    with (run / "metrics.jsonl").open("a") as file:
        file.write("".join(json.dumps(row) + "\n" for row in rows))
    return run
