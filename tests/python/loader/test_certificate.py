"""Certificates: sums over processes and runs, checks, and when a new run begins."""

from __future__ import annotations

import dataclasses
import json
import pickle
import signal
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

import meshfeed as mf
from meshfeed._loader.certificate import Span
from meshfeed._native import calls

RECORDS = 200


def data() -> mf.Dataset:
    return mf.from_arrays({"x": np.arange(RECORDS), "y": np.ones((RECORDS, 8), np.float32)})


def players(ds: mf.Dataset, processes: int = 4, size: int = 32, **options: Any) -> list[mf.Loader]:
    lay = mf.layout({"data": processes}, mf.P("data"), ds, batch_size=size, processes=processes)
    return [mf.Loader(ds, layout=lay, process=p, **options) for p in range(processes)]


def added(parts: Iterable[mf.Certificate]) -> mf.Certificate:
    total = sum(parts)
    assert isinstance(total, mf.Certificate)
    return total


def forward(loader: mf.Loader, batches: int) -> None:
    done = 0
    while done < batches:
        for _ in loader:
            done += 1
            if done == batches:
                break


def delivered(done: mf.Certificate) -> list[list[tuple[int, ...]]]:
    """Returns the delivered positions of every run."""
    return [[tuple(span) for span in run.delivered] for run in done.runs]


def test_processes_and_runs_add_up() -> None:
    ds = data()
    first = players(ds, shuffle=True, seed=3)
    for loader in first:
        forward(loader, 4)
    second = players(ds, processes=2, size=24, shuffle=True, seed=3, state=first[0].state())
    for loader in second:
        forward(loader, 6)
    total = added(loader.certificate() for loader in [*second, *first])
    assert delivered(total) == [[(0, 1, 0, 128)], [(0, 1, 128, 200), (1, 1, 0, 72)]]
    assert [run.processes for run in total.runs] == [((0, 4),), ((0, 2),)]
    assert (total.first, total.last) == ((0, 0), (1, 72))
    total.check()
    total.check(1)
    total.check(last=(1, 72))
    assert not total.complete(2)
    assert repr(total) == "<Certificate of shuffle.1, seed 3: 2 runs, to position 72 of epoch 1>"
    assert str(total).splitlines()[1:] == [
        "  run 1, processes 0 to 3 of 4: delivered [0, 128) of epoch 0",
        "  run 2, processes 0 to 1 of 2: delivered [128, 200) of epoch 0, [0, 72) of epoch 1",
        "  up to position 72 of epoch 1 nothing is missing and nothing came twice; check compares "
        "the records",
    ]


RUNS = (
    "add the certificate of the run that delivered them, saved together with the state from which "
    "the next run began"
)
ONCE = (
    "add each certificate once; restore and seek deliver again what comes after the position to "
    "which they go"
)
ALL = "add the certificates of all processes; if all are there, these stopped earlier"


def incomplete(done: mf.Certificate, text: str, **asked: Any) -> None:
    assert not done.complete(**asked)
    with pytest.raises(mf.DataLossError) as error:
        done.check(**asked)
    assert str(error.value) == f"Certificate.check: {text}"


def test_a_certificate_older_than_the_state() -> None:
    """The check names the positions between an older certificate and the state."""
    ds = data()
    loader = mf.Loader(ds, batch_size=16, shuffle=True)
    forward(loader, 3)
    old = loader.certificate()
    forward(loader, 3)
    state = loader.state()
    resumed = mf.Loader(ds, batch_size=16, shuffle=True, state=state)
    forward(resumed, 4)
    incomplete(
        old + resumed.certificate(), f"48 positions are missing: [48, 96) of epoch 0; {RUNS}"
    )
    (loader.certificate() + resumed.certificate()).check()


