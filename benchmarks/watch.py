"""What `s2ac watch` costs the run that it shows: steps per second with and without it, by turns in one run, and the server's CPU time.

    python benchmarks/watch.py --turns 10 --seconds 15

In every second turn `s2ac watch` serves the run, and a client asks for its data as the page does. A turn's rate is of the records written in
it. The machine must be idle otherwise.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np

COMMAND = [sys.executable, "-m", "s2ac"]
TRAIN = ["train", "multigoal", "--algo", "sac", "--preset", "demo", "--steps", "1e8", "--evaluate-every", "100000000"]


def ask(address, seconds):
    """Ask for new data as the page does, and rest as long as the answer says."""
    end, version = time.time() + seconds, 0
    while time.time() < end:
        with urllib.request.urlopen(f"{address}data.json?version={version}", timeout=10) as answer:
            body = answer.read()
        data = json.loads(body) if body else {}
        version, rest = data.get("version_of_data", version), data.get("wait", 2.0)
        time.sleep(max(0.0, min(rest, end - time.time())))


def cpu_seconds(pid):
    """Of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rates(run):
    """Steps per second of each record."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [row["wall_steps_per_second"] for row in rows if row["kind"] == "train"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=10, help="half of them watched")
    parser.add_argument("--seconds", type=float, default=15.0, help="of one turn")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        run = Path(directory) / "run"
        trainer = subprocess.Popen([*COMMAND, *TRAIN, "--out", str(run)], stdout=subprocess.DEVNULL)
        while not (run / "metrics.jsonl").exists() or len(rates(run)) < 3:
            time.sleep(1)
        found, used = ([], []), []
        for turn in range(options.turns):
            watched = turn % 2
            if watched:
                server = subprocess.Popen([*COMMAND, "watch", str(run)], stdout=subprocess.PIPE, text=True)
                address = re.search(r"http://127\.0\.0\.1:\d+/", server.stdout.readline())[0]
                time.sleep(2)  # it has started: that is not what watching costs
                spent = cpu_seconds(server.pid)
            before = len(rates(run))
            ask(address, options.seconds) if watched else time.sleep(options.seconds)
            found[watched].append(len(rates(run)[before:]) / sum(1 / rate for rate in rates(run)[before:]))
            if watched:
                used.append((cpu_seconds(server.pid) - spent) / options.seconds)
                server.terminate()
                server.communicate()
        trainer.send_signal(signal.SIGTERM)
        trainer.wait()
    alone, beside = (np.array(part) for part in found)
    change = 100 * (beside / alone[: len(beside)] - 1)
    error = change.std(ddof=1) / len(change) ** 0.5
    print(f"steps per second, alone:   {' '.join(f'{rate:.0f}' for rate in alone)}")
    print(f"steps per second, watched: {' '.join(f'{rate:.0f}' for rate in beside)}")
    print(
        f"change {change.mean():+.1f} % ± {error:.1f} % (standard error); the server used {100 * np.mean(used):.1f} % of a core"
    )


if __name__ == "__main__":
    main()
