"""Pages that are not in memory: the cache dropped, and a file of twice a memory limit.

The limit needs a control group (version 2) that this user may change, made for the purpose:
`--group /sys/fs/cgroup/...`. Without one the cell is left out, and says so.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUM_CPU_DEVICES"] = "8"

import jax

import meshfeed as mf
from tests.bench import probe
from tests.bench.cases import CASES, MESHES, shardings

BATCHES = 40


def run(case_name: str, loop: str, folder: Path, group: Path | None) -> dict[str, Any]:
    """Gives rows per second and the p50 and p99 of `next`, from a file that is not cached."""
    case = next(c for c in CASES if c.name == case_name)
    path = folder / f"{case.name.replace(' ', '-')}.arrow"
    if not path.exists():
        case.write(path, case.make())
    split = shardings(case, next(iter(MESHES)))
    drop(path)
    if group is not None:
        limit(group, path.stat().st_size // 2)
    if loop == "meshfeed":
        loader = mf.Loader(
            mf.open(path), None, split, batch_size=case.batch, shuffle=True, epochs=-1
        )
        batches: Iterator[Any] = iter(loader)
    else:
        batches = probe.plain(case.mapped(path), case, split)
    times = []
    for _ in range(BATCHES):
        start = time.perf_counter()
        jax.block_until_ready(next(batches))
        times.append(time.perf_counter() - start)
    ordered = sorted(times)
    return {
        "rows_per_second": case.batch * BATCHES / sum(times),
        "p50_ms": ordered[BATCHES // 2] * 1e3,
        "p99_ms": ordered[-1] * 1e3,
    }


def drop(path: Path) -> None:
    """Writes a file back and drops its pages from the cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def limit(group: Path, size: int) -> None:
    """Moves this process into a control group of size bytes, and 512 MB for the programs."""
    if not (group / "cgroup.controllers").exists():
        raise NotADirectoryError(f"{group} is not a control group of version 2")
    (group / "memory.max").write_text(str(size + (512 << 20)))
    (group / "cgroup.procs").write_text(str(os.getpid()))


if __name__ == "__main__":
    case_name, loop, kind, folder, group = sys.argv[1:]
    if kind == "limited" and not group:
        print(json.dumps({"left_out": "no control group was given"}))
    else:
        within = Path(group) if kind == "limited" else None
        print(json.dumps(run(case_name, loop, Path(folder), within)))
