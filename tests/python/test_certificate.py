"""Certificates: sums over processes and runs, what they find, and where they begin anew."""

from __future__ import annotations

import dataclasses
import json
import pickle
import signal
import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import meshfeed as mf
from meshfeed import _native

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


def test_processes_and_runs_add_up() -> None:
    ds = data()
    first = players(ds, shuffle=True, seed=3)
    for loader in first:
        forward(loader, 4)
    second = players(ds, processes=2, size=24, shuffle=True, seed=3, state=first[0].state())
    for loader in second:
        forward(loader, 6)
    total = added(loader.certificate() for loader in [*second, *first])
    assert total.runs == ((0, 1, 0, 200), (1, 1, 0, 72))
    assert (total.first, total.last, total.rows) == ((0, 0), (1, 72), 272)
    total.check()
    alone = mf.Loader(ds, batch_size=8, shuffle=True, seed=3)
    forward(alone, 34)
    assert alone.certificate() == total


def test_what_is_missing_or_too_much() -> None:
    ds = data()
    loaders = players(ds, epochs=1)
    for loader in loaders:
        forward(loader, 6)
    parts = [loader.certificate() for loader in loaders]
    assert added(parts).complete()
    assert not added(parts[1:]).complete()
    with pytest.raises(mf.DataLossError) as missing:
        added(parts[1:]).check()
    assert str(missing.value) == (
        "Certificate.check: 48 of 192 rows are missing, of positions [0, 192) of epoch 0; "
        "add the certificates of all processes; if all are there, rows were lost"
    )
    with pytest.raises(mf.DataLossError) as twice:
        (added(parts) + parts[2]).check()
    assert str(twice.value) == (
        "Certificate.check: 240 rows came for 192 positions, [0, 192) of epoch 0; "
        "a certificate was added twice, or rows were delivered twice"
    )
    swapped = parts[0] + parts[1] + parts[2] + parts[2]
    assert swapped.rows == 192
    assert not swapped.complete()


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


def test_a_place_of_its_own_begins_a_run() -> None:
    ds = data()
    loader = mf.Loader(ds, batch_size=16, shuffle=True)
    empty = loader.certificate()
    assert (empty.first, empty.last, empty.rows, empty.complete()) == (None, None, 0, True)
    forward(loader, 3)
    state = loader.state()
    assert loader.certificate().runs == ((0, 1, 0, 48),)
    forward(loader, 2)
    loader.restore(state)
    assert loader.certificate() == empty
    forward(loader, 1)
    assert loader.certificate().runs == ((0, 1, 48, 64),)
    loader.seek(epoch=2)
    forward(loader, 1)
    assert loader.certificate().runs == ((2, 1, 0, 16),)
    pass_over = loader.one_epoch(7)
    next(pass_over)
    assert loader.certificate().runs == ((2, 1, 0, 16),)


def test_batches_made_ahead_do_not_count() -> None:
    ds = data()
    jax = pytest.importorskip("jax")
    mesh = jax.make_mesh((1,), ("data",))
    loader = mf.Loader(ds, mesh, mf.P("data"), batch_size=16, device_prefetch=3, epochs=-1)
    forward(loader, 5)
    assert loader.certificate().runs == ((0, 1, 0, 80),)
    assert loader.certificate().complete()


def test_a_lost_batch_is_taken_back() -> None:
    ds = data()
    loader = mf.Loader(ds, batch_size=16)
    forward(loader, 2)
    make = loader._engine.cursor._make

    def fail(owner: Any) -> Any:
        raise RuntimeError("no memory on the device")

    loader._engine.cursor._make = fail
    with pytest.raises(RuntimeError):
        next(iter(loader))
    assert loader.certificate().runs == ((0, 1, 0, 32),)
    loader._engine.cursor._make = make
    forward(loader, 2)
    assert loader.certificate().runs == ((0, 1, 0, 64),)
    assert loader.certificate().complete()


def test_remesh_goes_on_with_the_certificate() -> None:
    ds = data()
    jax = pytest.importorskip("jax")
    mesh, other = jax.make_mesh((1,), ("data",)), jax.make_mesh((1, 1), ("data", "model"))
    loader = mf.Loader(ds, mesh, mf.P("data"), batch_size=16, device_prefetch=2, shuffle=True)
    forward(loader, 3)
    loader.remesh(other)
    assert loader.certificate().runs == ((0, 1, 0, 48),)
    forward(loader, 3)
    assert loader.certificate().runs == ((0, 1, 0, 96),)
    loader.certificate().check()


def test_it_is_json_and_a_value() -> None:
    ds = data()
    loader = mf.Loader(ds, batch_size=16, seed=5)
    forward(loader, 15)
    done = loader.certificate()
    text = done.to_json()
    assert text == _native.certificate_add(text, loader_zero(done).to_json())
    sorted_keys = json.dumps(json.loads(text), sort_keys=True, indent=1)
    assert mf.Certificate.from_json(sorted_keys) == done
    assert mf.Certificate.from_json(json.loads(sorted_keys)) == done
    assert pickle.loads(pickle.dumps(done)) == done
    assert len({done, mf.Certificate.from_json(text.encode())}) == 1
    assert len(text) < 300


def loader_zero(done: mf.Certificate) -> mf.Certificate:
    values = json.loads(done.to_json()) | {"runs": [], "rows": 0, "digest": "0" * 32}
    return mf.Certificate.from_json(values)


@pytest.mark.parametrize("text", ["", "[]", "{}", "7", '{"meshfeed": 1}', None, 3, {"rows": 1}])
def test_what_is_no_certificate(text: Any) -> None:
    with pytest.raises(mf.InvalidArgumentError) as error:
        mf.Certificate.from_json(text)
    expected = "mf.Certificate: this is not a certificate; pass on what a loader gave, unchanged"
    assert str(error.value) == expected


def test_bounds_are_those_of_the_library() -> None:
    ds = data()
    values = json.loads(mf.Loader(ds, batch_size=16).certificate().to_json())
    wrong = mf.Certificate.from_json(values | {"runs": [[0, 1, 0, 201]]})
    message = "this is not a certificate: run [0 1 0 201] is not within epochs of "
    message += "200 records; pass on what a loader gave, unchanged"
    uses: dict[str, Callable[[], object]] = {
        "Certificate.check": wrong.check,
        "mf.Certificate": lambda: wrong + wrong,
    }
    for op, use in uses.items():
        with pytest.raises(mf.InvalidArgumentError) as error:
            use()
        assert str(error.value) == f"{op}: {message}"


def test_only_certificates_add_up() -> None:
    """A sum begins with 0, which is no certificate either; no other number takes part."""
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
    zero = loader_zero(mf.Loader(data(), batch_size=16).certificate())
    many = 5 * 10**12
    long = dataclasses.replace(zero, runs=((0, many, 0, RECORDS),), rows=many * RECORDS)
    main = threading.get_ident()
    timer = threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the timer is for the check alone
        timer.start()
        long.check()
    timer.join()
    for thread in threading.enumerate():  # the release is on a thread of its own
        if thread.name == "meshfeed.release":
            thread.join()
