"""Whoever reads the output may have gone, be full, or know ASCII alone: a training goes on and saves, an answer that is lost is an error."""

import io
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import s2ac
from runs import COMMAND, digest, environment, train_arguments
from s2ac.cli.main import main
from s2ac.output import progress, say
from s2ac.runs.checkpoint import load_latest
from s2ac.training.signals import signals


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    run = tmp_path_factory.mktemp("trained") / "run"
    assert main(train_arguments("sac", run, 100)) == 0
    return run


def full():
    return open("/dev/full", "w")


def unread():
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "w")


def ascii_only():
    return io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")


def closed():
    stream = ascii_only()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [full, unread, ascii_only, closed, lambda: None])
def test_training_goes_on_and_saves(stream, trained, tmp_path, monkeypatch):
    run = tmp_path / "run"
    both = stream(), stream()
    with monkeypatch.context() as patch:
        for name, given in zip(("stdout", "stderr"), both, strict=True):
            patch.setattr(sys, name, given)
        code = main(train_arguments("sac", run, 100))
    for given in both:
        if given is not None:
            given.close()  # without an error, as the interpreter does at its end
    assert code == 0
    assert digest(run) == digest(trained)


def test_what_cannot_be_encoded_is_escaped():
    stream = ascii_only()
    say("return –", stream)
    assert stream.buffer.getvalue() == b"return \\u2013\n"


@pytest.mark.parametrize(("stream", "code"), [(full, 5), (unread, 141)])
def test_an_answer_that_is_lost_is_an_error(stream, code, trained, monkeypatch, capsys):
    with monkeypatch.context() as patch, stream() as given:
        patch.setattr(sys, "stdout", given)
        assert main(["evaluate", str(trained), "--episodes", "1"]) == code
    assert ("cannot write the output: No space left on device" in capsys.readouterr().err) == (code == 5)


def test_a_bar_on_a_terminal_that_has_gone(monkeypatch):
    main_end, terminal = os.openpty()
    stream = os.fdopen(terminal, "w")
    monkeypatch.setattr(sys, "stderr", stream)
    bar = progress(10, 0)
    assert not bar.disable
    bar.update(5)
    os.close(main_end)
    bar.update(5)
    bar.refresh()
    bar.close()
    with pytest.raises(OSError, match="Input/output error"):
        stream.close()


def test_a_bar_is_shown_where_it_is_asked_for(tmp_path, capfd):
    """This is no terminal, so only `progress_bar=True` shows a bar, in the place of the lines."""
    fields = {"hidden": (8,), "batch_size": 8, "warmup_steps": 20, "log_every": 40, "episodes": 1}
    agent = s2ac.Agent("multigoal", "sac", directory=tmp_path / "run", **fields)
    agent.learn(40, progress_bar=True)
    said = capfd.readouterr()
    assert "40/40" in said.err
    assert "step 40" not in said.out
    agent.learn(40, progress_bar=False)
    said = capfd.readouterr()
    assert "80/80" not in said.err
    assert "step 80 of 80" in said.out


def test_closed_streams_lead_nowhere_and_a_signal_is_still_answered(tmp_path):
    """A file that is opened later must not get the number of a closed stream, nor what is meant for a reader."""
    run = tmp_path / "run"
    command = ["bash", "-c", 'exec "$@" <&- >&- 2>&-', "closed", *COMMAND, *train_arguments("sac", run, 1_000_000)]
    process = subprocess.Popen(command, env=environment(tmp_path / "cache"), cwd=tmp_path)
    until(lambda: (run / "checkpointed").exists())
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert load_latest(run)[3] == []
    for file in (path for path in run.rglob("*") if path.is_file()):
        data = file.read_bytes()
        assert b"stopping after" not in data
        assert file.name in ("report.html", "manifest.json") or b"steps/s" not in data
    assert all(line.startswith(b"{") for line in (run / "metrics.jsonl").read_bytes().splitlines())


def until(what, seconds=120.0):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


# --- Signals while the main thread is busy in a compilation --------------------------------------------------


def busy():
    """A process whose main thread works in C for half a minute, as in a compilation: Python's handlers do not run meanwhile."""
    code = """
import hashlib
from s2ac.training.signals import signals
with signals():
    print("busy", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 30_000_000)
"""
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_first_signal_is_answered_at_once_and_the_second_ends_at_once():
    process = busy()
    assert process.stdout.readline() == "busy\n"
    begun = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.stderr.readline() == "\n"
    assert "stopping after this chunk of steps" in process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) in (143, -15)
    assert time.monotonic() - begun < 5
    process.communicate()


def test_handlers_and_threads_are_put_back():
    handlers = [signal.getsignal(which) for which in (signal.SIGINT, signal.SIGTERM)]
    before = threading.active_count()
    with signals() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.asked
    assert [signal.getsignal(which) for which in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert threading.active_count() == before
    assert signal.set_wakeup_fd(-1) == -1


def test_time_left_is_said_after_the_first_chunk_with_updates(tmp_path, capsys):
    """That one compiles them, and the warm-up before it is faster: their speeds say nothing of what follows."""
    assert main([*train_arguments("sac", tmp_path / "run", 160), "--warmup-steps", "40"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("step ")]
    assert [" left" in line for line in lines] == [False, False, True, True]
