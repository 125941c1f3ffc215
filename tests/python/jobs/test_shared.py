"""The blocks of a batch that several processes hold."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from typing import Any

import numpy as np

import meshfeed as mf
from meshfeed._jobs.shared import Shared
from tests.python.players import Memory, evidence

RECORDS = 64
DATA = {"x": np.zeros((RECORDS, 8, 4), np.float32), "y": np.zeros(RECORDS, np.int32)}


def shared(layout: mf.Layout, process: int, data: dict[str, Any] = DATA) -> Shared:
    """Returns the shared blocks of one process of a layout."""
    with (
        mf.from_arrays(data) as ds,
        mf.Loader(ds, layout=layout, process=process, coordinator=Memory()) as loader,
    ):
        return evidence(loader).shared


def test_random_layouts(seed: int, deep: bool) -> None:
    """Every process finds the blocks that the layout's report lists for several processes."""
    rng, seen = random.Random(seed), 0
    for _ in range(2000 if deep else 60):
        layout = mf.Layout(json.dumps(document(rng)))
        wrong = any(problem.severity == "error" for problem in layout.check())
        if wrong or len(layout.processes) == 1:
            continue
        groups = held(layout)
        readers = defaultdict[int, set[int]](set)
        for writer, *others in groups.values():
            readers[writer].update(others)
        for process in layout.processes:
            found = shared(layout, process)
            want = {label: held_by[0] for label, held_by in groups.items() if process in held_by}
            assert dict(zip(found.labels, found.writers, strict=True)) == want, layout.to_json()
            assert found.readers == readers, layout.to_json()
            seen += len(want)
    assert seen > 0


def document(rng: random.Random) -> dict[str, Any]:
    """Makes a random layout of up to three axes and eight processes."""
    axes = [(name, rng.choice([1, 2, 2, 4])) for name in "abc"[: rng.randint(1, 3)]]
    n = int(np.prod([size for _, size in axes]))

    def spec(dims: int) -> list[Any]:
        free = rng.sample(axes, len(axes))
        entries: list[Any] = []
        for _ in range(dims):
            taken = [free.pop()[0] for _ in range(min(len(free), rng.randint(0, 2)))]
            entries.append(taken if len(taken) != 1 or rng.random() < 0.5 else taken[0])
        return [entry or None for entry in entries]

    processes = rng.choice([p for p in (1, 2, 4, 8) if n % p == 0])
    mesh: dict[str, Any] = {"axes": axes, "processes": processes}
    if rng.random() < 0.5:
        devices = [[3 * (i % processes), i] for i in range(n)]
        mesh = {"axes": axes, "devices": rng.sample(devices, n)}
    return {
        "meshfeed": 1,
        "mesh": mesh,
        "arrays": {
            "x": {"shape": ["B", 8, 4], "dtype": "float32", "spec": spec(3)},
            "y": {"shape": ["B"], "dtype": "int32", "spec": spec(1)},
        },
        "batch": {"size": 32, "remainder": "pad", "mask_spec": spec(1), "extras": ["key"]},
        "dataset": {"records": RECORDS},
        "loading": rng.choice(["process", "global", "device"]),
    }


def held(layout: mf.Layout) -> dict[str, list[int]]:
    """Returns the processes of every block that several hold, in ascending order."""
    holders = defaultdict[str, set[int]](set)
    for name, array in layout.report(tables=True)["arrays"].items():
        for device in array["devices"]:
            index = ", ".join(f"{start}:{stop}" for start, stop in device["index"])
            holders[f"array {name!r}, index [{index}]"].add(device["process"])
    return {label: sorted(each) for label, each in holders.items() if len(each) > 1}


OPTIONS: dict[str, Any] = {"batch_size": 8, "records": RECORDS, "processes": 4}


def test_reshard() -> None:
    """With loading="reshard" no block is loaded twice."""
    axes, fields = {"data": 4, "model": 2}, {"y": ("int32", ())}
    layout = mf.layout(axes, mf.P(), fields, loading="reshard", **OPTIONS)
    assert shared(layout, 1, {"y": DATA["y"]}).labels == ()


def test_empty_rows() -> None:
    """An array without elements is not compared."""
    layout = mf.layout({"data": 4}, mf.P(), {"x": ("int32", (0,))}, **OPTIONS)
    assert shared(layout, 1, {"x": np.zeros((RECORDS, 0), np.int32)}).labels == ()


def test_thousands_of_devices() -> None:
    """Shared blocks are found in meshes of thousands of devices."""
    axes = {"model": 2, "data": 1024}
    options: dict[str, Any] = {"batch_size": 1024, "records": 1024, "processes": 256}
    layout = mf.layout(axes, mf.P("data"), {"y": ("int32", ())}, **options)
    found = shared(layout, 255, {"y": np.arange(1024, dtype=np.int32)})
    assert (found.labels[0], len(found.labels)) == ("array 'y', index [1016:1017]", 8)
    assert (found.writers, found.readers[127]) == ((127,) * 8, frozenset({255}))
