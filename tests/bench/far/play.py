"""Two epochs of one loop, in its own process: CASE LOOP ADDRESS."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUM_CPU_DEVICES"] = "8"

import jax
import numpy as np

from tests.bench import measure
from tests.bench.far.cases import Case, Server, named
from tests.bench.far.loops import LOOPS, Loop, rows_sharding


def run(case: Case, loop: Loop, server: Server, cache: Path) -> dict[str, Any]:
    """Returns the numbers of the first epoch, and the rate and the bytes of the second one.

    Raises:
        AssertionError: an epoch does not have each row once.
    """
    peak = measure.Peak()
    peak.start()
    server.counts()
    out: dict[str, Any] = {}
    for epoch in ("first", "second"):
        begin = time.perf_counter()
        ready, numbers = 0.0, []
        for batch in loop(case, server.address, cache):
            jax.block_until_ready(batch)
            ready = ready or time.perf_counter()
            assert batch["tokens"].sharding == rows_sharding()
            numbers.append(np.array(batch["id"]))
        spent = time.perf_counter() - begin
        assert np.array_equal(np.sort(np.concatenate(numbers)), np.arange(case.total))
        counts = server.counts()
        out[epoch] = {
            "rows_per_second": case.total / spent,
            "first_ms": (ready - begin) * 1e3,
            "requests": counts["Requests"],
            "mb": counts["Bytes"] / 1e6,
        }
    return out | {"peak_mb": peak.finish()}


if __name__ == "__main__":
    case, (loop, _), server = named(sys.argv[1]), LOOPS[sys.argv[2]], Server(sys.argv[3])
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["HF_HOME"] = scratch
        jax.block_until_ready(jax.device_put(np.zeros((8, 8)), rows_sharding()))
        try:
            numbers = run(case, loop, server, Path(scratch) / "cache")
        except Exception as error:  # such as a 503 that the library does not repeat
            numbers = {"failed": f"{type(error).__name__}: {error}"[:200]}
    print(json.dumps(numbers), flush=True)
    os._exit(0)  # threads of pyarrow with a file system in Python may crash at the end
