"""Iterating, state and restore: what a loop yields, and where the next loop begins."""

from __future__ import annotations

import copy
import json
import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec

import meshfeed as mf
from tests.python.data import digits, numbers, values, wrong

P = PartitionSpec


def loader(n: int = 10, size: Any = 4, **kwargs: Any) -> mf.Loader:
    with numbers(n) as ds:
        return mf.Loader(ds, batch_size=size, **kwargs)


def flat(lists: Iterable[list[int]]) -> list[int]:
    return [x for part in lists for x in part]


FIRST, SECOND = [0, 1, 2, 3], [4, 5, 6, 7]


def test_a_loop_is_an_epoch() -> None:
    with loader() as it:
        assert len(it) == it.steps_per_epoch == 2
        assert values(it) == [FIRST, SECOND]
        assert (it.epoch, it.step) == (1, 0)
        assert values(it) == [FIRST, SECOND]
        assert it.epoch == 2


def test_shuffled_epochs_differ_and_hold_every_record() -> None:
    with loader(12, shuffle=True, seed=1) as it, loader(12, shuffle=True, seed=1) as same:
        first, second = values(it), values(it)
        assert first != second
        assert sorted(flat(first)) == sorted(flat(second)) == list(range(12))
        assert values(same) == first
        assert it.records(1, 4).tolist() == second[1]


def test_after_a_break_the_next_loop_continues() -> None:
    with loader() as it:
        for batch in it:
            assert batch["x"].tolist() == FIRST
            break
        assert (it.epoch, it.step, it.remaining) == (0, 1, 1)
        assert values(it) == [SECOND]


def test_a_break_after_the_last_batch_leaves_no_empty_loop() -> None:
    with loader() as it:
        for step, _ in enumerate(it):
            if step == 1:
                break
        assert (it.epoch, it.step, it.remaining) == (1, 0, 2)
        assert values(it) == [FIRST, SECOND]
        assert it.epoch == 2


@pytest.mark.parametrize("epochs", [None, 3])
def test_the_length_counts_the_whole_run(epochs: int | None) -> None:
    """The length does not change in a loop, after a break or after a resume."""
    with loader(epochs=epochs) as it:
        whole = 2 * (epochs or 1)
        lengths, left = zip(*((len(it), it.remaining) for _ in it), strict=True)
        assert lengths == (whole,) * whole
        assert left[:-1] == tuple(range(whole - 1, 0, -1))
        it.seek(epoch=0, position=4)
        state = it.state()
    with loader(epochs=epochs, state=state) as resumed:
        assert (len(resumed), resumed.remaining) == (whole, whole - 1)


@pytest.mark.parametrize("remainder", ["drop", "pad"])
@pytest.mark.parametrize("epochs", [None, 1, 3])
def test_remaining_is_what_a_loop_yields(epochs: int | None, remainder: str) -> None:
    with loader(epochs=epochs, remainder=remainder) as it:
        for epoch in range(epochs or 1):
            for position in range(11):
                it.seek(epoch=epoch, position=position)
                remaining = it.remaining
                assert remaining == len(iter(it)) == len(values(it)), (epoch, position)


def test_a_seek_after_the_last_batch_continues_the_loop() -> None:
    with loader() as it:
        loop = iter(it)
        assert [next(loop)["x"].tolist() for _ in range(2)] == [FIRST, SECOND]
        it.seek(epoch=0, position=4)
        assert (len(loop), values(loop)) == (1, [SECOND])
        it.seek(epoch=0)  # a loop that has ended stays over
        assert (len(loop), values(loop)) == (0, [])
        assert values(it) == [FIRST, SECOND]


def test_a_skip_beyond_the_epoch_ends_the_loop() -> None:
    with loader() as it:
        loop = iter(it)
        next(loop)
        it.skip(2)  # to the second batch of the next epoch
        assert (len(loop), it.epoch, it.step) == (0, 1, 1)
        assert values(loop) == []
        assert values(it) == [SECOND]


def test_last_is_the_position_of_the_delivered_batch() -> None:
    with loader(epochs=2, device_prefetch=1) as it:
        with pytest.raises(mf.InvalidStateError) as caught:
            it.last  # noqa: B018
        assert str(caught.value) == (
            "Loader.last: no batch was delivered yet; "
            "ask in a loop; epoch and step belong to the next batch"
        )
        seen = [(it.last, it.epoch) for _ in it]
        assert seen == [((0, 0, 0), 0), ((0, 1, 4), 1), ((1, 0, 0), 1), ((1, 1, 4), 2)]
        it.seek(epoch=0, position=3)
        next(iter(it))
        assert it.last == (0, 0, 3)
        assert it.last.position == 3


