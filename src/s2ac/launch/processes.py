"""Calls side by side, each in a process of its own: one run seldom fills an accelerator."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from s2ac.envs.gymnasium.workers import no_signals
from s2ac.launch.calls import STOPPED, Call, Watch, carry_out
from s2ac.training.signals import signals


def side_by_side(calls: Iterable[Call], at_once: int, logs: Path, retries: int, watch: Watch) -> dict[str, int]:
    """Exit codes by name; what a call prints is in LOGS/NAME.txt. A process that is killed is begun again, at most `retries` times.

    The first SIGINT or SIGTERM is passed on to the calls that run, as a SIGTERM, and no other is begun: it has no code.
    """
    logs.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")  # never forked, since JAX has threads
    waiting, told = [(call, retries) for call in calls], False
    running: dict[str, tuple[BaseProcess, Call, int]] = {}
    codes: dict[str, int] = {}
    with signals() as stop:
        while running or (waiting and not stop.asked):
            while waiting and len(running) < at_once and not stop.asked:
                call, left = waiting.pop(0)
                log = str(logs / f"{call.name}.txt")
                running[call.name] = context.Process(target=_alone, args=(call, log, os.getpid())), call, left
                with no_signals():
                    running[call.name][0].start()
            if stop.asked and not told:
                told = True
                for process, *_ in running.values():
                    process.terminate()
            watch({**codes, **dict.fromkeys(running)})
            wait([process.sentinel for process, *_ in running.values()], timeout=0.5)
            for name in [name for name, (process, *_) in running.items() if not process.is_alive()]:
                process, call, left = running.pop(name)
                code = process.exitcode or 0
                if code < 0 and stop.asked:  # told before it could answer: it has saved nothing and can go on
                    code = STOPPED
                elif code < 0 and left:
                    waiting.insert(0, (call, left - 1))
                    continue
                codes[name] = code
    watch(codes)
    return codes


def _alone(call: Call, log: str, parent: int) -> None:
    """In the new process: what it prints goes to `log`, and it ends soon after its parent."""
    os.setsid()  # a Ctrl-C is the parent's to pass on
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # forgets one that came while it started
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    signal.signal(signal.SIGINT, signal.default_int_handler)
    to = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(to, stream)
    threading.Thread(target=_end_after, args=(parent,), daemon=True).start()
    sys.exit(carry_out(call))


def _end_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)
