"""What a loader delivers without JAX, what it reports, and what happens after its end."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from tests.python.samples import FIRST, digits, loader, numbers

# ---- NumPy ----


def test_numpy_batches_are_whole_and_read_only() -> None:
    arrays = digits(10)
    with mf.from_arrays(arrays) as ds, mf.Loader(ds, specs=["image"], batch_size=4) as it:
        batch = next(iter(it))
        assert list(batch) == ["image"]
        np.testing.assert_array_equal(batch["image"], arrays["image"][:4])
        assert not batch["image"].flags.writeable
        assert batch["image"].flags.c_contiguous
        assert it.element_spec["image"].shape == (4, 8, 8)
        assert it.element_spec["image"].dtype == np.float32


def test_numpy_trees_padding_and_extras() -> None:
    specs = {"a": {"x": mf.Array("x")}}
    with numbers(6) as ds:
        with mf.Loader(ds, specs=specs, batch_size=4, remainder="pad", extras=["record"]) as it:
            last = list(it)[-1]
            assert last["a"]["x"].tolist() == [4, 5, 0, 0]
            assert last["valid"].tolist() == [True, True, False, False]
            assert last["record"].tolist() == [[4, 0], [5, 0], [2**32 - 1] * 2, [2**32 - 1] * 2]


def test_64_bit_types_stay_in_numpy() -> None:
    with mf.from_arrays({"x": np.arange(4) + 2**40}) as ds, mf.Loader(ds, batch_size=4) as it:
        assert next(iter(it))["x"].tolist() == [2**40 + i for i in range(4)]


# ---- the blocks of one process ----


def test_the_processes_of_a_layout_together_hold_the_batch() -> None:
    arrays = digits(64)
    specs = {"image": mf.P("data", None, "model"), "label": mf.P("data")}
    with mf.from_arrays(arrays) as ds:
        lay = mf.layout({"data": 4, "model": 2}, specs, ds, batch_size=16, processes=4)
        whole = {name: np.full_like(array[:16], 99) for name, array in arrays.items()}
        for process in range(4):
            with mf.Loader(ds, layout=lay, process=process) as it:
                batch = next(iter(it))
                assert [len(batch[name]) for name in specs] == [2, 1]
                for name, blocks in batch.items():
                    for index, block in blocks:
                        whole[name][index] = block
                assert it.layout == lay
        for name, array in arrays.items():
            np.testing.assert_array_equal(whole[name], array[:16])


def test_a_layout_replaces_other_arguments() -> None:
    with numbers(8) as ds:
        lay = mf.layout({"data": 2}, mf.P("data"), ds, batch_size=4)
        wrongs: list[dict[str, Any]] = [{"batch_size": 4}, {"loading": "device"}]
        for wrong in wrongs:
            with pytest.raises(mf.InvalidArgumentError) as caught:
                mf.Loader(ds, layout=lay, process=0, **wrong)
            assert str(caught.value) == (
                f"mf.Loader: {next(iter(wrong))}= beside layout=, which contains specs, "
                "batch size, remainder, mask, extras and loading; "
                "leave that out, or make another layout with mf.layout"
            )


# ---- information ----


def test_stats_are_flat_numbers() -> None:
    with loader(epochs=2) as it:
        list(it)
        stats = it.stats()
    assert all(isinstance(value, float) for value in stats.values())
    assert (stats["batches"], stats["rows"], stats["bytes"]) == (4, 16, 64)
    assert (stats["epoch"], stats["step"], stats["position"]) == (2, 0, 0)
    assert {"wait_seconds", "gather_seconds", "live_batches", "host_bytes"} <= stats.keys()


def test_a_loader_prints_its_position() -> None:
    with loader() as it:
        next(iter(it))
        assert repr(it) == "Loader(['x'], batch_size=4, epoch=0, step=1 of 2)"
    with loader(size=(2, 2)) as it:
        assert repr(it) == "Loader(['x'], batch_size=(2, 2), epoch=0, step=0 of 2)"


def test_many_arrays_are_not_all_printed() -> None:
    ds = mf.from_arrays({f"column {i}": np.arange(8) for i in range(100)})
    with mf.Loader(ds, batch_size=4) as it:
        assert repr(it).startswith("Loader(['column 0', 'column 1', ")
        assert repr(it).endswith("..., batch_size=4, epoch=0, step=0 of 2)")
        assert len(repr(it.layout)) < len(repr(it)) < 150


def test_the_layout_of_a_loader() -> None:
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    with numbers(64) as ds, mf.Loader(ds, mesh, P("data"), batch_size=8) as it:
        report = it.layout.report()
        assert report["arrays"]["x"]["shard_shape"] == [2]
        assert report["totals"]["steps_per_epoch"] == 8
        assert "data" in str(it.layout)


@pytest.mark.parametrize("name", ["seed", "epoch", "batch_size", "last"])
def test_attributes_of_a_loader_cannot_be_set(name: str) -> None:
    with loader() as it:
        with pytest.raises(AttributeError) as caught:
            setattr(it, name, 3)
        assert str(caught.value) == (
            f"a loader's {name!r} cannot be set: give it when the loader is made; "
            "seek and restore move it, remesh changes its mesh"
        )


def test_errors_of_python_name_the_loader() -> None:
    with loader() as it, pytest.raises(TypeError) as caught:
        it.seek(1)  # type: ignore[call-arg]
    assert str(caught.value) == "Loader.seek() takes 1 positional argument but 2 were given"


# ---- end ----


def test_a_closed_loader_is_an_error_and_its_batches_stay_valid() -> None:
    it = loader()
    loop = iter(it)
    batch = next(loop)
    it.close()
    it.close()
    uses: dict[str, Callable[[], object]] = {
        "mf.Loader": lambda: next(loop),
        "Loader.peek": it.peek,
        "Loader.seek": lambda: it.seek(epoch=0),
        "Loader.restore": lambda: it.restore(it.state()),
        "Loader.records": lambda: it.records(0, 0),
        "Loader.one_epoch": it.one_epoch,
    }
    for op, use in uses.items():
        with pytest.raises(mf.InvalidStateError) as caught:
            use()
        assert str(caught.value) == f"{op}: the loader is closed; make another"
    assert batch["x"].tolist() == FIRST


def test_a_closed_loader_says_when_to_ask() -> None:
    with loader() as it:
        next(iter(it))
    uses: dict[str, Callable[[], object]] = {
        "Loader.remaining": lambda: it.remaining,
        "Loader.stats": it.stats,
        "Loader.certificate": it.certificate,
    }
    for op, use in uses.items():
        with pytest.raises(mf.InvalidStateError) as caught:
            use()
        remedy = "ask before close(), inside of the with block"
        assert str(caught.value) == f"{op}: the loader is closed; {remedy}"


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_loader_is_not_pickled(copied: Any) -> None:
    with loader() as it, pytest.raises(mf.InvalidStateError) as caught:
        copied(it)
    assert str(caught.value) == (
        "mf.Loader: a loader cannot be pickled: it belongs to this process; "
        "save loader.state(), and give it to a new loader in the other process"
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"batch_size": 11},
            "mf.Loader: the dataset has 10 records, fewer than one batch of 11, so that an epoch "
            "has no step; use a batch of at most 10, or pad the remainder",
        ),
        (
            {"batch_size": 4, "remainder": "error"},
            "mf.Loader: 10 records in batches of 4 leave 2 over, but the remainder is an error; "
            'use "drop" or "pad", or a batch that divides the records',
        ),
        (
            {"batch_size": 4, "specs": {"x": mf.Array("x", columns=[(0, 2)])}},
            "mf.Loader: array 'x' takes columns of field 'x', whose rows are scalars; "
            "leave out columns=",
        ),
    ],
    ids=lambda v: str(v)[:30],
)
def test_invalid_arguments(arguments: dict[str, Any], text: str) -> None:
    with numbers(10) as ds, pytest.raises(mf.InvalidArgumentError) as caught:
        mf.Loader(ds, **arguments)
    assert str(caught.value) == text
