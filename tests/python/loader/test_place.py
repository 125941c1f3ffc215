"""Batches on devices that are not JAX's: the loop, the shards of each device, their memory."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from tests.python.loader.placing import VIRTUAL, lay, live, player
from tests.python.samples import DTYPES, digits, dtype, filled, numbers, same


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
        "Loader.place: Mesh('data': 8) has devices of 2 processes, but GoMLX places on devices "
        "of one process; give every process a mesh of its own devices",
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


# ---- batches ----


def random_layout(rng: random.Random) -> tuple[mf.Layout, mf.Dataset, dict[str, Any], int]:
    """Returns a layout of up to 8 devices in any order, its dataset, and the global arrays."""
    sizes = rng.choice([(1,), (2,), (8,), (2, 2), (4, 2), (2, 2, 2), (1, 3), (3, 2)])
    axes = dict(zip("abc", sizes, strict=False))
    n, size = int(np.prod(sizes)), 12 * int(np.prod(sizes))
    records, arrays, specs = 2 * size + rng.randint(0, 5), {}, {}
    for i in range(rng.randint(1, 3)):
        name, free = f"f{i}", rng.sample(list(axes), len(axes))
        entries: list[Any] = []
        shape = (records, *[n * rng.randint(1, 2)] * rng.randint(0, 2))
        for _ in shape:
            many = rng.randint(0, len(free))
            entries.append(tuple(free.pop() for _ in range(many)) or None)
        arrays[name] = filled(shape, rng.choice(DTYPES), start=100 * i)
        specs[name] = mf.P(*entries)
    ids = rng.sample(range(8), n)
    ds = mf.from_arrays(arrays)
    layout = mf.layout(
        axes,
        specs,
        ds,
        batch_size=size,
        remainder="pad",
        extras=["key"],
        loading=rng.choice(["process", "global", "device"]),
        devices=[(0, i) for i in ids],
    )
    return layout, ds, arrays, size


def test_random_layouts(seed: int) -> None:
    rng = random.Random(seed)
    with mf.devices(VIRTUAL) as devices:
        for _ in range(60):
            layout, ds, arrays, size = random_layout(rng)
            check_layout(devices, layout, ds, arrays, size)
        assert live(devices) == 0


def check_layout(
    devices: mf.Devices, layout: mf.Layout, ds: mf.Dataset, arrays: Any, size: int
) -> None:
    """Every device has the index of the layout's report, and the bytes of the batch there."""
    report = layout.report(tables=True)["arrays"]
    whole = mf.Loader(ds, batch_size=size, remainder="pad", extras=["key"])
    loader = mf.Loader(ds, layout=layout, process=0)
    for batch, wanted in zip(loader.place(devices), whole, strict=True):
        assert set(batch) == set(wanted) == {*arrays, "valid", "key"}
        for name, array in batch.items():
            assert array.dtype == wanted[name].dtype
            assert array.shape == wanted[name].shape
            same(np.asarray(array), wanted[name])
            for shard, said in zip(array.shards, report[name]["devices"], strict=True):
                assert (shard.position, shard.device) == (said["mesh_index"], said["id"])
                assert shard.index == tuple(slice(a, b) for a, b in said["index"])
                same(np.asarray(shard), wanted[name][shard.index])
                same(np.array(shard), wanted[name][shard.index])


def test_attributes() -> None:
    source = mf.from_arrays({"image": filled((16, 4, 6), "bfloat16")})
    layout = lay({"data": 2, "model": 2}, source=source, specs=mf.P("data", None, "model"))
    with mf.devices("virtual:4") as devices:
        loader = mf.Loader(source, layout=layout, process=0)
        image = next(loader.place(devices))["image"]
        assert repr(image) == (
            "PlacedArray('image', bfloat16[8, 4, 6], P('data', None, 'model'), 4 shards)"
        )
        assert (image.name, image.shape, image.dtype) == ("image", (8, 4, 6), dtype("bfloat16"))
        assert repr(image.shards[1]) == "Shard(device=1, index=[0:4, 0:4, 3:6])"
        assert (image.shards[3].shape, image.shards[3].dtype) == ((4, 4, 3), dtype("bfloat16"))
        rows, columns = slice(4, 8), slice(0, 3)
        assert image.devices_indices_map[2] == (rows, slice(0, 4), columns)
        assert np.asarray(image).tolist() == filled((16, 4, 6), "bfloat16")[:8].tolist()
        with pytest.raises(ValueError, match="array 'image' is in shards on devices"):
            np.array(image, copy=False)
        del image


# ---- memory ----