def test_an_epoch_is_left_out() -> None:
    loader = mf.Loader(data(), batch_size=16, shuffle=True)
    list(loader)
    loader.seek(epoch=2)
    list(loader)
    incomplete(loader.certificate(), f"200 positions are missing: [0, 200) of epoch 1; {RUNS}")
    assert loader.certificate().complete(epochs=range(2, 3))


def test_the_first_step_is_missing() -> None:
    loader = mf.Loader(data(), batch_size=16, shuffle=True)
    loader.seek(epoch=0, position=16)
    list(loader)
    incomplete(loader.certificate(), f"16 positions are missing: [0, 16) of epoch 0; {RUNS}")
    loader.certificate().check(first=(0, 16))


def test_seek_leaves_a_gap() -> None:
    loader = mf.Loader(data(), batch_size=16, shuffle=True)
    forward(loader, 3)
    loader.seek(epoch=0, position=96)
    forward(loader, 2)
    incomplete(loader.certificate(), f"48 positions are missing: [48, 96) of epoch 0; {RUNS}")
    assert loader.certificate().complete(last=(0, 48))


def test_restore_delivers_twice() -> None:
    loader = mf.Loader(data(), batch_size=16, shuffle=True)
    forward(loader, 2)
    state = loader.state()
    forward(loader, 2)
    loader.restore(state)
    forward(loader, 4)
    done = loader.certificate()
    assert delivered(done) == [[(0, 1, 0, 64)], [(0, 1, 32, 96)]]
    incomplete(
        done,
        f"the process delivered 32 positions more than once: [32, 64) of epoch 0; {ONCE}",
    )
    repeated = {"processes": [[0, 1]], "positions": [[0, 1, 32, 64]]}
    assert done.report()["repeated"] == [repeated]


def test_nothing_was_delivered() -> None:
    done = mf.Loader(data(), batch_size=16).certificate()
    assert (done.first, done.last, done.delivered, done.runs) == (None, None, (), ())
    assert repr(done) == "<Certificate of sequential.1, seed 0: 0 runs, empty>"
    take = "take the certificate after the loop, and add the certificates of all processes and runs"
    incomplete(done, f"nothing was delivered; {take}")
    incomplete(done, f"nothing was delivered; {take}", epochs=np.int64(3))
    incomplete(done, f"nothing was delivered; {take}", first=(0, 16))


def test_a_process_that_holds_columns_stops() -> None:
    """Each of two processes holds half of the columns, and process 1 stops at step 10."""
    ds = mf.from_arrays({"y": np.ones((630, 8), np.float32)})
    lay = mf.layout({"model": 2}, mf.P(None, "model"), ds, batch_size=10, processes=2)
    loaders = [mf.Loader(ds, layout=lay, process=p, shuffle=True) for p in range(2)]
    for loader, steps in zip(loaders, (63, 10), strict=True):
        forward(loader, steps)
    parts = [loader.certificate() for loader in loaders]
    assert [part.runs[0].rows for part in parts] == [630, 100]
    incomplete(
        added(parts),
        "process 1 of 2 did not deliver 530 positions that others did: [100, 630) of epoch 0; "
        + ALL,
    )
    forward(loaders[1], 53)
    added(loader.certificate() for loader in loaders).check(epochs=1)


def test_replicas_count_positions() -> None:
    """A process that holds only replicas counts no row, but its missing positions are found."""
    ds = data()
    lay = mf.layout({"copies": 2}, mf.P(), ds, batch_size=20, processes=2)
    loaders = [mf.Loader(ds, layout=lay, process=p) for p in range(2)]
    for loader, steps in zip(loaders, (10, 9), strict=True):
        forward(loader, steps)
    parts = [loader.certificate() for loader in loaders]
    assert [part.runs[0].rows for part in parts] == [400, 0]  # two arrays
    incomplete(
        added(parts),
        "process 1 of 2 did not deliver 20 positions that others did: [180, 200) of epoch 0; "
        + ALL,
    )