@pytest.mark.parametrize("epochs", [None, 2])
def test_a_loop_counts_its_own_batches(epochs: int | None) -> None:
    with loader(epochs=epochs) as it:
        loop, other = iter(it), iter(it)
        next(other)
        assert len(other) == len(loop)
        left = [len(loop) for _ in loop]
        assert left == list(range(len(left)))[::-1]
        assert (len(loop), len(other)) == (0, 0)  # both loops end together


def test_a_loop_that_is_over_stays_over() -> None:
    with loader() as it:
        loop = iter(it)
        assert values(loop) == [FIRST, SECOND]
        assert next(loop, None) is None
        assert it.epoch == 1


def test_a_loop_within_a_loop_ends_both() -> None:
    with loader(12) as it:
        pairs = [
            (outer["x"].tolist()[0], inner["x"].tolist()[0])
            for outer, _ in zip(it, range(9), strict=False)  # a bound in case the test fails
            for inner in it
        ]
        assert (pairs, it.epoch) == ([(0, 4), (0, 8)], 1)
        assert len(values(it)) == 3


def test_loops_of_several_threads_share_an_epoch() -> None:
    with loader(12) as it:
        first, second = iter(it), iter(it)  # the iterator of each thread
        assert [next(first)["x"][0], next(second)["x"][0], next(first)["x"][0]] == [0, 4, 8]
        assert [next(first, None), next(second, None), next(second, None)] == [None] * 3
        assert it.epoch == 1


def test_epochs_are_absolute() -> None:
    with loader(epochs=3) as it:
        assert len(it) == it.remaining == 6
        loop = iter(it)
        next(loop)
        assert it.remaining == 5
        assert len(values(it)) == 5
        assert it.epoch == 3
        assert values(it) == []
        assert (len(it), it.remaining) == (6, 0)
        state = it.state()
    with loader(epochs=3, state=state) as over:
        assert values(over) == []
    with loader(epochs=4, state=state) as more:
        assert len(values(more)) == 2


def test_endless_epochs() -> None:
    with loader(epochs=-1) as it:
        with pytest.raises(TypeError) as caught:
            len(it)
        assert str(caught.value) == (
            "a loader with epochs=-1 has no length; steps_per_epoch has that of an epoch"
        )
        with pytest.raises(TypeError) as endless:
            it.remaining  # noqa: B018
        assert str(endless.value) == (
            "a loader with epochs=-1 has no end; steps_per_epoch is the number per epoch"
        )
        assert it
        loop = iter(it)
        with pytest.raises(TypeError, match="a loop over a loader with epochs=-1 has no length"):
            len(loop)
        assert [next(loop)["x"].tolist() for _ in range(5)] == [FIRST, SECOND, FIRST, SECOND, FIRST]
        assert (it.epoch, it.step) == (2, 1)


def test_one_epoch_does_not_move_the_loader() -> None:
    with loader(shuffle=True) as it:
        next(iter(it))
        state = it.state()
        whole = it.one_epoch()
        assert len(whole) == 2
        assert len(values(whole)) == 2
        assert len(whole) == 0
        assert it.state() == state
        assert values(it.one_epoch(epoch=3)) == values(it.one_epoch(epoch=3))
        evaluation = it.one_epoch()
    assert len(values(evaluation)) == 2  # the pass outlives the loader
    evaluation.close()


def test_one_epoch_with_another_remainder() -> None:
    """An evaluation delivers every record, although the training drops some."""
    with loader(shuffle=True, mask_name="real") as it:
        whole = it.one_epoch(2, remainder="pad")
        assert len(whole) == 3
        batches = list(whole)
        assert [b["real"].tolist() for b in batches[1:]] == [[True] * 4, [True, True, False, False]]
        rows = [x for b in batches for x in b["x"][b["real"]].tolist()]
        assert sorted(rows) == list(range(10))
        assert rows[:8] == flat(values(it.one_epoch(2)))
        assert it.state()["position"] == 0
        with pytest.raises(mf.InvalidArgumentError) as uneven:
            it.one_epoch(remainder="error")
        assert str(uneven.value) == (
            "Loader.one_epoch: 10 records in batches of 4 leave 2 over, but the remainder is an "
            'error; use "drop" or "pad", or a batch that divides the records'
        )
        with pytest.raises(mf.InvalidArgumentError) as unknown:
            it.one_epoch(remainder=wrong("padded"))
        assert str(unknown.value) == (
            'Loader.one_epoch: remainder=\'padded\': expected "drop", "pad" or "error"'
        )
    with loader(remainder="pad") as it:
        assert [list(batch) for batch in it.one_epoch(remainder="drop")] == [["x"]] * 2
        assert [list(batch) for batch in it.one_epoch()] == [["x", "valid"]] * 3


