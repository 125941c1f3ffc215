"""A trace of `jax.profiler` shows `next` and its parts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

import meshfeed as mf


def recorded(folder: Path) -> list[dict[str, Any]]:
    """Returns the events of meshfeed in a trace, by their start."""
    (path,) = folder.glob("plugins/profile/*/*.trace.json.gz")
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    ours = [event for event in events if event.get("name", "").startswith("meshfeed.")]
    return sorted(ours, key=lambda event: float(event["ts"]))


def inside(part: dict[str, Any], whole: dict[str, Any]) -> bool:
    """Returns whether an event lies within another one of its thread."""
    start, end = whole["ts"], whole["ts"] + whole["dur"]
    within = start <= part["ts"] and part["ts"] + part["dur"] <= end
    return bool(within and part["tid"] == whole["tid"])


def test_parts_of_next(tmp_path: Path) -> None:
    mesh = jax.make_mesh((8,), ("data",))
    with mf.from_arrays({"x": np.zeros((256, 4), np.float32)}) as ds:
        with mf.Loader(ds, mesh, P("data"), batch_size=16, device_prefetch=1) as loader:
            batches = iter(loader)
            next(batches)
            with jax.profiler.trace(str(tmp_path)):
                loader.peek()
                for _ in range(5):
                    next(batches)
            next(batches)
    events = recorded(tmp_path)
    calls = [event for event in events if event["name"] == "meshfeed.next"]
    assert len(calls) == 5
    assert sum(event["name"] == "meshfeed.peek" for event in events) == 1
    parts = [
        e for e in events if e["name"] in ("meshfeed.wait", "meshfeed.poll", "meshfeed.arrays")
    ]
    assert all(any(inside(part, call) for call in calls) for part in parts), events
    names = [[part["name"] for part in parts if inside(part, call)] for call in calls]
    assert any("meshfeed.arrays" in each for each in names), names
    assert any({"meshfeed.wait", "meshfeed.poll"} & set(each) for each in names), names


def test_without_read_ahead_to_devices(tmp_path: Path) -> None:
    mesh = jax.make_mesh((2,), ("data",))
    with mf.from_arrays({"x": np.zeros((256, 4), np.float32)}) as ds:
        with mf.Loader(ds, mesh, P("data"), batch_size=16) as loader:
            with jax.profiler.trace(str(tmp_path)):
                for _ in zip(range(3), loader, strict=False):
                    pass
    events = recorded(tmp_path)
    assert [event["name"] for event in events] == [
        *("meshfeed.next", "meshfeed.wait", "meshfeed.arrays") * 3
    ]
    assert all(inside(e, events[i - i % 3]) for i, e in enumerate(events))