def test_missing_and_repeated_positions() -> None:
    ds = data()
    loaders = players(ds, epochs=1)
    for loader in loaders:
        forward(loader, 6)
    parts = [loader.certificate() for loader in loaders]
    assert added(parts).complete()
    whole = "192 positions that others did: [0, 192) of epoch 0"
    incomplete(added(parts[1:]), f"process 0 of 4 did not deliver {whole}; {ALL}")
    incomplete(
        added(parts[::3]),
        f"processes 1 to 2 of 4 did not deliver {whole}; {ALL}",
    )
    twice = "process 2 of 4 delivered 192 positions more than once: [0, 192) of epoch 0"
    incomplete(added(parts) + parts[2], f"{twice}; {ONCE}")
    incomplete(
        parts[0] + parts[1] + parts[2] + parts[2],
        f"{twice}; process 3 of 4 did not deliver {whole}; {ONCE}; {ALL}",
    )


def test_remainders() -> None:
    """With "drop" the remainder is dropped; a larger batch after a state drops more."""
    ds = data()
    loader = mf.Loader(ds, batch_size=24, epochs=2)
    list(loader)
    done = loader.certificate()
    assert done.dropped == ((0, 2, 192, 200),)
    done.check(epochs=2)
    padded = mf.Loader(ds, batch_size=24, epochs=2, remainder="pad")
    list(padded)
    done = padded.certificate()
    assert (done.delivered, done.dropped) == (((0, 2, 0, 200),), ())
    done.check(epochs=2)
    first = mf.Loader(ds, batch_size=8)
    forward(first, 20)
    resumed = mf.Loader(ds, batch_size=64, epochs=2, state=first.state())
    list(resumed)
    done = first.certificate() + resumed.certificate()
    assert done.dropped == ((0, 1, 160, 200), (1, 1, 192, 200))
    done.check(epochs=2)


def test_skip() -> None:
    loader = mf.Loader(data(), batch_size=16, shuffle=True, epochs=2)
    taken = iter(loader)
    for _ in range(3):
        next(taken)
    loader.skip(2)
    assert (loader.epoch, loader.step) == (0, 5)
    state = loader.state()
    np.testing.assert_array_equal(next(taken)["x"], loader.records(0, 80))
    loader.skip(0)
    loader.skip(10)  # beyond the end of the epoch
    assert (loader.epoch, loader.step) == (1, 4)
    resumed = mf.Loader(data(), batch_size=16, shuffle=True, epochs=2, state=state)
    assert (resumed.epoch, resumed.step) == (0, 5)
    with pytest.raises(mf.OutOfRangeError) as error:
        loader.skip(9)
    text = "9 steps cannot be skipped: 8 are left of 2 epochs"
    assert str(error.value) == f"Loader.skip: {text}"
    with pytest.raises(mf.OutOfRangeError) as error:
        loader.skip(-1)
    text = "-1 steps cannot be skipped; give a number from 0; seek goes back"
    assert str(error.value) == f"Loader.skip: {text}"
    assert sum(1 for _ in taken) == 8
    done = loader.certificate()
    assert done.delivered == ((0, 1, 0, 48), (0, 1, 80, 96), (1, 1, 64, 192))
    assert done.skipped == ((0, 1, 48, 80), (0, 1, 96, 192), (1, 1, 0, 64))
    assert done.dropped == ((0, 2, 192, 200),)
    done.check(epochs=2)


def test_skip_ends_a_loop_over_one_epoch() -> None:
    loader = mf.Loader(data(), batch_size=16)
    steps = 0
    for _ in loader:
        steps += 1
        if steps == 2:
            loader.skip(12)
    assert (steps, loader.epoch, loader.step) == (2, 1, 2)
    assert sum(1 for _ in loader) == 10
    for _ in loader:
        loader.skip(11)  # up to the end of the epoch
    assert (loader.epoch, loader.step) == (3, 0)
    assert sum(1 for _ in loader) == 12