def test_one_epoch_of_a_process_of_a_layout() -> None:
    with numbers(8) as ds:
        lay = mf.layout({"data": 2}, mf.P("data"), ds, batch_size=4)
        with mf.Loader(ds, layout=lay, process=0) as it:
            with pytest.raises(mf.InvalidArgumentError) as caught:
                it.one_epoch(remainder="pad")
    assert str(caught.value) == (
        "Loader.one_epoch: this loader plays a process of a layout, which says what the remainder "
        "is; leave out remainder=, or make a layout with it"
    )


def test_one_epoch_beyond_the_last() -> None:
    with loader(epochs=3) as it:
        assert len(it.one_epoch(2)) == 2
        for remainder in (None, "pad"):
            with pytest.raises(mf.OutOfRangeError) as caught:
                it.one_epoch(5, remainder=wrong(remainder))
            assert str(caught.value) == (
                "Loader.one_epoch: there is no epoch 5: the loader has 3; epochs count from 0"
            )


@pytest.mark.parametrize("name", ["seed", "epoch", "batch_size", "last"])
def test_attributes_of_a_loader_cannot_be_set(name: str) -> None:
    with loader() as it:
        with pytest.raises(AttributeError) as caught:
            setattr(it, name, 3)
        assert str(caught.value) == (
            f"a loader's {name!r} cannot be set: give it when the loader is made; "
            "seek and restore move it, remesh changes its mesh"
        )


def test_state_travels_with_the_batch() -> None:
    with loader(shuffle=True, prefetch=4) as it:
        pairs = [(batch["x"].tolist(), state) for batch, state in it.with_state()]
        assert [state["position"] for _, state in pairs] == [4, 0]
        it.restore(pairs[0][1])
        assert values(it) == [pairs[1][0]]


def test_the_state_is_small_and_json() -> None:
    with loader(shuffle=True, seed=2**53) as it:
        text = json.dumps(it.state(), separators=(",", ":"))
        assert len(text) <= 256
        assert json.loads(text) == it.state()
        assert it.state() | {"dataset": ""} == {
            "meshfeed": 1,
            "order": "shuffle.1",
            "dataset": "",
            "records": 10,
            "seed": 2**53,
            "epoch": 0,
            "position": 0,
        }


@pytest.mark.parametrize("device_prefetch", [0, 1, 3])
@pytest.mark.parametrize("prefetch", [0, 1, 5])
def test_restoring_at_every_step_continues_exactly(prefetch: int, device_prefetch: int) -> None:
    options: dict[str, Any] = {"shuffle": True, "seed": 9, "epochs": 3}
    with loader(22, **options) as whole:
        pairs = [(batch["x"].tolist(), state) for batch, state in whole.with_state()]
    assert len(pairs) == 15
    options |= {"prefetch": prefetch, "device_prefetch": device_prefetch}
    for i, (_, state) in enumerate(pairs):
        with loader(22, state=state, **options) as rest:
            assert (len(rest), rest.remaining) == (len(pairs), len(pairs) - i - 1)
            assert values(rest) == [x for x, _ in pairs[i + 1 :]]


@pytest.mark.parametrize("device_prefetch", [1, 2, 5])
def test_batches_made_ahead_do_not_change_loops(device_prefetch: int) -> None:
    options: dict[str, Any] = {"n": 22, "shuffle": True, "prefetch": 6}
    with loader(**options) as plain, loader(**options, device_prefetch=device_prefetch) as it:
        epochs = [values(plain) for _ in range(4)]
        for epoch in epochs[:2]:
            assert it.remaining == 5
            loop = iter(it)
            first = made_ahead(it, loop)
            assert it.remaining == len(loop) == 5 - len(first)
            assert [*first, *values(loop)] == epoch
        loop = iter(it)
        made_ahead(it, loop)
        it.seek(epoch=3)
        assert values(it) == epochs[3]
        it.seek(epoch=0)
        for _ in range(5):
            next(iter(it))  # the loop is left after its last batch
        assert values(it) == epochs[1]


