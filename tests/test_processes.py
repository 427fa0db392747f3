"""Calls side by side: how many, what they leave, and how they stop."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from s2ac.errors import S2acError
from s2ac.launch.calls import Call, Place, place_of
from s2ac.launch.launch import launch
from s2ac.training.signals import signals

SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_processes import Call, Place, launch, waits
if __name__ == "__main__":
    codes = launch([Call(n, waits, (Path({there!r}) / n,)) for n in "abc"], Place("local", 2), Path({there!r}) / "logs")
    print(sorted(codes.items()))
"""


def works(path: Path, seconds: float, code: int) -> int:
    """Notes when it begins and ends."""
    begun = time.time()
    time.sleep(seconds)
    print("worked", flush=True)
    path.write_text(f"{begun} {time.time()}")
    return code


def fails() -> int:
    raise S2acError("no such thing")


def waits(path: Path) -> int:
    """Until it is told to stop."""
    with signals() as stop:
        path.write_text(str(os.getpid()))
        while not stop.asked:
            time.sleep(0.05)
    path.write_text("stopped")
    return 75


def test_codes_logs_and_no_more_at_once_than_asked(tmp_path, capsys):
    calls = [Call(f"call{i}", works, (tmp_path / f"{i}", 0.3, i)) for i in range(4)]
    codes = launch([*calls, Call("bad", fails, ())], Place("local", 2), tmp_path / "logs")
    assert codes == {"call0": 0, "call1": 1, "call2": 2, "call3": 3, "bad": 2}
    assert (tmp_path / "logs" / "call1.txt").read_text() == "worked\n"
    assert (tmp_path / "logs" / "bad.txt").read_text() == "error: no such thing\n"
    assert "call3: ended with code 3" in capsys.readouterr().out
    spans = [tuple(map(float, (tmp_path / f"{i}").read_text().split())) for i in range(4)]
    assert max(sum(a <= begin < b for a, b in spans) for begin, _ in spans) <= 2


def begin(tmp_path):
    """A process with two calls that wait and a third that is not begun."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parent), there=str(tmp_path)))
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    until(lambda: all((tmp_path / name).exists() and (tmp_path / name).read_text() for name in "ab"))
    return process


def until(what, seconds=60.0):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_passed_on_and_nothing_else_is_begun(number, tmp_path):
    process = begin(tmp_path)
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert out.splitlines()[-1] == "[('a', 75), ('b', 75)]"
    assert [(tmp_path / name).read_text() for name in "ab"] == ["stopped", "stopped"]
    assert not (tmp_path / "c").exists()


def test_calls_end_with_their_parent(tmp_path):
    process = begin(tmp_path)
    process.kill()
    process.communicate()
    until(lambda: all((tmp_path / name).read_text() == "stopped" for name in "ab"))


def dies_once(path: Path) -> int:
    """Killed at the first call, done at the second."""
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 0


def test_a_killed_process_is_begun_again(tmp_path):
    seen = []
    calls = [Call("once", dies_once, (tmp_path / "once",)), Call("bad", fails, ())]
    assert launch(calls, Place("local", 2), tmp_path / "logs", 1, seen.append) == {"once": 0, "bad": 2}
    assert {"once": None, "bad": None} in seen
    assert seen[-1] == {"once": 0, "bad": 2}
    (tmp_path / "once").unlink()
    assert launch(calls[:1], Place("local", 2), tmp_path / "logs") == {"once": -signal.SIGKILL}


@pytest.mark.parametrize("on", ["", "local", "ray://", "ray://host", "local:0", "local:-1", "cloud", "local:x"])
def test_an_unknown_place_is_refused(on):
    with pytest.raises(S2acError, match=r"on = '.*': must be here, local:N"):
        place_of(on)


def test_nothing_to_do_needs_no_place(tmp_path):
    assert launch([], place_of("ray"), tmp_path) == launch([], place_of("local:2"), tmp_path) == {}


def test_places():
    assert place_of("here").kind == "here"
    assert place_of("local:3")[:2] == ("local", 3)
    assert place_of("ray", 2, 0.5) == ("ray", 1, "", 2, 0.5)
    assert place_of("ray://10.0.0.1:6379").address == "10.0.0.1:6379"