def test_skip_of_batches_made_ahead() -> None:
    """Skipped steps are counted from the last delivered batch."""
    jax = pytest.importorskip("jax")
    mesh = jax.make_mesh((1,), ("data",))
    options: dict[str, Any] = {"device_prefetch": 3, "epochs": -1}
    loader = mf.Loader(data(), mesh, mf.P("data"), batch_size=16, **options)
    forward(loader, 2)
    loader.skip(1)
    assert np.asarray(next(iter(loader))["x"])[0] == 48
    assert loader.certificate().skipped == ((0, 1, 32, 48),)
    assert loader.certificate().complete()


@pytest.mark.parametrize("wrong", [True, 0, -1, 1.5, range(0), range(0, 4, 2), range(-1, 2), "3"])
def test_invalid_epochs(wrong: Any) -> None:
    done = mf.Loader(data(), batch_size=16).certificate()
    with pytest.raises(mf.InvalidArgumentError) as error:
        done.complete(epochs=wrong)
    text = f"epochs={wrong!r}: expected a number of epochs, or a range of them"
    assert str(error.value) == f"Certificate.check: {text}"


def test_invalid_ranges() -> None:
    loader = mf.Loader(data(), batch_size=16)
    forward(loader, 2)
    done = loader.certificate()
    with pytest.raises(mf.InvalidArgumentError) as error:
        done.check(3, last=(2, 0))
    text = "epochs= and first= or last= do not go together; give one of them"
    assert str(error.value) == f"Certificate.check: {text}"
    wrong: Any = 3
    with pytest.raises(mf.InvalidArgumentError) as error:
        done.report(last=wrong)
    assert str(error.value) == "Certificate.report: last=3: expected an epoch and a position"
    with pytest.raises(mf.OutOfRangeError) as outside:
        done.check(last=(0, 201))
    text = "position 201 of epoch 0 is outside of epochs of 200 records"
    assert str(outside.value) == f"Certificate.check: {text}"
    with pytest.raises(mf.InvalidArgumentError) as error:
        done.check(first=(0, 32))
    text = "there are no positions from position 32 of epoch 0 to position 32 of epoch 0; the last "
    text += "one is the cursor after the last position"
    assert str(error.value) == f"Certificate.check: {text}"


def test_another_seed_cannot_be_added() -> None:
    ds = data()
    one, other = (players(ds, shuffle=True, seed=seed)[0].certificate() for seed in (1, 2))
    with pytest.raises(mf.IncompatibleError) as error:
        one + other
    assert str(error.value) == (
        "mf.Certificate: certificates of different sequences cannot be added: seed 1 and 2; "
        "every process and every run must load the same dataset with the same order and seed"
    )
    with pytest.raises(TypeError):
        one + 1  # type: ignore[operator]


def test_runs_stay_apart() -> None:
    loader = mf.Loader(data(), batch_size=16, shuffle=True)
    forward(loader, 3)
    state = loader.state()
    assert delivered(loader.certificate()) == [[(0, 1, 0, 48)]]
    forward(loader, 2)
    loader.restore(state)
    assert delivered(loader.certificate()) == [[(0, 1, 0, 80)]]
    forward(loader, 1)
    assert delivered(loader.certificate()) == [[(0, 1, 0, 80)], [(0, 1, 48, 64)]]
    loader.seek(epoch=2)
    forward(loader, 1)
    before = loader.certificate()
    assert delivered(before) == [[(0, 1, 0, 80)], [(0, 1, 48, 64)], [(2, 1, 0, 16)]]
    pass_over = loader.one_epoch(7)
    next(pass_over)
    assert loader.certificate() == before


def test_batches_made_ahead_do_not_count() -> None:
    ds = data()
    jax = pytest.importorskip("jax")
    mesh = jax.make_mesh((1,), ("data",))
    loader = mf.Loader(ds, mesh, mf.P("data"), batch_size=16, device_prefetch=3, epochs=-1)
    forward(loader, 5)
    assert delivered(loader.certificate()) == [[(0, 1, 0, 80)]]
    assert loader.certificate().complete()


