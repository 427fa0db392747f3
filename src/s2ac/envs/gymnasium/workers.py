"""Processes that step environments, for `HostEnvs(workers=…)`.

Every worker holds consecutive rows of one board in memory that all of them map; a step costs a byte to each worker and
one back. The memory is an unnamed map made by `multiprocessing`, so that nothing is left to unlink, however a run ends.
Workers are spawned, never forked, since JAX has threads, and they import no JAX unless the environment does.

Processes rather than threads: MuJoCo frees Python's lock in mj_step, but only 60 % (Hopper-v5) to 72 % (HalfCheetah-v5,
Humanoid-v5) of a step's time is spent there, so that threads, however many, could at best be 2.5 to 3.6 times as fast as
one. A step of an environment that does nothing costs about 50 µs more in a worker than in this process (median, two busy
cores).
"""

import contextlib
import multiprocessing
import os
import select
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from multiprocessing.util import Finalize
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium
import numpy as np

from s2ac.envs.gymnasium.board import Board, Place, board_shapes
from s2ac.envs.gymnasium.simulators import Job, MakeEnv, Simulators
from s2ac.errors import InvalidArgument, S2acError

if TYPE_CHECKING:
    from s2ac.types import EnvSpec

STEP, DONE = b"s", b"d"  # what no pickle begins with
SLOW = 600.0  # seconds for all that is no step: to start, to make environments, to replay episodes


def packed_of(value: Any) -> bytes:
    """A value as `multiprocessing` sends it from process to process; nothing of this kind is ever read from a file."""
    return bytes(ForkingPickler.dumps(value))


class WorkerLost(S2acError):
    """A worker that died or gave no answer."""

    exit_code = 7


class Shared(NamedTuple):
    """A board's memory, and its shapes."""

    memory: Any  # multiprocessing.RawArray
    action: tuple[int, int]
    result: tuple[int, int]

    def board(self) -> Board:
        """The board."""
        floats = np.frombuffer(self.memory, np.float32)
        split = self.action[0] * self.action[1]
        return Board(floats[:split].reshape(self.action), floats[split:].reshape(self.result))


