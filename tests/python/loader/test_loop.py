"""Loops over a loader: their batches, their lengths, and where the next loop begins."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import meshfeed as mf
from tests.python.samples import FIRST, SECOND, flat, loader, numbers, values, wrong


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
            "a loader with epochs=-1 has no length; steps_per_epoch is the length of an epoch"
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
        "Loader.one_epoch: this loader simulates a process of a layout, which says what the "
        "remainder is; leave out remainder=, or make a layout with it"
    )


def test_an_epoch_beyond_the_last() -> None:
    uses: list[tuple[str, Callable[[], object]]] = [
        ("one_epoch", lambda: it.one_epoch(5)),
        ("one_epoch", lambda: it.one_epoch(5, remainder="pad")),
        ("records", lambda: it.records(5, 0)),
    ]
    with loader(epochs=3) as it:
        assert len(it.one_epoch(2)) == 2
        assert it.records(2, 4).tolist() == SECOND
        for name, use in uses:
            with pytest.raises(mf.OutOfRangeError) as caught:
                use()
            assert str(caught.value) == (
                f"Loader.{name}: there is no epoch 5: the loader has 3; epochs count from 0"
            )


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
    """Takes batches until more were made than delivered, and returns the delivered ones."""
    before, taken = it.stats()["batches"], [next(loop)["x"].tolist()]
    while it.stats()["batches"] - before <= len(taken):
        end = time.monotonic() + 20
        while it.stats()["queued"] < 2:
            assert time.monotonic() < end
            time.sleep(0.001)
        taken.append(next(loop)["x"].tolist())
    return taken