def test_a_batch_whose_arrays_failed_is_taken_back() -> None:
    ds = data()
    jax = pytest.importorskip("jax")
    loader = mf.Loader(ds, jax.make_mesh((1,), ("data",)), mf.P("data"), batch_size=16)
    forward(loader, 2)
    with jax.transfer_guard_host_to_device("disallow_explicit"):
        with pytest.raises(jax.errors.JaxRuntimeError):
            next(iter(loader))
    assert delivered(loader.certificate()) == [[(0, 1, 0, 32)]]
    forward(loader, 2)
    assert delivered(loader.certificate()) == [[(0, 1, 0, 64)]]
    assert loader.certificate().complete()


def test_remesh_continues_the_certificate() -> None:
    ds = data()
    jax = pytest.importorskip("jax")
    mesh, other = jax.make_mesh((1,), ("data",)), jax.make_mesh((1, 1), ("data", "model"))
    loader = mf.Loader(ds, mesh, mf.P("data"), batch_size=16, device_prefetch=2, shuffle=True)
    forward(loader, 3)
    loader.remesh(other)
    assert delivered(loader.certificate()) == [[(0, 1, 0, 48)]]
    forward(loader, 3)
    assert delivered(loader.certificate()) == [[(0, 1, 0, 48)], [(0, 1, 48, 96)]]
    loader.certificate().check()


def test_certificates_are_json_and_values() -> None:
    ds = data()
    loader = mf.Loader(ds, batch_size=16, seed=5)
    forward(loader, 15)
    done = loader.certificate()
    text = done.to_json()
    assert text == calls.certificate_add(text, loader_zero(done).to_json())
    sorted_keys = json.dumps(json.loads(text), sort_keys=True, indent=1)
    assert mf.Certificate.from_json(sorted_keys) == done
    assert mf.Certificate.from_json(json.loads(sorted_keys)) == done
    assert pickle.loads(pickle.dumps(done)) == done
    assert len({done, mf.Certificate.from_json(text.encode())}) == 1
    assert len(text) < 400


def loader_zero(done: mf.Certificate) -> mf.Certificate:
    return mf.Certificate.from_json(json.loads(done.to_json()) | {"runs": []})


NESTED = ": values are nested deeper than 8 (line 1, byte {})"
KEYS = "the keys here are meshfeed, order, dataset, records, seed, runs, commits"
UNCHANGED = "pass on what a loader gave, unchanged"


@pytest.mark.parametrize(
    ("text", "why", "hint"),
    [
        ("", ": expected a value, but the text ends (line 1, byte 1)", UNCHANGED),
        ("[]", ": expected a certificate, but found a list", UNCHANGED),
        ("7", ": expected a certificate, but found a number", UNCHANGED),
        ("{}", ': a certificate needs the key "meshfeed"', UNCHANGED),
        ('{"meshfeed": 2}', ': a certificate needs the key "order"', UNCHANGED),
        ("[" * 100_000, ": " + "/0" * 8 + NESTED.format(9), UNCHANGED),
        ('{"runs": ' + "[" * 100_000, ": /runs" + "/0" * 7 + NESTED.format(17), UNCHANGED),
        ({"rows": 1}, ': /rows: "rows" is not a key', KEYS),
        (
            {"rows": float("nan")},
            ": /rows: expected a value, but found 'N' (line 1, byte 10)",
            UNCHANGED,
        ),
        ({"rows": object()}, "", UNCHANGED),
        (None, "", UNCHANGED),
        (3, "", UNCHANGED),
    ],
)
def test_invalid_certificates(text: Any, why: str, hint: str) -> None:
    with pytest.raises(mf.InvalidArgumentError) as error:
        mf.Certificate.from_json(text)
    assert str(error.value) == f"mf.Certificate: this is not a certificate{why}; {hint}"