def test_batches_made_ahead_count_as_not_delivered() -> None:
    with loader(epochs=3, device_prefetch=2, prefetch=6) as it:
        loop = iter(it)
        first = made_ahead(it, loop)
        assert it.remaining == 6 - len(first)
        assert it.stats()["batches"] > len(first)
        assert it.stats()["position"] == 4 * len(first) % 8
        assert [*first, *values(loop)] == [FIRST, SECOND] * 3


def made_ahead(it: mf.Loader, loop: Iterator[Any]) -> list[list[int]]:
    """Takes batches until more were made than delivered, and returns those delivered."""
    before, taken = it.stats()["batches"], [next(loop)["x"].tolist()]
    while it.stats()["batches"] - before <= len(taken):
        end = time.monotonic() + 20
        while it.stats()["queued"] < 2:
            assert time.monotonic() < end
            time.sleep(0.001)
        taken.append(next(loop)["x"].tolist())
    return taken


def test_another_mesh_and_batch_size_continue_with_the_next_record() -> None:
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    other = jax.make_mesh((2,), ("data",), devices=jax.devices()[3:5])
    with numbers(48) as ds:
        options: dict[str, Any] = {"shuffle": True, "seed": 4, "epochs": 2}
        with mf.Loader(ds, mesh, P("data"), batch_size=8, **options) as first:
            loop = iter(first)
            seen = flat(np.asarray(next(loop)["x"]).tolist() for _ in range(4))
            state = first.state()
        with mf.Loader(ds, other, P("data"), batch_size=4, state=state, **options) as second:
            seen += flat(values(second))
        with mf.Loader(ds, batch_size=16, **options) as whole:
            assert seen == flat(values(whole))


def test_seek() -> None:
    with loader(shuffle=True) as it:
        epochs = [values(it) for _ in range(3)]
        it.seek(epoch=1)
        assert values(it) == epochs[1]
        it.seek(epoch=2, position=4)
        assert values(it) == epochs[2][1:]
        it.seek(epoch=0, position=7)  # no step begins there
        assert (it.epoch, it.step) == (1, 0)


def test_errors_of_python_name_the_loader() -> None:
    with loader() as it, pytest.raises(TypeError) as caught:
        it.seek(1)  # type: ignore[call-arg]
    assert str(caught.value) == "Loader.seek() takes 1 positional argument but 2 were given"


def test_save_state(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    with loader(shuffle=True) as it:
        next(iter(it))
        it.save_state(path)
        rest = values(it)
        assert [p.name for p in tmp_path.iterdir()] == ["run.json"]
    with loader(shuffle=True, state=path) as again:
        assert values(again) == rest
        again.restore(str(path))
        assert values(again) == rest


def test_a_state_of_another_dataset_seed_or_order_is_refused() -> None:
    with loader(shuffle=True, seed=1) as it:
        state = it.state()
    with loader(11, shuffle=True, seed=1) as it:
        for wrong in (state, state | {"seed": 2}, state | {"order": "sequential.1"}):
            with pytest.raises(mf.IncompatibleError):
                it.restore(wrong)
        assert len(values(it)) == 2
    with pytest.raises(mf.IncompatibleError):
        loader(shuffle=True, seed=2, state=state)
    with pytest.raises(mf.InvalidArgumentError):
        loader(state={"epoch": 1})


def test_another_dataset_can_be_accepted() -> None:
    with loader(shuffle=True) as it:
        next(iter(it))
        state = it.state()
    with mf.from_arrays({"x": np.arange(100, 110)}) as ds:
        with pytest.raises(mf.IncompatibleError) as refused:
            mf.Loader(ds, batch_size=4, shuffle=True, state=state)
        assert refused.value.hint == (  # without the advice for Go programs
            'open the dataset that was saved, or pass dataset="ignore" if its records are the same'
        )
        with mf.Loader(ds, batch_size=4, shuffle=True, state=state, dataset="ignore") as it:
            assert it.step == 1
            with pytest.raises(mf.InvalidArgumentError) as caught:
                it.restore(state, dataset=wrong("no"))
            assert str(caught.value) == (
                'Loader.restore: dataset=\'no\': expected "check" or "ignore"; '
                '"ignore" accepts the state of another dataset'
            )


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
        wrongs: list[dict[str, Any]] = [
            {"batch_size": 4, "process": 0},
            {"loading": "device", "process": 0},
            {},
        ]
        for wrong in wrongs:
            with pytest.raises(mf.InvalidArgumentError) as caught:
                mf.Loader(ds, layout=lay, **wrong)
            assert str(caught.value) == (
                "mf.Loader: a layout says mesh, specs, batch size and loading, "
                "but not the process; use mf.Loader(source, layout=layout, process=p)"
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
