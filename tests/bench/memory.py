"""The memory of a loop beside the data: `python -m tests.bench.memory CASE LOOP SECONDS`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUM_CPU_DEVICES"] = "8"

import jax

import meshfeed as mf
from tests.bench import grain, measure, probe
from tests.bench.cases import MESHES, Data, named, shardings

LOOPS = ("meshfeed", "probe", "aligned", "grain")


def run(name: str, loop: str, seconds: float) -> dict[str, Any]:
    """Returns the largest growth of a process in MB, with a loop over data in memory."""
    case = named(name)
    data = case.make()
    split = shardings(case, next(iter(MESHES)))
    jax.block_until_ready(jax.device_put({k: v[: case.batch] for k, v in data.items()}, split))

    def begin() -> Iterator[Any]:
        return iter(LOADERS[loop](data, case, split))

    return {"peak_mb": measure.peak_growth(begin, seconds), "batch_mb": case.batch_bytes / 1e6}


def _meshfeed(data: Data, case: Any, split: Any) -> Iterator[Any]:
    dataset = mf.from_arrays(data)
    return iter(mf.Loader(dataset, None, split, batch_size=case.batch, shuffle=True, epochs=-1))


LOADERS: dict[str, Any] = {
    "meshfeed": _meshfeed,
    "probe": probe.plain,
    "aligned": probe.aligned,
    "grain": grain.loop,
}


if __name__ == "__main__":
    case, loop, seconds = sys.argv[1:]
    print(json.dumps(run(case, loop, float(seconds))))