def test_a_certificate_of_another_format() -> None:
    with pytest.raises(mf.IncompatibleError) as error:
        mf.Certificate.from_json('{"meshfeed":1,"order":"shuffle.1","runs":[[0,1,0,8]],"rows":8}')
    assert str(error.value) == (
        "mf.Certificate: the certificate is of version 1, but this release reads version 2; "
        "read it with the release that wrote it"
    )


def test_bounds_are_those_of_the_library() -> None:
    loader = mf.Loader(data(), batch_size=16)
    forward(loader, 1)
    done = loader.certificate()
    wrong = dataclasses.replace(done.runs[0], delivered=(Span(0, 1, 0, 201),))
    beyond = dataclasses.replace(done, runs=(wrong,))
    message = "this is not a certificate: piece [0 1 0 201] is not within epochs of "
    message += "200 records; pass on what a loader gave, unchanged"
    uses: dict[str, Callable[[], object]] = {
        "Certificate.check": beyond.check,
        "mf.Certificate": lambda: beyond + beyond,
        "Certificate.report": beyond.report,
    }
    for op, use in uses.items():
        with pytest.raises(mf.InvalidArgumentError) as error:
            use()
        assert str(error.value) == f"{op}: {message}"
    with pytest.raises(mf.InvalidArgumentError) as error:
        mf.Certificate.from_json(beyond.to_json())
    assert str(error.value) == f"mf.Certificate: {message}"


def test_only_certificates_add_up() -> None:
    """A sum may begin with 0, and with no other number."""
    one = mf.Loader(data(), batch_size=16).certificate()
    assert sum([one]) == one
    numbers: list[Any] = [1, 0.5, None]
    for number in numbers:
        with pytest.raises(TypeError, match="unsupported operand"):
            number + one
        with pytest.raises(TypeError, match="unsupported operand"):
            one + number


def test_ctrl_c_ends_a_long_check() -> None:
    """A check of 10^15 positions, interrupted after it has begun."""
    loader = mf.Loader(data(), batch_size=16)
    forward(loader, 1)
    done = loader.certificate()
    many = 5 * 10**12
    whole = (Span(0, many, 0, RECORDS),)
    rows = many * RECORDS * done.runs[0].parts
    run = dataclasses.replace(done.runs[0], delivered=whole, rows=rows)
    long = dataclasses.replace(done, runs=(run,))
    main = threading.get_ident()
    timer = threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the timer is for the check alone
        timer.start()
        long.check()
    timer.join()
    for thread in threading.enumerate():  # handles are released on this thread
        if thread.name == "meshfeed.release":
            thread.join()


def test_blocks_of_the_dataset(tmp_path: Path) -> None:
    paths = []
    for name, size in (("a.arrow", 40), ("b.arrow", 25), ("c.arrow", 40)):
        table = pa.table({"x": np.arange(100)})
        paths.append(tmp_path / name)
        with pa.ipc.new_file(paths[-1], table.schema) as writer:
            writer.write_table(table, max_chunksize=size)
    with mf.open(paths[0]) as ds, mf.open(paths[1]) as other, mf.open(paths[2]) as equal:
        loaders = players(ds, order="blocks")
        for loader in loaders:
            forward(loader, 3)
        total = added(loader.certificate() for loader in loaders)
        total.check(dataset=ds)
        assert total.complete(last=(0, 64), dataset=equal)
        assert not total.complete(2, dataset=ds)
        with pytest.raises(mf.InvalidArgumentError, match=r"give the dataset \(cert"):
            total.check()
        with pytest.raises(mf.IncompatibleError, match="for units with the hash"):
            total.check(dataset=other)
        with pytest.raises(
            mf.IncompatibleError, match="has 50 records, but the certificate is of 100"
        ):
            total.check(dataset=ds.slice(0, 50))
        with pytest.raises(mf.InvalidArgumentError, match=r"dataset='a\.arrow'"):
            total.check(dataset=cast("mf.Dataset", "a.arrow"))
