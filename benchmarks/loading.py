"""Loading a run with a large replay, to predict: seconds and memory beyond `import jax`.

    python benchmarks/loading.py [--gigabytes 2]

The replay is not read, so its file is sparse here; it is listed in the checkpoint's manifest like any other.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import s2ac
from s2ac.runs import checkpoint

MEASURE = """
import re, sys, time
import jax, numpy as np
jax.jit(lambda x: x + 1)(np.zeros(3)).block_until_ready()
held = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
memory, started, worked = held(), time.perf_counter(), time.process_time()
import s2ac
agent = s2ac.load(sys.argv[1])
print(time.perf_counter() - started, time.process_time() - worked, held() - memory)
agent.predict(np.zeros(agent.spec.observation_size, np.float32))
print(time.perf_counter() - started)
"""


def with_large_replay(run: Path, gigabytes: float) -> None:
    """List a replay segment of this size in the run's newest checkpoint."""
    directory = run / "checkpoints" / checkpoint.names(run)[-1]
    segment = sorted((run / "replay").glob("rows_*"))[-1]
    with segment.open("ab") as file:
        file.truncate(int(gigabytes * 2**30))
    manifest = directory / "manifest.json"
    body = json.loads(manifest.read_text())["body"]
    body["files"][f"../../replay/{segment.name}"]["size"] = segment.stat().st_size
    manifest.write_text(json.dumps({"body": body, "sha256": checkpoint._digest(body)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / "run"
        fields = {"hidden": (256, 256), "batch_size": 8, "warmup_steps": 20, "log_every": 40, "episodes": 1}
        s2ac.Agent("multigoal", "s2ac", directory=run, **fields).learn(40)
        with_large_replay(run, options.gigabytes)
        out = subprocess.run(
            [sys.executable, "-c", MEASURE, str(run)], check=True, capture_output=True, text=True
        ).stdout
    loaded, worked, memory, seconds = map(float, out.split()[-4:])
    print(
        f"a replay of {options.gigabytes:g} GB: loaded in {loaded:.2f} s ({worked:.2f} s of processor time) with {memory:.0f} MB above JAX; "
        f"first action, compiled, after {seconds:.2f} s"
    )


if __name__ == "__main__":
    main()
