"""Two epochs of one loop, in its own process: CASE LOOP FOLDER ROUND."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUM_CPU_DEVICES"] = "8"
os.environ["HF_HUB_OFFLINE"] = "1"  # nothing is fetched

import jax
import numpy as np

from tests.bench import disk, measure
from tests.bench.parquet.cases import TINY, Batch, Case, named
from tests.bench.parquet.loops import LOOPS, shardings


def run(case: Case, loop: str, paths: list[Path], seeds: list[int]) -> dict[str, Any]:
    """Returns the numbers of an epoch for each seed; the first begins with the opening.

    Raises:
        AssertionError: an epoch has other rows than the files, or an array another sharding.
    """
    split = shardings(case)
    peak = measure.Peak()
    peak.start()
    start = time.perf_counter()
    read = disk.counters()["rchar"]
    epochs = []
    for epoch in LOOPS[loop](case, paths, seeds):
        numbers = _epoch(case, epoch, split)
        now, total = time.perf_counter(), disk.counters()["rchar"]
        seconds = now - start
        numbers["rows_per_second"] = case.rows / seconds
        numbers["first_ms"] = (numbers.pop("first") - start) * 1e3
        numbers["read_mb"] = (total - read) / 1e6
        start, read = now, total
        epochs.append(numbers)
    return {"epochs": epochs, "peak_mb": peak.finish()}


def _epoch(case: Case, batches: Iterator[Batch], split: dict[str, Any]) -> dict[str, float]:
    """Takes the batches of an epoch, closed.

    It copies the labels of each, because an array that is kept may keep the memory of its batch.
    """
    first = 0.0
    records: list[np.ndarray[Any, Any]] = []
    heads: list[Batch] = []
    for batch in batches:
        jax.block_until_ready(batch)
        first = first or time.perf_counter()
        records.append(np.array(batch["label"]))
        if len(heads) < 2:
            heads.append(batch)
    for batch in heads:
        _check(case, batch, split)
    seen = np.concatenate(records)
    assert np.array_equal(np.sort(seen), np.arange(case.rows)), "an epoch of other rows"
    return {"first": first, "variance": variance(case, records)}


def variance(case: Case, batches: list[np.ndarray[Any, Any]]) -> float:
    """Returns the variance of the batches' mean label in relation to a full shuffle."""
    means = [float(np.mean(batch)) for batch in batches]
    middle, spread = (case.rows - 1) / 2, (case.rows**2 - 1) / 12
    full = spread / case.batch * (case.rows - case.batch) / (case.rows - 1)
    return float(np.mean([(mean - middle) ** 2 for mean in means])) / full


def _check(case: Case, batch: Batch, split: dict[str, Any]) -> None:
    assert {name: array.sharding for name, array in batch.items()} == split, "another sharding"
    values, labels = np.asarray(batch[case.field]), np.asarray(batch["label"])
    assert values.shape == (case.batch, case.width), f"a batch of shape {values.shape}"
    assert values.dtype == case.dtype, f"a batch of {values.dtype}"
    assert np.array_equal(values[:, :2], case.values(labels)), "other rows than those of the labels"


def warm_up(loop: str, folder: Path) -> None:
    """Plays a loop over a small case, so that imports and JAX's first placements do not count."""
    for epoch in LOOPS[loop](TINY, TINY.paths(folder), [0]):
        jax.block_until_ready(list(epoch))


if __name__ == "__main__":
    case, loop, folder = named(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["HF_HOME"] = scratch
        paths = case.paths(folder)
        for path in case.arrow(folder) if loop == "meshfeed, Arrow" else paths:
            path.read_bytes()  # the pages are in memory for every loop
        warm_up(loop, Path(scratch))
        first = 2 * int(sys.argv[4])
        print(json.dumps(run(case, loop, paths, [first, first + 1])))
