"""Running the MuJoCo study's jobs, one after the other or side by side: what is done is skipped, each leaves a record."""

import os
from pathlib import Path

from s2ac.errors import InvalidArgument, S2acError
from s2ac.launch.calls import STOPPED, Call, Place
from s2ac.launch.launch import launch
from s2ac.runs.about import with_defaults
from s2ac.studies.mujoco.jobs import finished, record_of, train_job
from s2ac.studies.mujoco.records import read_record, write_record
from s2ac.studies.systems import Job, not_done


def campaign(directory: Path, todo: list[Job], command: str) -> bool:
    """Run what is not done yet, a record after each; whether all is done."""
    for job in not_done(todo, lambda job: done_before(directory, job)):
        trained = train_job(directory / "runs" / job.name, job)
        write_record(record_path(directory, job), record_of(job, trained, command))
        if trained.stopped:
            return False
    return True


def record_path(directory: Path, job: Job) -> Path:
    """Where a job's record is, or will be."""
    return directory / "records" / f"{job.name}.json"


def done_before(directory: Path, job: Job) -> bool:
    """Whether there is a record of the whole run; one of other settings is refused."""
    path = record_path(directory, job)
    if not path.exists():
        return False
    record = read_record(path)
    if with_defaults(record["algo"], record["config"]) != job.config() or record["env"] != job.env:
        raise InvalidArgument(f"{path} has other settings than those asked for: take another --out")
    return finished(record)


def campaign_on(directory: Path, todo: list[Job], command: str, place: Place) -> bool:
    """`campaign` with runs side by side; whether all is done. A run that fails leaves the others to go on."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or the first one takes the accelerator's memory
    directory = directory.absolute()  # on a cluster a call may find itself elsewhere
    todo = [job for job in todo if not done_before(directory, job)]
    calls = [Call(job.name, _train_one, (directory, job, command)) for job in todo]
    codes = launch(calls, place, directory / "logs")
    failed = [name for name, code in codes.items() if code not in (0, STOPPED)]
    if failed:
        raise S2acError(
            f"failed: {', '.join(failed)}, see {directory}/logs; finished runs are kept: the same command tries them again, and "
            f"--from-results {directory} draws what there is"
        )
    return all(codes.get(job.name) == 0 for job in todo)


def _train_one(directory: Path, job: Job, command: str) -> int:
    return 0 if campaign(directory, [job], command) else STOPPED
