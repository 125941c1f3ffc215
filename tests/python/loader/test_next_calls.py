"""A warm `next` makes few calls beside one per array and the callbacks of JAX."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from meshfeed._feed.clock import NEVER

PACKAGE = str(Path(mf.__file__).parent)
MOST = 14


def calls_of_next(loader: mf.Loader) -> list[str]:
    """Names the functions that a `next` calls when a batch is ready, without calls per array.

    The C library's own function is one more call, which a profiler does not see. For each array
    there is a call that makes it, and JAX itself calls the function `block` for each device.
    """
    loop = iter(loader)
    for _ in range(4):
        jax.block_until_ready(next(loop))
    clock = loader._engine.cursor.clock
    clock.due, clock.sample = NEVER, None  # a sampled step calls more
    calls: list[str] = []

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            calls.append(frame.f_code.co_qualname)

    sys.setprofile(profile)
    try:
        loop.__next__()
    finally:
        sys.setprofile(None)
    per_array = ".block", "Placer.__call__", "Blocks.views"
    return [*(name for name in calls if not name.endswith(per_array)), "mf_loader_next"]


@pytest.mark.parametrize("spec", [P("data"), P("data", "model"), P()], ids=str)
@pytest.mark.parametrize("arrays", [1, 3, 8])
def test_arrays_on_eight_devices(arrays: int, spec: P) -> None:
    data = {f"x{i}": np.zeros((256, 2), np.int32) for i in range(arrays)}
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    with mf.from_arrays(data) as ds, mf.Loader(ds, mesh, spec, batch_size=8) as loader:
        calls = calls_of_next(loader)
    assert len(calls) <= MOST, calls


def test_numpy_arrays() -> None:
    with mf.from_arrays({"x": np.zeros(64), "y": np.zeros(64)}) as ds:
        with mf.Loader(ds, batch_size=8) as loader:
            calls = calls_of_next(loader)
    assert len(calls) <= MOST, calls