def test_views() -> None:
    """A view is the memory itself, read-only, and keeps it alive."""
    loader = mf.Loader(numbers(400), layout=lay(source=numbers(400)), process=0)
    with mf.devices(VIRTUAL) as devices:
        loop = loader.place(devices)
        batch = next(loop)
        shard = batch["x"].shards[3]
        view = np.asarray(shard)
        assert not view.flags.writeable
        assert np.asarray(shard).ctypes.data == view.ctypes.data
        copy = np.array(shard)
        assert copy.flags.writeable
        assert copy.ctypes.data != view.ctypes.data
        half = view[:1]
        address = view.ctypes.data
        del batch, shard, view
        addresses = {np.asarray(b["x"].shards[3]).ctypes.data for b in loop}
        assert half.tolist() == [3]
        assert address not in addresses
        assert len(addresses) == 2  # a loop holds a batch while the next one is copied
        del half
        again = mf.Loader(numbers(400), layout=lay(source=numbers(400)), process=0)
        del loop
        assert live(devices) == 0
        del again


def test_converted() -> None:
    with mf.devices(VIRTUAL) as devices:
        shard = next(player().place(devices))["x"].shards[2]
        assert np.asarray(shard, dtype=np.float64).tolist() == [2.0]
        assert np.array(shard, copy=False).base is not None
        with pytest.raises(
            ValueError, match="cannot be exported without a copy: its elements are int"
        ):
            np.array(shard, dtype=np.float64, copy=False)
        del shard


def test_dlpack() -> None:
    """NumPy takes the versioned capsule, JAX the old one. Both keep the memory alive."""
    source = mf.from_arrays({"x": filled((64, 16), "float32"), "y": filled((64, 16), "bfloat16")})
    layout = lay(source=source)
    with mf.devices(VIRTUAL) as devices:
        loader = mf.Loader(source, layout=layout, process=0)
        loop = loader.place(devices)
        batch = next(loop)
        shard = batch["x"].shards[5]
        theirs = np.from_dlpack(shard)
        assert not theirs.flags.writeable
        assert theirs.ctypes.data == np.asarray(shard).ctypes.data
        as_jax = jax.dlpack.from_dlpack(shard)
        bfloat16 = jax.dlpack.from_dlpack(batch["y"].shards[5])
        del batch, shard
        list(loop)
        for array, name in [(theirs, "float32"), (as_jax, "float32"), (bfloat16, "bfloat16")]:
            same(np.asarray(array), filled((64, 16), name)[5:6])
        del loop, theirs, as_jax, bfloat16, array
        jax.block_until_ready(jax.device_put(np.zeros(1)))
        assert live(devices) == 0


def test_capsules() -> None:
    """A capsule without a consumer frees its memory. Requests that cannot work are errors."""
    with mf.devices(VIRTUAL) as devices:
        loop = player().place(devices)
        shard = next(loop)["x"].shards[0]
        assert "dltensor_versioned" in repr(shard.__dlpack__(max_version=(1, 1)))
        assert '"dltensor"' in repr(shard.__dlpack__())
        assert shard.__dlpack_device__() == (1, 0)
        with pytest.raises(BufferError) as e:
            shard.__dlpack__(dl_device=(2, 0))
        assert str(e.value) == "the shard is on DLPack device (1, 0), not (2, 0)"
        copied = np.from_dlpack(shard, copy=True)
        assert copied.ctypes.data != np.asarray(shard).ctypes.data
        held = shard.__dlpack__()
        del e, shard, loop  # the traceback of the error also holds the shard
        assert live(devices) > 0
        del held
        assert live(devices) == 0


def test_refused_capsules() -> None:
    """If a consumer refuses a tensor, the program gets the consumer's exception."""
    source = mf.from_arrays({"y": filled((64, 16), "bfloat16")})
    with mf.devices(VIRTUAL) as devices:
        shard = next(mf.Loader(source, layout=lay(source=source), process=0).place(devices))["y"]
        with pytest.raises((BufferError, RuntimeError), match="Unsupported dtype"):
            np.from_dlpack(shard.shards[5])
        with pytest.raises(ZeroDivisionError):
            print(shard.shards[5].__dlpack__(), 1 / 0)
        del shard
        assert live(devices) == 0


def test_thousands_of_batches() -> None:
    """Memory is reused: neither the buffers nor the process grow."""
    source = mf.from_arrays({"x": filled((64, 256), "float32")})
    loader = mf.Loader(source, layout=lay(source=source), process=0, epochs=-1)

    def resident() -> int:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE")

    with mf.devices(VIRTUAL) as devices:
        loop = loader.place(devices)
        for step, batch in enumerate(loop):
            np.asarray(batch["x"].shards[step % 8])
            if step == 500:
                before, buffers = resident(), devices.stats()["live_buffers"]
            if step == 3000:
                break
        assert devices.stats()["live_buffers"] == buffers == 16
        assert resident() - before < 8 << 20
        del loop, batch
