"""5,000 inputs of every kind: each is understood as it was said, or refused in one line. A few of them in the fast suite, all in the slow one."""

import contextlib
import dataclasses
import io
import itertools
import math
import os
import re
import socket
import threading
import time
import typing

import gymnasium
import hypothesis
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import strategies

from damage import answer
from report_runs import make_run
from s2ac.agent import Agent
from s2ac.algorithms import ALGORITHMS
from s2ac.cli import train as training
from s2ac.cli.main import COMMANDS, parse
from s2ac.envs.gymnasium.adapter import HostEnvs
from s2ac.errors import S2acError
from s2ac.report.watch import make_server
from s2ac.settings import RunConfig, resolve


def few_or(many, few):
    """A few examples always, many in the slow suite."""
    return pytest.mark.parametrize("num", [few, pytest.param(many, marks=pytest.mark.slow)])


def each(num, strategy, check):
    """Check so many examples, the same at every run."""
    count = itertools.count()
    settings = hypothesis.settings(
        max_examples=num, deadline=None, derandomize=True, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )  # fmt: skip

    def counted(case):
        next(count)
        check(case)

    settings(hypothesis.given(strategy)(counted))()
    assert next(count) >= num


NUMBER = strategies.one_of(
    strategies.integers(), strategies.integers(0, 300), strategies.floats(), strategies.floats(0, 1)
)


# --- Command lines -------------------------------------------------------------------------------------------

WEIRD = ["nan", "inf", "-inf", "-1", "0", "1e400", "None", "True", "", "[]", "64 64", "0x10", "9" * 40, "--", "-", "--steps",
         "\0", "é🙂", "a" * 3000, "1,2", "sample", "../..", "%s", "{x}", "1_0", " 5 ", "٣", "1e3", "5.0", "relu", "all"]  # fmt: skip
VALUE = strategies.one_of(strategies.sampled_from(WEIRD), NUMBER.map(str), NUMBER.map(str), strategies.text(max_size=8))


@strategies.composite
def trainings(draw):
    algo = draw(strategies.sampled_from(sorted(ALGORITHMS)))
    fields = [field.name for config in (ALGORITHMS[algo].config, RunConfig) for field in dataclasses.fields(config)]
    arguments = [
        "train",
        draw(strategies.sampled_from(["multigoal"] * 3 + ["Hopper-v5", "nothing", ""])),
        "--algo",
        algo,
    ]
    for _ in range(draw(strategies.integers(1, 3))):
        name = draw(strategies.sampled_from([*fields, "out", "preset", "resume"])).replace("_", "-")
        arguments.append(f"--{draw(strategies.sampled_from(['', '', '', 'no-']))}{name}")
        values = draw(strategies.lists(VALUE, max_size=2))
        if values and draw(strategies.booleans()):
            arguments[-1] += f"={values.pop()}"
        arguments += values
    return arguments


@strategies.composite
def other_commands(draw):
    name = draw(strategies.sampled_from([name for name in COMMANDS if name != "train"]))
    flags = [f"--{field.name.replace('_', '-')}" for field in dataclasses.fields(COMMANDS[name])]
    word = strategies.one_of(strategies.sampled_from([*flags, "entropy", "multigoal", "quick", "nowhere"]), VALUE)
    return [draw(strategies.sampled_from([name] * 5 + [f"{name}x"])), *draw(strategies.lists(word, max_size=5))]


def one_word(hint, word):
    """What a word means for a type, as Python reads it."""
    if typing.get_origin(hint) is typing.Annotated:
        hint = typing.get_args(hint)[0]
    kinds = typing.get_args(hint) or (hint,)
    if word == "None" and type(None) in kinds:
        return None
    kind = next(kind for kind in kinds if kind is not type(None))
    return word if kind is str else kind(word)


def meant(arguments, hints):
    """What a line that was understood must have said: of each field its last words."""
    said = {}
    for index, argument in enumerate(arguments):
        if not argument.startswith("--"):
            continue
        flag, equals, value = argument.partition("=")
        name = flag[2:].replace("-", "_")
        words = (
            [value]
            if equals
            else list(itertools.takewhile(lambda word: not word.startswith("--"), arguments[index + 1 :]))
        )
        if name.startswith("no_") and name[3:] in hints:
            said[name[3:]] = False
        elif name in hints and typing.get_origin(hints[name]) is tuple:
            said[name] = tuple(one_word(typing.get_args(hints[name])[0], word) for word in words)
        elif name in hints:
            said[name] = one_word(hints[name], words[0]) if words else True
    return said