class Workers:
    """A team of processes; see `adapter.Team`."""

    def __init__(
        self, make: MakeEnv, job: Job, places: list[Place], spec: "EnvSpec", workers: int, timeout: float
    ) -> None:
        """Start them, at most one per environment; `timeout` is in seconds per step."""
        self.job, self.places, self.timeout = job, places, timeout
        num = min(workers, len(places))
        edges = [len(places) * index // num for index in range(num + 1)]
        self.parts = [slice(begin, end) for begin, end in pairwise(edges)]
        self.step_count = 0
        self._owed = False  # whether answers are on their way
        refused = f"workers = {workers}: this environment cannot be sent to another process; use workers = 0"
        try:
            packed = packed_of(make)
        except Exception as error:
            raise InvalidArgument(refused) from error
        context = multiprocessing.get_context("spawn")
        action, result = board_shapes(len(places), spec)
        shared = Shared(context.RawArray("f", action[0] * action[1] + result[0] * result[1]), action, result)
        self.board = shared.board()
        self.pipes: list[Connection] = []
        self.processes: list[BaseProcess] = []
        self._end = Finalize(self, end, args=(self.processes, self.pipes), exitpriority=10)
        with no_signals():
            for index, part in enumerate(self.parts):
                mine, theirs = context.Pipe()
                arguments = (theirs, packed, refused, job, places[part], shared, part)
                process = context.Process(target=work, args=arguments, name=f"s2ac-worker-{index}", daemon=True)
                self.pipes.append(mine)
                process.start()
                self.processes.append(process)
                theirs.close()  # so that the pipe ends with the worker
        self.pollers = []
        for pipe in self.pipes:
            poller = select.poll()
            poller.register(pipe.fileno(), select.POLLIN)
            self.pollers.append(poller)
        self._gather(SLOW, "while it started (a script that trains needs `if __name__ == '__main__':`)")

    def send(self, step: int) -> None:
        """Wake every worker for a step."""
        self.step_count = step
        self._write([STEP] * len(self.pipes))

    def receive(self) -> None:
        """Wait for all of them."""
        self._gather(self.timeout)

    def ask(self, method: str, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """Call a method of every worker's simulators; their answers."""
        self._write([packed_of((method, *given)) for given in arguments])
        return self._gather(SLOW)

    def close(self) -> None:
        """End the workers."""
        self._end()

    def _write(self, messages: list[bytes]) -> None:
        if not self.processes:
            raise WorkerLost(f"env {self.job.name}, step {self.step_count}: the workers have ended")
        if self._owed:  # whoever asked did not wait
            self._gather(SLOW)
        self._owed = True
        for index, (pipe, message) in enumerate(zip(self.pipes, messages, strict=True)):
            try:
                pipe.send_bytes(message)
            except OSError as error:
                raise self._lost(index, self._died(index)) from error

    def _gather(self, seconds: float, when: str = "") -> list[Any]:
        """The answer of every worker; the error of the first that has one, after all have answered."""
        deadline = time.monotonic() + seconds
        answers = [self._answer(index, deadline, seconds, when) for index in range(len(self.pipes))]
        self._owed = False
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return answers

    def _answer(self, index: int, deadline: float, seconds: float, when: str) -> Any:
        left = max(0, deadline - time.monotonic())
        if not self.pollers[index].poll(1000 * left):
            raise self._lost(index, f"gave no answer within {seconds:g} s")
        try:
            message = self.pipes[index].recv_bytes()
        except (EOFError, OSError) as error:
            raise self._lost(index, f"{self._died(index)} {when}".rstrip()) from error
        return None if message == DONE else ForkingPickler.loads(message)

    def _died(self, index: int) -> str:
        process = self.processes[index]
        process.join(5)
        code = process.exitcode
        how = "" if code is None else f" by signal {-code}" if code < 0 else f" with exit code {code}"
        return f"ended{how}"

    def _lost(self, index: int, what: str) -> WorkerLost:
        """The error; the others are ended, since their answers would be taken for those of a later step."""
        first, last = (self.places[self.parts[index]][edge] for edge in (0, -1))
        held = f"seed {first.seed}, environment {first.environment}"
        if last != first:
            held += f" to seed {last.seed}, environment {last.environment}"
        self.close()
        return WorkerLost(
            f"env {self.job.name}, step {self.step_count}: worker {index} ({held}) {what}; the last checkpoint is good"
        )


def end(processes: list[BaseProcess], pipes: list[Connection]) -> None:
    """Let workers go by closing their pipes; those that stay are killed."""
    for pipe in pipes:
        pipe.close()
    deadline = time.monotonic() + 2
    for process in processes:
        process.join(max(0, deadline - time.monotonic()))
        if process.is_alive():
            process.kill()
            process.join()
        process.close()
    processes.clear()
    pipes.clear()


@contextmanager
def no_signals() -> Iterator[None]:
    """Processes started within are born deaf to Ctrl-C and SIGTERM, which are the parent's to handle; it gets them after."""
    resource_tracker.ensure_running()  # every process start sees to that, and the first one would lift the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def work(
    pipe: Connection, packed: bytes, refused: str, job: Job, places: list[Place], shared: Shared, part: slice
) -> None:
    """A worker's life: make environments, then answer until the pipe ends."""
    for which in (signal.SIGINT, signal.SIGTERM):
        signal.signal(which, lambda *_: None)  # not SIG_IGN, which programs that an environment starts would inherit
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    os.environ["JAX_PLATFORMS"] = "cpu"  # of an environment in JAX: the accelerator is the parent's
    threading.Thread(target=follow_parent, daemon=True).start()
    simulators = None
    with contextlib.suppress(EOFError, OSError):
        try:
            simulators = Simulators(unpacked(packed, refused), job, places, shared.board().part(part))
            pipe.send_bytes(DONE)
        except Exception as error:
            unknown = isinstance(error, gymnasium.error.UnregisteredEnv)  # registered in the parent only
            pipe.send_bytes(parcel(InvalidArgument(refused) if unknown else error))
            return
        while True:
            message = pipe.recv_bytes()
            try:
                if message == STEP:
                    simulators.step()
                    answer = DONE
                else:
                    method, *arguments = ForkingPickler.loads(message)
                    answer = packed_of(getattr(simulators, method)(*arguments))
            except Exception as error:
                answer = parcel(error)
            pipe.send_bytes(answer)
    if simulators is not None:
        simulators.close()


def unpacked(packed: bytes, refused: str) -> MakeEnv:
    """The function that makes an environment, as it was sent."""
    try:
        make: MakeEnv = ForkingPickler.loads(packed)
    except Exception as error:
        raise InvalidArgument(refused) from error
    return make


def parcel(error: Exception) -> bytes:
    """An exception for the parent, with its traceback if it is not one of ours; its text alone if it cannot be sent."""
    if error.__cause__ is not None or not isinstance(error, S2acError):
        error.add_note("in a worker:\n" + "".join(traceback.format_exception(error)))
    try:
        packed = packed_of(error)
        ForkingPickler.loads(packed)
    except Exception:
        return packed_of(RuntimeError("".join(traceback.format_exception(error))))
    return packed


def follow_parent() -> None:
    """End when the parent has ended, even in the middle of a step."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
