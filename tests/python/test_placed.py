"""Batches on devices: the shards of each device, and the lifetime of their memory."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import meshfeed as mf
from tests.python.data import DTYPES, dtype, filled, numbers, same
from tests.python.placing import VIRTUAL, lay, live, player


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
    """Every device has the index of the layout's report, and those bytes of the batch."""
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
        with pytest.raises(RuntimeError, match="Unsupported dtype in DLTensor"):
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
