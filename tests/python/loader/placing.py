"""Helpers for the tests of batches on devices that are not JAX's."""

from __future__ import annotations

import gc
from typing import Any

import meshfeed as mf
from tests.python.samples import numbers

VIRTUAL = "virtual:8"


def lay(axes: dict[str, int] | None = None, **options: Any) -> mf.Layout:
    source = options.pop("source", None) or numbers(16)
    mesh = axes or {"data": 8}
    return mf.layout(mesh, options.pop("specs", mf.P("data")), source, batch_size=8, **options)


def player(**options: Any) -> mf.Loader:
    return mf.Loader(numbers(16), layout=lay(), process=0, **options)


def live(devices: mf.Devices) -> int:
    gc.collect()
    return devices.stats()["live_buffers"]


# Sums a batch on these devices and in JAX, in either order of loading.
BESIDE = """
import sys
def ours():
    global devices, loader, mf, np
    import numpy as np, meshfeed as mf
    devices = mf.devices(SPEC)
    ds = mf.from_arrays({"x": np.arange(64, dtype=np.float32)})
    lay = mf.layout({"data": 4}, mf.P("data"), ds, batch_size=8)
    loader = mf.Loader(ds, layout=lay, process=0)
def theirs():
    global jax
    import jax
    assert float(jax.jit(lambda x: x @ x)(jax.numpy.ones(4))) == 4
for first in ORDER:
    {"ours": ours, "theirs": theirs}[first]()
total = 0
for batch in loader.place(devices):
    shards = [np.asarray(s) for s in batch["x"].shards]
    parts = [jax.device_put(s, d) for s, d in zip(shards, jax.devices())]
    total += sum(float(jax.jit(lambda x: x.sum())(part)) for part in parts)
del batch, shards, parts
devices.close()
print(len(devices), devices.name, total)
"""
