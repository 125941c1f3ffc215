"""Times a new mesh of 4,096 devices for a loader in the middle of an epoch.

    python -m tests.bench.distributed.remesh FOLDER

The devices do not exist: planning uses their numbers only. Every mesh is new to JAX and to the
loader. FOLDER is not used, because there is nothing to read.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

import meshfeed as mf

DEVICES, ROWS, TRIES = 4096, 1 << 16, 40
AXES = ("data", "model")


class Device:
    """The part of a cluster's device that planning uses."""

    platform = device_kind = "cpu"

    def __init__(self, number: int, each: int) -> None:
        self.id, self.process_index = number, number // each


class Store:
    """A key-value store of a job without other processes."""

    def set(self, key: str, value: bytes) -> None:
        """Ignores a value."""

    def get(self, key: str, seconds: float) -> bytes | None:
        """Waits until the time-out."""
        time.sleep(seconds)
        return None

    def try_get(self, key: str) -> bytes | None:
        """Finds nothing."""
        return None

    def delete(self, key: str) -> None:
        """Deletes nothing."""

    def list(self, prefix: str) -> dict[str, bytes]:
        """Finds nothing."""
        return {}


def measure() -> dict[str, Any]:
    """Times `remesh` alone and in a job, with eight devices per process, and with all in one."""
    ways = {
        "8 devices to a process, alone": (8, False),
        "8 devices to a process, in a job": (8, Store()),
        "all devices in one process": (DEVICES, False),
    }
    rows = {name: _spread(_times(each, store)) for name, (each, store) in ways.items()}
    return {"devices": DEVICES, "tries": TRIES, "ms": rows}


def _times(each: int, coordinator: Any) -> list[float]:
    hosts = np.array([Device(i, each) for i in range(DEVICES)]).reshape(-1, 8)
    order = np.random.default_rng(0)
    options: dict[str, Any] = {
        "batch_size": DEVICES,
        "remainder": "pad",
        "coordinator": coordinator,
    }
    data = {"x": np.zeros((ROWS, 16), np.int32)}
    times = []
    with (
        mf.from_arrays(data) as ds,
        mf.Loader(ds, Mesh(hosts, AXES), PartitionSpec("data"), **options) as loader,
    ):
        for _ in range(TRIES):
            mesh = Mesh(order.permutation(hosts).reshape(-1, 4), AXES)
            start = time.perf_counter()
            loader.remesh(mesh, PartitionSpec(AXES))
            times.append((time.perf_counter() - start) * 1e3)
    return times


def _spread(values: list[float]) -> dict[str, float]:
    return {"p50": float(np.median(values)), "low": min(values), "high": max(values)}


if __name__ == "__main__":
    assert jax.process_count() == 1
    print(json.dumps(measure()))
