"""The conditions for a number to count."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

import meshfeed as mf
from tests.bench.cases import Case, Data

KEPT = 3  # batches kept while others are made


def check(make: Callable[..., mf.Loader], case: Case, data: Data) -> None:
    """Fails unless the loader delivers the right batches.

    Args:
        make: makes a loader for a number of epochs.
        case: the case.
        data: the expected rows.
    """
    every_record_once(make, case)
    with make(epochs=-1) as loader:
        batches = iter(loader)
        promised = [loader.records(0, step * case.batch) for step in range(KEPT)]
        kept = [next(batches) for _ in range(KEPT)]
        for batch, records in zip(kept, promised, strict=True):
            assert np.array_equal(case.records(batch), records), "other records than promised"
            assert not np.array_equal(np.sort(records), records), "the order is not shuffled"
            shards_are_right(batch, data, records)
        digests = [digest(batch) for batch in kept]
        for _ in range(200):
            next(batches)
        assert [digest(batch) for batch in kept] == digests, "a kept batch has changed"


def same_end_point(batch: dict[str, Any], case: Case, data: Data, split: dict[str, Any]) -> None:
    """Fails unless another loop's batch has the requested sharding and the right shards."""
    for name, array in batch.items():
        assert array.sharding == split[name], f"{name}: {array.sharding}, not {split[name]}"
    assert batch.keys() == split.keys(), f"arrays {list(batch)}, not {list(split)}"
    shards_are_right(batch, data, case.records(batch))


def every_record_once(make: Callable[..., mf.Loader], case: Case) -> None:
    """Fails unless an epoch delivers every record once, except a dropped remainder."""
    with make(epochs=1) as loader:
        seen = np.concatenate([case.records(batch) for batch in loader])
    whole = case.rows // case.batch * case.batch
    assert len(seen) == whole, f"{len(seen)} records were delivered, not {whole}"
    assert len(np.unique(seen)) == whole, "a record was delivered twice"


def shards_are_right(batch: dict[str, Any], data: Data, records: np.ndarray[Any, Any]) -> None:
    """Fails unless every shard is the batch at its index, which makes replicas equal too."""
    for name, array in batch.items():
        want = data[name][records]
        for shard in array.addressable_shards:
            same = np.array_equal(np.asarray(shard.data), want[shard.index])
            assert same, f"{name}: the shard of device {shard.device.id} is wrong"


def digest(batch: dict[str, Any]) -> str:
    """Returns a hash of all bytes of a batch."""
    text = hashlib.sha256()
    for array in batch.values():
        text.update(np.asarray(array).tobytes())
    return text.hexdigest()
