"""A dataset as the dataset of PyTorch's `DataLoader`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import meshfeed as mf

torch: Any = pytest.importorskip("torch", reason="torch is not installed")

X = np.arange(24, dtype=np.float32).reshape(12, 2)


def load(ds: Any, **options: Any) -> list[Any]:
    return list(torch.utils.data.DataLoader(ds, **options))


def test_batches_of_shuffled_rows() -> None:
    flags = np.arange(12) % 2 == 0
    with mf.from_arrays({"x": X, "y": np.arange(12), "even": flags}) as ds:
        batches = load(ds, batch_size=5, shuffle=True)
        assert [len(b["y"]) for b in batches] == [5, 5, 2]
        y = torch.cat([b["y"] for b in batches]).numpy()
        assert sorted(y) == list(range(12))
        assert (torch.cat([b["x"] for b in batches]).numpy() == X[y]).all()
        assert (torch.cat([b["even"] for b in batches]).numpy() == flags[y]).all()


def test_rows_alone_and_parts() -> None:
    with mf.from_arrays({"x": X, "y": np.arange(12)}) as ds:
        assert [int(row["y"]) for row in load(ds, batch_size=None)] == list(range(12))
        subset = torch.utils.data.Subset(ds, [3, 1])
        assert load(subset, batch_size=2)[0]["y"].tolist() == [3, 1]
        assert ds[torch.tensor([3, 1])]["y"].tolist() == [3, 1]
        assert ds[torch.tensor(-1)]["y"] == 11
        assert ds[torch.arange(12) > 9]["y"].tolist() == [10, 11]


def test_rows_that_are_no_tensors() -> None:
    table = pa.table({"text": ["a", "bc"], "tokens": [[1, 2], [3]]})
    with mf.from_arrow(table) as ds:
        assert load(ds.select(["text"]), batch_size=2) == [{"text": ["a", "bc"]}]
        lists = load(ds, batch_size=2, collate_fn=lambda rows: [r["tokens"].tolist() for r in rows])
        assert lists == [[[1, 2], [3]]]


def test_workers_are_refused() -> None:
    with mf.from_arrays({"x": X}) as ds:
        workers = {"batch_size": 2, "num_workers": 1}
        with pytest.raises(mf.InvalidStateError, match="a dataset cannot be pickled"):
            load(ds, **workers, multiprocessing_context="spawn")
