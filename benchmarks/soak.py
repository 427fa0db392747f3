"""One training for hours: first a process that lives long, then one that is stopped and resumed every few minutes.

    python benchmarks/soak.py OUT [--hours 2] [--every 3] [--env Pendulum-v1] [--read]

Every five seconds a line in OUT/samples.jsonl: memory, open files, threads, processor time and environment steps. At the end, or of what there
is with --read: the growth of each in percent per hour. Processes are compared at the same age, and the first minutes of each are left out.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

SMALL = ["--algo", "sac", "--hidden", "16", "--batch-size", "32", "--capacity", "20000", "--steps", "2e9", "--log-every", "5000",
         "--evaluate-every", "50000", "--episodes", "2", "--checkpoint-every", "20000"]  # fmt: skip
SETTLED = {"long": 300, "resumed": 60}  # seconds of a process that are left out: it starts, and its replay fills


def sample(pid: int, run: Path) -> dict[str, Any]:
    """What a process holds now, and how far its run is."""
    process = Path(f"/proc/{pid}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    ticks = (process / "stat").read_text().rsplit(")", 1)[1].split()[11:13]
    metrics, step = run / "metrics.jsonl", 0
    if metrics.exists():
        with metrics.open("rb") as file:
            file.seek(max(0, metrics.stat().st_size - 20_000))
            lines = file.read().splitlines()[1:]
        step = max((json.loads(line)["env_step"] for line in lines if line.endswith(b"}")), default=0)
    return {
        "memory": int(status["VmRSS"].split()[0]) / 1024,
        "files": len(os.listdir(process / "fd")),
        "threads": int(status["Threads"]),
        "cpu": sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"),
        "step": step,
    }


def live(arguments: list[str], run: Path, until: float, record: Any) -> None:
    """One process until a moment, then SIGTERM, which must save and end with exit code 0."""
    with (run.parent / "output.txt").open("a") as output:
        process = subprocess.Popen([sys.executable, "-m", "s2ac", *arguments], stdout=output, stderr=output)
    started = time.time()
    try:
        while time.time() < until:
            time.sleep(5)
            if process.poll() is not None:
                raise SystemExit(f"ended by itself with exit code {process.returncode}: see {output.name}")
            record({"age": time.time() - started, **sample(process.pid, run)})
    finally:
        process.send_signal(signal.SIGTERM)
        if process.wait(120):
            raise SystemExit(f"exit code {process.returncode} after SIGTERM: see {output.name}")


def soak(out: Path, hours: float, every: float, env: str) -> None:
    """Train, and write a line for each sample."""
    out.mkdir(parents=True)
    run, begun = out / "run", time.time()
    resume = ["train", "--resume", str(run)]
    ends = [("long", begun + hours * 1800)]
    while ends[-1][1] < begun + hours * 3600:
        ends.append(("resumed", ends[-1][1] + every * 60))
    with (out / "samples.jsonl").open("w") as file:
        for life, (kind, end) in enumerate(ends):

            def record(row: dict[str, Any], life: int = life, kind: str = kind) -> None:
                print(
                    json.dumps({"time": time.time() - begun, "life": life, "kind": kind, **row}), file=file, flush=True
                )

            live(resume if life else ["train", env, *SMALL, "--out", str(run)], run, end, record)


def growth(times: list[float], values: list[float]) -> str:
    """Mean and range, and the slope of a straight line in percent of the mean per hour."""
    mean = np.mean(values)
    slope = np.polyfit(times, values, 1)[0] * 3600 if len(times) > 2 else float("nan")
    return f"{mean:.1f} on average, {min(values):.1f} to {max(values):.1f}, {100 * slope / mean:+.2f} % per hour"


def tell(out: Path) -> None:
    """The growth of each figure: of the long life by its samples, of the resumed ones by each one's mean."""
    rows = [json.loads(line) for line in (out / "samples.jsonl").read_text().splitlines()]
    for kind, settled in SETTLED.items():
        kept = [row for row in rows if row["kind"] == kind and row["age"] >= settled]
        lives = [[row for row in kept if row["life"] == life] for life in sorted({row["life"] for row in kept})]
        if kind == "resumed":
            lives = lives[1:]  # the first one compiles, the others find its code in JAX's cache
        else:  # ten parts
            lives = [[life[k] for k in part] for life in lives for part in np.array_split(np.arange(len(life)), 10)]
        lives = [life for life in lives if len(life) > 2]
        if not lives:
            continue
        hours = sum(life[-1]["time"] - life[0]["time"] for life in lives) / 3600
        print(
            f"{kind}: {hours:.2f} hours, to step {lives[-1][-1]['step']:,}"
            + f", {len(lives)} processes" * (kind == "resumed")
        )
        times = [float(np.mean([row["time"] for row in life])) for life in lives]
        for name in ("memory", "files", "threads"):
            print(f"  {name:8}{growth(times, [float(np.mean([row[name] for row in life])) for life in lives])}")
        speeds = [(life[-1]["step"] - life[0]["step"]) / (life[-1]["cpu"] - life[0]["cpu"]) for life in lives]
        print(f"  speed   {growth(times, speeds)} (steps per second of processor time)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--every", type=float, default=3.0, help="minutes between two stops")
    parser.add_argument("--env", default="Pendulum-v1")
    parser.add_argument("--read", action="store_true", help="only the figures of what there is")
    options = parser.parse_args()
    if not options.read:
        soak(options.out, options.hours, options.every, options.env)
    tell(options.out)


if __name__ == "__main__":
    main()
