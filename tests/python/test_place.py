"""The loop over a loader's batches on devices."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from tests.python.data import digits, numbers, same
from tests.python.placing import VIRTUAL, lay, live, player


def test_same_as_jax() -> None:
    """A loader delivers the same batches to devices as to JAX, in the device order of the mesh."""
    arrays = digits()
    mesh = jax.sharding.Mesh(
        np.array(jax.devices())[[3, 1, 0, 2, 7, 6, 5, 4]].reshape(4, 2), tuple("xy")
    )
    specs = {"in": {"image": P("x", None, "y")}, "label": NamedSharding(mesh, P(("y", "x")))}

    def loader() -> mf.Loader:
        return mf.Loader(
            mf.from_arrays(arrays), mesh, specs, batch_size=16, shuffle=True, seed=4, extras=["key"]
        )

    with mf.devices(VIRTUAL) as devices:
        placed = loader()
        for step, (got, wanted) in enumerate(zip(placed.place(devices), loader(), strict=True)):
            assert set(got) == {"in", "label", "key"}
            for array, theirs in [
                (got["in"]["image"], wanted["in"]["image"]),
                (got["label"], wanted["label"]),
                (got["key"], wanted["key"]),
            ]:
                by_device = {s.device.id: s for s in theirs.addressable_shards}
                assert [s.device for s in array.shards] == [3, 1, 0, 2, 7, 6, 5, 4]
                for shard in array.shards:
                    same(np.asarray(shard), np.asarray(by_device[shard.device].data))
            assert placed.step == (step + 1) % 3
        assert placed.state()["epoch"] == 1


@pytest.mark.parametrize("ahead", [0, 2])
def test_loops_alternate(ahead: int) -> None:
    """A loop continues where one of the other kind stopped, also after batches made ahead."""
    mesh = jax.make_mesh((8,), ("data",))
    loader = mf.Loader(numbers(96), mesh, P("data"), batch_size=8, device_prefetch=ahead)
    seen: list[int] = []
    with mf.devices(VIRTUAL) as devices:
        for _ in range(2):
            for loop, kind in ((iter(loader), jax.Array), (loader.place(devices), mf.PlacedArray)):
                for _, batch in zip(range(3), loop, strict=False):
                    assert isinstance(batch["x"], kind)
                    seen += np.asarray(batch["x"]).tolist()
        del batch, loop
    assert seen == list(range(96))
    assert loader.certificate().delivered == ((0, 1, 0, 96),)


def test_epochs_and_states() -> None:
    loader = player(epochs=2)
    with mf.devices(VIRTUAL) as devices:
        loop = loader.place(devices)
        assert len(loop) == 4
        first = [np.asarray(batch["x"]).tolist() for _, batch in zip(range(3), loop, strict=False)]
        assert len(first) == 3
        assert (loader.epoch, loader.step) == (1, 1)
        other = mf.Loader(numbers(16), layout=lay(), process=0, epochs=2, state=loader.state())
        rest = [np.asarray(batch["x"]).tolist() for batch in other.place(devices)]
        assert rest == first[1:2]
        loop.close()
        assert list(loop) == []


def test_remesh() -> None:
    """A loop continues on the new mesh after a remesh."""
    devices8 = jax.devices()
    loader = mf.Loader(numbers(24), jax.make_mesh((8,), ("d",)), P("d"), batch_size=8)
    with mf.devices(VIRTUAL) as devices:
        loop = loader.place(devices)
        assert len(next(loop)["x"].shards) == 8
        loader.remesh(jax.sharding.Mesh(np.array(devices8[4:6]), "d"))
        array = next(loop)["x"]
        assert [shard.device for shard in array.shards] == [4, 5]
        assert np.asarray(array).tolist() == list(range(8, 16))
        del array


def test_threads_share_a_loop() -> None:
    loader = mf.Loader(numbers(800), layout=lay(source=numbers(800)), process=0)
    seen: list[int] = []
    with mf.devices(VIRTUAL) as devices:
        loop = loader.place(devices)

        def work(loop: Iterator[Any]) -> None:
            for batch in loop:
                seen.extend(np.asarray(batch["x"]).tolist())

        workers = [threading.Thread(target=work, args=(loop,)) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        del loop, workers, worker
        assert live(devices) == 0
    assert sorted(seen) == list(range(800))


LOOP_ERRORS: list[tuple[type[mf.Error], str, Callable[[mf.Devices], object]]] = [
    (
        mf.OutOfRangeError,
        "Loader.place: position 8 of Mesh('data': 16) is device 8, but virtual has "
        "devices 0 to 7; open at least 16 devices, or use a smaller mesh",
        lambda d: mf.Loader(
            numbers(16),
            layout=mf.layout({"data": 16}, mf.P("data"), numbers(16), batch_size=16),
            process=0,
        ).place(d),
    ),
    (
        mf.UnsupportedError,
        "Loader.place: Mesh('data': 8) has devices of 2 processes, but GoMLX places on those of "
        "one; give every process a mesh of its own devices",
        lambda d: mf.Loader(numbers(16), layout=lay(processes=2), process=1).place(d),
    ),
    (
        mf.InvalidArgumentError,
        "Loader.place: this loader gives whole batches, and has no mesh; give mesh and specs, or "
        "play a layout: mf.Loader(ds, layout=lay, process=0)",
        lambda d: mf.Loader(numbers(16), batch_size=8).place(d),
    ),
]


@pytest.mark.parametrize(
    ("kind", "message", "call"), LOOP_ERRORS, ids=[m[14:40] for _, m, _ in LOOP_ERRORS]
)
def test_loop_errors(
    kind: type[mf.Error], message: str, call: Callable[[mf.Devices], object]
) -> None:
    with mf.devices(VIRTUAL) as devices, pytest.raises(kind) as e:
        call(devices)
    assert str(e.value) == message


def test_devices_closed_in_the_loop() -> None:
    """Delivered batches stay valid, and the loader loses none."""
    loader = player()
    devices = mf.devices(VIRTUAL)
    loop = loader.place(devices)
    batch = next(loop)
    view = np.asarray(batch["x"].shards[7])
    devices.close()
    with pytest.raises(mf.InvalidStateError) as e:
        next(loop)
    assert str(e.value) == ("Loader.place: the backend of these devices is closed; make another")
    assert view.tolist() == np.asarray(batch["x"].shards[7]).tolist() == [7]
    with pytest.raises(mf.InvalidStateError) as e:
        np.array(batch["x"].shards[7])
    assert str(e.value) == "Shard.__array__: cannot read a tensor: the devices are closed"
    with mf.devices(VIRTUAL) as others:
        assert np.asarray(next(loader.place(others))["x"]).tolist() == list(range(8, 16))
