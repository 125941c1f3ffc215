"""`mf.put` against `jax.device_put` in processes that each have the whole batch.

python -m tests.bench.distributed.put ROUNDS    starts the job, and prints the times

Without an argument it is one process of the job.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import meshfeed as mf
from tests.bench.distributed.play import meet
from tests.distributed.job import Job
from tests.distributed.process import joined

P = PartitionSpec
SHAPE = (128, 32, 32, 3)  # of float32: 1.5 MB
SPECS = {"rows": P("data"), "both": P("data", None, "model"), "replicated": P()}
CALLS = 50
SKIP = 3
DEVICES = (2, 2, 2, 2)
HANG = 600  # seconds


def measure(rounds: int) -> list[dict[str, Any]]:
    """Returns for every spec the microseconds of both calls: medians of the processes by round."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "order.json").write_text(json.dumps(rounds))
        with Job("tests.bench.distributed.put", DEVICES, folder) as job:
            job.wait(HANG)
        texts = [(folder / f"put-{p}.json").read_text() for p in range(len(DEVICES))]
    processes = [json.loads(text) for text in texts]
    cells = []
    for split in SPECS:
        times = {}
        for name in ("meshfeed", "device_put"):
            turns = zip(*(process[split][name] for process in processes), strict=True)
            times[name] = [median(turn) for turn in turns]
        cells.append({"split": split, "times": times})
    return cells


def timed(host: Any, mesh: Mesh, spec: PartitionSpec, name: str) -> float:
    """Returns the median microseconds of a call, up to the ready array."""
    sharding = NamedSharding(mesh, spec)
    times = []
    for _ in range(SKIP + CALLS):
        start = time.perf_counter_ns()
        if name == "meshfeed":
            jax.block_until_ready(mf.put(host, mesh, spec))
        else:
            jax.block_until_ready(jax.device_put(host, sharding))
        times.append((time.perf_counter_ns() - start) / 1e3)
    return median(times[SKIP:])


def main() -> None:
    with joined() as place:
        rounds = json.loads((place.folder / "order.json").read_text())
        mesh = Mesh(np.array(jax.devices()).reshape(-1, 2), ("data", "model"))
        host = np.random.default_rng(0).random(SHAPE, np.float32)
        done: dict[str, Any] = {s: {"meshfeed": [], "device_put": []} for s in SPECS}
        for r in range(-1, rounds):  # the first round does not count
            for split, spec in SPECS.items():
                for name in list(done[split])[:: -1 if r % 2 else 1]:
                    meet(f"put/{r}/{split}/{name}")
                    result = timed(host, mesh, spec, name)
                    if r >= 0:
                        done[split][name].append(result)
        (place.folder / f"put-{place.rank}.json").write_text(json.dumps(done))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(int(sys.argv[1]))))
    else:
        main()
