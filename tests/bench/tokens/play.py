"""Epochs of one loop, in its own process: CASE LOOP FOLDER CHECK."""

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
os.environ["HF_HUB_OFFLINE"] = "1"  # nothing is fetched

import jax
import numpy as np

from tests.bench import measure
from tests.bench.tokens.cases import (
    TINY,
    Array,
    Batch,
    Case,
    Mixture,
    named,
    rows_sharding,
)
from tests.bench.tokens.loops import LOOPS, Loop

SECONDS = 2.0  # of whole epochs
KEPT = 2  # batches after half an epoch that a resumed loop must repeat


def run(case: Case, loop: Loop, seconds: float = SECONDS) -> dict[str, Any]:
    """Returns the numbers of whole epochs, and of a resume at half of one.

    Raises:
        AssertionError: the resumed loop delivers other batches.
    """
    peak = measure.Peak()
    peak.start()
    first_ms, spent, steps = 0.0, 0.0, 0
    state: Any = None
    kept: list[Batch] = []
    half = case.steps // 2
    opening = time.perf_counter()
    loop.open()
    while spent < seconds:
        ready, n = 0.0, 0
        for n, batch in enumerate(loop.begin(), 1):
            jax.block_until_ready(batch)
            ready = ready or time.perf_counter()
            if not steps and half < n <= half + KEPT:
                kept.append({name: np.array(array) for name, array in batch.items()})
            if not steps and n == half:
                state = loop.state()
        first_ms = first_ms or (ready - opening) * 1e3
        spent, steps = spent + time.perf_counter() - ready, steps + n - 1
    out: dict[str, Any] = {
        "batches_per_second": steps / spent,
        "first_ms": first_ms,
        "peak_mb": peak.finish(),
        "resume_ms": None,
    }
    if state is not None:
        loop.open()  # so that no plan of the first epoch is left
        begin = time.perf_counter()
        for n, (expected, batch) in enumerate(zip(kept, loop.begin(state), strict=False)):
            jax.block_until_ready(batch)
            if not n:
                out["resume_ms"] = (time.perf_counter() - begin) * 1e3
            for name, array in expected.items():
                assert np.array_equal(batch[name], array), f"other {name} after the resume"
    return out


def check(case: Case, loop: Loop) -> dict[str, float]:
    """Plays an epoch, compares every batch with its fields, and counts its tokens.

    Raises:
        AssertionError: a batch has another sharding, or a row has wrong documents.
    """
    tokens: list[Array] = []
    sources: list[Any] = []
    loop.open()
    for batch in loop.begin():
        assert {array.sharding for array in batch.values()} == {rows_sharding()}
        whole = {name: np.array(array) for name, array in batch.items()}
        assert whole["tokens"].shape[0] == case.batch
        if "segment_ids" in whole:
            _documents(case, whole)
        tokens.append(whole["tokens"])
        sources.append(whole.get("source"))
    if isinstance(case, Mixture):
        return deviations(case, np.concatenate(sources))
    rows = np.concatenate(tokens)[:, : case.length]  # a window has the first token of the next one
    counts = np.bincount(rows[rows > 0], minlength=case.tokens + 1)
    return {
        "real": float(np.mean(rows > 0)),
        "once": float(np.sum(counts == 1)) / case.tokens,
        "again": int(np.sum(counts > 1)),
    }


def _documents(case: Case, batch: Batch) -> None:
    """Compares the segments and positions of rows with the numbers of their tokens."""
    tokens, segments, positions = (batch[name] for name in ("tokens", "segment_ids", "positions"))
    assert tokens.shape == segments.shape == positions.shape == (case.batch, case.length)
    assert np.array_equal(segments > 0, tokens > 0), "padding is segment 0"
    same = (segments[:, 1:] == segments[:, :-1]) & (segments[:, 1:] > 0)
    for array in (tokens, positions):
        assert np.all(np.diff(array)[same] == 1), "a document is consecutive"


def deviations(case: Mixture, sources: Array) -> dict[str, float]:
    """Returns how far the draws of a source are from its share, at the worst prefix."""
    drawn = np.cumsum(sources[:, None] == np.arange(len(case.weights)), axis=0)
    share = np.arange(1, len(sources) + 1)[:, None] * np.array(case.weights)
    away = np.abs(drawn - share).max(axis=1)
    return {"deviation": float(away.max()), "deviation_64": float(away[63::64].max())}


if __name__ == "__main__":
    case, folder = named(sys.argv[1]), Path(sys.argv[3])
    make = LOOPS[type(case)][sys.argv[2]]
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["HF_HOME"] = scratch
        for path in folder.glob(f"{case.name}*"):
            path.read_bytes()  # the pages are in memory for every loop
        small = next(tiny for tiny in TINY if type(tiny) is type(case))
        small.write(Path(scratch))
        loop = make(small, Path(scratch))  # imports and first placements do not count
        loop.open()
        jax.block_until_ready(list(loop.begin()))
        numbers = run(case, make(case, folder))
        if sys.argv[4] == "True":
            numbers |= check(case, make(case, folder))
    print(json.dumps(numbers))