def assert_meant(command, arguments):
    """A training that is begun is the one that was asked for, and no number of it is nonsense."""
    kinds = (RunConfig, type(ALGORITHMS[command.algo].config))
    hints = {name: hint for kind in kinds for name, hint in typing.get_type_hints(kind).items()}
    said = meant(arguments[2:], hints)
    wanted = resolve(command.env, command.algo, command.preset, said)
    assert (command.run, command.algorithm) == (wanted.run, wanted.algorithm), said
    for config in (command.run, command.algorithm):
        for field in dataclasses.fields(config):
            value = getattr(config, field.name)
            assert not isinstance(value, float) or math.isfinite(value), field.name
            assert not isinstance(value, int) or value >= 0, field.name


def understood(arguments):
    """What is asked for, `None` for help, or a refusal in one line, of ours or by the parser."""
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        try:
            return parse(arguments)
        except S2acError as error:
            found, code = str(error), error.exit_code
        except SystemExit as end:
            found, code = None, end.code
    assert code in (0, 2)
    assert "\n" not in (found or "")
    return found


@few_or(2000, 25)
def test_command_lines_of_trainings(num, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    begun = []
    monkeypatch.setattr(training, "_start", begun.append)  # understood, but not trained

    def check(arguments):
        command = understood(arguments)
        if callable(command):
            answer(command)
        if begun:
            assert_meant(begun.pop(), arguments)

    each(num, trainings(), check)
    assert not os.listdir(tmp_path)


@few_or(400, 20)
def test_command_lines_of_other_commands(num, monkeypatch, tmp_path):
    """There is no run here, so those that need one say so."""
    monkeypatch.chdir(tmp_path)

    def check(arguments):
        command = understood(arguments)
        if command is None or isinstance(command, str):
            return
        for name, value in meant(arguments[1:], typing.get_type_hints(type(command), include_extras=False)).items():
            assert getattr(command, name) == value
        if arguments[0] not in ("reproduce", "selftest"):
            assert isinstance(answer(command), str)

    each(num, other_commands(), check)
    assert not os.listdir(tmp_path)


# --- Settings and agents -------------------------------------------------------------------------------------

JSON = strategies.recursive(
    strategies.none() | strategies.booleans() | NUMBER | strategies.text(max_size=5),
    lambda inner: strategies.lists(inner, max_size=3) | strategies.dictionaries(strategies.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
ODD = JSON | strategies.binary(max_size=3) | strategies.sampled_from(
    ["multigoal", "sac", "default", "Pendulum-v1", "s2ac/Multigoal-v0", "os:x", "a:b:c", ":", "json:", "\0", int, dict, print, lambda: None, np.zeros(3),
     np.float32(3), np.array(2), np.array([[1]]), ("a",), (1, "a"), object(), 10**30, 2**63, "3", 1e300, object]
)  # fmt: skip


@few_or(1000, 80)
def test_settings(num):
    fields = [
        name
        for kind in ("run", "algorithm")
        for name in dataclasses.asdict(getattr(resolve("multigoal", "s2ac"), kind))
    ]
    given_ = strategies.dictionaries(strategies.sampled_from(fields), ODD, min_size=1, max_size=3)

    def check(case):
        algo, said = case
        found = answer(resolve, "multigoal", algo, "default", said)
        if isinstance(found, str):
            return
        for name, value in said.items():
            kept = getattr(found.run, name, None) if hasattr(found.run, name) else getattr(found.algorithm, name)
            value = np.asarray(value).tolist() if isinstance(value, np.ndarray | np.generic) else value
            if isinstance(kept, float) and isinstance(value, int):
                value = float(value)  # 10**30 is no float; the nearest one is meant
            assert kept == (tuple(value) if isinstance(value, list) else value), name
            assert not isinstance(kept, float) or math.isfinite(kept), name

    each(num, strategies.tuples(strategies.sampled_from(sorted(ALGORITHMS)), given_), check)


@few_or(300, 40)
def test_agents(num, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def check(said):
        arguments = {"env": "multigoal", "algo": "sac", "hidden": (4,), "capacity": 10, **said}
        if isinstance(arguments.get("seeds"), int) and arguments["seeds"] > 3:
            arguments["seeds"] = 10**9
        answer(lambda: Agent(**arguments, directory="never/written"), memory=2**30)

    each(
        num,
        strategies.dictionaries(strategies.sampled_from(["env", "algo", "seeds", "preset"]), ODD, min_size=1),
        check,
    )
    assert not os.listdir(tmp_path)


# --- Environments --------------------------------------------------------------------------------------------

KINDS = [np.float32, np.float64, np.float16, np.uint8, np.int8, np.int64]
BOXES = strategies.builds(
    lambda kind, shape: spaces.Box(0, 100, shape, kind) if kind != np.int64 else spaces.Box(-(2**63), 2**63 - 1, shape, kind),
    strategies.sampled_from(KINDS), strategies.sampled_from([(), (1,), (3,), (2, 2)]),
)  # fmt: skip
PARTS = BOXES | strategies.sampled_from(
    [spaces.Discrete(3), spaces.Discrete(2, start=5), spaces.MultiDiscrete([2, 3]), spaces.MultiBinary(2)]
)
SPACES = (
    PARTS
    | strategies.builds(lambda a, b: spaces.Dict({"a": a, "b": b}), PARTS, PARTS)
    | strategies.tuples(PARTS, BOXES).map(spaces.Tuple)
)
NONSENSE = [None, "x", {}, [], (), math.nan, math.inf, -math.inf, -1, 7.5, 10**30, b"\0", np.array([math.nan]), np.array([[1, 2], [3, 4]]), object(), [[1], [1, 2]],
            np.array(["a"]), np.array([object()]), np.float32(math.nan), np.complex64(1j), np.iinfo(np.int64).min, {"a": 1}]  # fmt: skip


class Drawn(gymnasium.Env):
    """Spaces, endings and a fault at some moment, as they were drawn; keeps what it gave and got."""

    def __init__(self, case):
        self.case, self.given, self.time, self.seen, self.resets = case, [], 0, [], 0
        self.observation_space, self.action_space = case["space"], case["actions"]
        self.observation_space.seed(0)

    def fault(self, where, good):
        place, moment, how = self.case["fault"]
        if place != where or moment != (self.resets if where == "reset" else self.time):
            return good
        if isinstance(how, BaseException):
            raise how
        return how(good)

    def observed(self):
        self.given.append(self.observation_space.sample())
        return self.given[-1]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.resets += 1
        return self.fault("reset", (self.observed(), {}))

    def step(self, action):
        assert self.action_space.contains(action), action
        self.time += 1
        ended = self.time % self.case["length"] == 0
        step = (self.observed(), 0.5 * self.time, ended and self.case["terminates"], ended, {})
        self.seen.append(step)
        return self.fault("step", step)


@strategies.composite
def environments(draw):
    size, kind = draw(strategies.integers(1, 3)), draw(strategies.sampled_from([np.float32, np.float64]))
    low = np.array(draw(strategies.lists(strategies.integers(-999, 999), min_size=size, max_size=size)))
    place = draw(strategies.sampled_from(["none", "reset", "step", "step", "step"]))
    error = strategies.sampled_from([ValueError("a\nb"), KeyError(3), AssertionError(), gymnasium.error.ResetNeeded("x"), MemoryError(), OSError(5, "y"), StopIteration(), RecursionError()])  # fmt: skip
    value = draw(strategies.sampled_from(NONSENSE) | strategies.sampled_from([-1, 3, 7, 0.5, math.nan]))
    index = draw(strategies.sampled_from([0, 0, 0, 1, 2, 3, 4]))
    put = lambda good, new: (*good[:index], new, *good[index + 1 :])  # noqa: E731
    wrong = strategies.sampled_from(
        [lambda good: value, lambda good: good[:index], lambda good: (*good, 1), *4 * [lambda good: put(good, value)],
         *4 * [lambda good: put(good, {**good[index], "b": value} if isinstance(good[index], dict) else value)]]
    )  # fmt: skip
    return {
        "space": draw(SPACES),
        "actions": spaces.Box(low.astype(kind), (low + draw(strategies.integers(1, 99))).astype(kind), dtype=kind),
        "length": draw(strategies.integers(1, 5)),
        "terminates": draw(strategies.booleans()),
        "fault": (place, draw(strategies.integers(1, 4)), draw(wrong | wrong | wrong | error)),
    }  # fmt: skip


def is_flag(value):
    return np.asarray(value).dtype.kind in "fiub" and np.size(value) == 1 and np.asarray(value).item() in (0, 1)


def holds(space, value):
    """Whether a value is one that a space declares; of another number type it may be."""
    if isinstance(space, spaces.Dict):
        return isinstance(value, dict) and all(key in value and holds(part, value[key]) for key, part in space.items())
    if isinstance(space, spaces.Tuple):
        return isinstance(value, tuple | list) and len(value) == len(space) and all(map(holds, space, value))
    if not isinstance(space, spaces.Box):
        return space.contains(value)
    try:
        array = np.asarray(value)
    except ValueError:
        return False
    whole = (
        array.dtype.kind in "iub"
        or space.dtype.kind == "f"
        or (array.dtype.kind == "f" and np.all(array == np.rint(array)))
    )
    return (
        array.dtype.kind in "fiub"
        and whole
        and array.size == np.prod(space.shape)
        and bool(np.all(np.abs(array.astype(float)) <= 1e8))
    )


def is_step(space, given):
    """Whether what a step returned can be one."""
    if not isinstance(given, tuple) or len(given) != 5:
        return False
    reward = np.asarray(given[1]) if not isinstance(given[1], list) else np.zeros(2)
    number = reward.size == 1 and reward.dtype.kind in "fiub" and abs(float(reward.item())) <= 1e8
    return holds(space, given[0]) and number and is_flag(given[2]) and is_flag(given[3])


@few_or(800, 40)
def test_environments(num):
    """A step that is none never reaches the board, and one that is reaches it as it is."""

    def check(case):
        space, given = case["space"], {}

        def make():
            env = Drawn(case)
            for name in ("step", "reset"):
                call = getattr(env, name)
                setattr(
                    env,
                    name,
                    lambda *a, name=name, call=call, **k: given.__setitem__(name, call(*a, **k)) or given[name],
                )
            return env

        def assert_is(found, observation):
            assert holds(space, observation), observation
            np.testing.assert_array_equal(found[0, 0], np.float32(spaces.flatten(space, observation)).ravel())

        def play():
            team = HostEnvs(make, "drawn", [0], 1, 0)
            assert_is(team.observation, given["reset"][0])
            draw = np.random.default_rng(0)
            for _ in range(6):
                step = team.step(draw.uniform(-2e3, 2e3, (1, 1, team.spec.action_size)))
                assert is_step(space, given["step"]), given["step"]
                observation, reward, ended, cut, _ = given["step"]
                assert_is(step.next_observation, observation)
                assert_is(step.observation, given["reset"][0] if ended or cut else observation)
                assert (step.reward, step.terminated) == (np.float32(np.asarray(reward).item()), bool(ended))
                assert step.truncated == (bool(cut) and not ended)
            return team

        with np.errstate(all="ignore"):
            found = answer(play, memory=2**30)
        if case["fault"][0] == "none":
            assert isinstance(found, HostEnvs) or "max_value" in found, found

    each(num, environments(), check)


# --- The watch server ----------------------------------------------------------------------------------------


LINES = (b"only GET\n", b"HTTP/0.9 is too old\n")


@strategies.composite
def requests(draw):
    """Pieces of a request, and whether it is left open."""
    junk = strategies.binary(max_size=30)
    word = lambda *usual: strategies.sampled_from([each.encode() for each in usual]) | junk  # noqa: E731
    line = (
        draw(word("GET", "GET", "GET", "POST", "HEAD", "get", ""))
        + b" "
        + draw(word("/", "/data.json", "/data.json?version=1", "/../run.json", "//", "/\0", "*", "http://["))
    )
    line += b" " + draw(word("HTTP/1.0", "HTTP/1.1", "HTTP/9", "")) + b"\r\n"
    header = word(
        "Host: localhost:PORT",
        "Host: 127.0.0.1:PORT",
        "Host: evil",
        "A: b",
        ": x",
        "Content-Length: 9",
        "Transfer-Encoding: chunked",
        "Connection: keep-alive",
    )
    head = b"".join(one + b"\r\n" for one in draw(strategies.lists(header, max_size=4)))
    whole = line + head + draw(strategies.sampled_from([b"\r\n", b"\r\n", b"", b"\n"])) + draw(junk)
    if draw(strategies.integers(0, 4)) == 0:
        whole = whole[: draw(strategies.integers(0, len(whole)))]
    return whole, draw(strategies.integers(1, 4)), draw(strategies.integers(0, 9)) == 0


@few_or(500, 25)
def test_the_watch_server(num, tmp_path, capfd):
    """Malformed, slow and unfinished requests get a known answer or none, and the server serves the next one."""
    run = make_run(tmp_path / "run", records=4)
    server = make_server(run)
    server.patience = 0.2
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    port = str(server.server_address[1]).encode()

    def ask(whole, pieces=1, left_open=False):
        with socket.create_connection(server.server_address, timeout=20) as connection, contextlib.suppress(OSError):
            for piece in np.array_split(np.frombuffer(whole.replace(b"PORT", port), np.uint8), pieces):
                connection.sendall(piece.tobytes())
                time.sleep(0.002 * (pieces - 1))
            if not left_open:
                connection.shutdown(socket.SHUT_WR)
            found = b""
            while part := connection.recv(65536):
                found += part
            return found
        return b""

    def check(request):
        found = ask(*request)
        status = re.match(rb"HTTP/1\.[01] (\d+) ", found)
        assert (
            not found
            or (status and status[1] in (b"200", b"204", b"400", b"403", b"404", b"405"))
            or found in LINES  # HTTP/0.9 has no status
        ), found[:200]
        assert not re.search(rb"Traceback|File \"", found)
        if status and status[1] != b"200":
            assert len(found) < 1000

    try:
        each(num, requests(), check)
        assert b" 200 " in ask(b"GET / HTTP/1.0\r\nHost: localhost:PORT\r\n\r\n")
        ended = time.monotonic() + 5
        while server.until and time.monotonic() < ended:
            time.sleep(0.02)
        assert not server.until  # no connection is kept
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert capfd.readouterr() == ("", "")
