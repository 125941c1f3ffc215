"""Pages that are not in memory: the cache dropped, and a file of twice a memory limit.

The limit is a control group (version 2), which only a privileged user can make; where that
fails the cell is left out, and says so.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUM_CPU_DEVICES"] = "8"

import jax

import meshfeed as mf
from tests.bench import probe
from tests.bench.cases import CASES, MESHES, shardings

BATCHES = 40


def run(case_name: str, loop: str, limited: bool, folder: Path) -> dict[str, Any]:
    """Gives rows per second and the p50 and p99 of `next`, from a file that is not cached."""
    case = next(c for c in CASES if c.name == case_name)
    path = folder / f"{case.name.replace(' ', '-')}.arrow"
    if not path.exists():
        case.write(path, case.make())
    split = shardings(case, next(iter(MESHES)))
    drop(path)
    with limit(path.stat().st_size // 2 if limited else 0):
        if loop == "meshfeed":
            dataset = mf.open(path, io="read" if limited else "auto")
            batches: Iterator[Any] = iter(
                mf.Loader(dataset, None, split, batch_size=case.batch, shuffle=True, epochs=-1)
            )
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


@contextmanager
def limit(size: int) -> Iterator[None]:
    """Bounds this process to what it holds now and size bytes more; 0 is no bound."""
    if not size:
        yield
        return
    root = Path("/sys/fs/cgroup")
    group = root / f"meshfeed-bench-{os.getpid()}"
    group.mkdir()
    try:
        (group / "cgroup.procs").write_text(str(os.getpid()))
        (group / "memory.max").write_text(str(size + (256 << 20)))
        yield
    finally:
        (root / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


if __name__ == "__main__":
    case_name, loop, limited, folder = sys.argv[1:]
    try:
        print(json.dumps(run(case_name, loop, limited == "limited", Path(folder))))
    except OSError as error:
        print(json.dumps({"left_out": f"no memory limit could be set here: {error.strerror}"}))
