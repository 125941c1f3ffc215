"""Devices that are not JAX's: what they are, and batches on them."""

from __future__ import annotations

import gc
import json
import os
import pickle
import random
import shutil
import subprocess
import sys
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
from meshfeed import _library
from tests.python.data import DTYPES, digits, dtype, filled

ROOT = Path(__file__).resolve().parents[2]
VIRTUAL = "virtual:8"


def numbers(n: int = 16) -> mf.Dataset:
    return mf.from_arrays({"x": np.arange(n, dtype=np.int32)})


def lay(axes: dict[str, int] | None = None, **options: Any) -> mf.Layout:
    source = options.pop("source", None) or numbers()
    mesh = axes or {"data": 8}
    return mf.layout(mesh, options.pop("specs", mf.P("data")), source, batch_size=8, **options)


def player(**options: Any) -> mf.Loader:
    return mf.Loader(numbers(), layout=lay(), process=0, **options)


def live(devices: mf.Devices) -> int:
    gc.collect()
    return devices.stats()["live_buffers"]


def wrong(value: Any) -> Any:
    """Hides a value's type from the type checker."""
    return value


# ---- devices ----


def test_devices() -> None:
    with mf.devices("virtual:3") as devices:
        assert (devices.name, devices.platform, devices.shared) == ("virtual", "go", True)
        assert len(devices) == 3
        assert repr(devices) == "Devices('virtual:3', 3 x virtual, shared memory)"
        assert [bool(devices.describe(i)) for i in range(3)] == [True] * 3
        assert set(DTYPES) <= set(devices.dtypes)
        assert devices.stats() == {"live_buffers": 0, "live_bytes": 0}
    with mf.devices("go") as one:
        assert (one.name, len(one)) == ("go", 1)


def test_close() -> None:
    devices = mf.devices("virtual:2")
    devices.close()
    devices.close()
    message = "Devices.stats: the backend of these devices is closed; make another"
    with pytest.raises(mf.InvalidStateError) as e:
        devices.stats()
    assert str(e.value) == message
    assert len(devices) == 2


MANY = "the number of devices must be 1 to 1048576, but is"
ERRORS: list[tuple[type[mf.Error], str, Callable[[], object]]] = [
    (
        mf.InvalidArgumentError,
        'mf.devices: "tpu" does not name devices; use "go", "virtual:N" or '
        '"xla:/absolute/path/plugin.so?devices=N"',
        lambda: mf.devices("tpu"),
    ),
    (
        mf.InvalidArgumentError,
        f'mf.devices: "virtual:none": {MANY} "none"',
        lambda: mf.devices("virtual:none"),
    ),
    (
        mf.InvalidArgumentError,
        'mf.devices: "virtual": the number of devices is missing; say how many, such as '
        '"virtual:8"',
        lambda: mf.devices("virtual"),
    ),
    (
        mf.InvalidArgumentError,
        "mf.devices: spec=8: expected a name",
        lambda: mf.devices(wrong(8)),
    ),
    (
        mf.InvalidArgumentError,
        "mf.devices: timeout=0: expected a positive number of seconds",
        lambda: mf.devices("go", timeout=0),
    ),
    (
        mf.InvalidArgumentError,
        "mf.devices: preflight=1: expected True or False",
        lambda: mf.devices("go", preflight=wrong(1)),
    ),
    (
        mf.InvalidArgumentError,
        "mf.devices: prober='': expected a name",
        lambda: mf.devices("go", prober=""),
    ),
    (
        mf.InvalidArgumentError,
        "Loader.place: devices='virtual:8': expected what mf.devices() gave",
        lambda: player().place(wrong(VIRTUAL)),
    ),
]


@pytest.mark.parametrize(("kind", "message", "call"), ERRORS, ids=[m[:40] for _, m, _ in ERRORS])
def test_errors(kind: type[mf.Error], message: str, call: Callable[[], object]) -> None:
    with pytest.raises(kind) as e:
        call()
    assert str(e.value) == message


def test_no_such_device() -> None:
    with mf.devices("virtual:2") as devices, pytest.raises(mf.OutOfRangeError) as e:
        devices.describe(2)
    assert str(e.value) == "Devices.describe: there is no device 2, only 0 to 1"


def test_not_pickled() -> None:
    with mf.devices("go") as devices, pytest.raises(mf.InvalidStateError) as e:
        pickle.dumps(devices)
    assert str(e.value).startswith("mf.Devices: devices cannot be pickled")


def test_built_without_xla() -> None:
    if "xla" in mf_flavour():
        pytest.skip("this library is built for XLA")
    with pytest.raises(mf.UnsupportedError, match="built without XLA") as e:
        mf.devices("xla:/no/such/plugin.so")
    assert str(e.value).startswith('mf.devices: "xla:/no/such/plugin.so": ')


def mf_flavour() -> str:
    """Gives "xla" where the library has plugins."""
    try:
        mf.devices("xla:/no/such/plugin.so")
    except mf.NotFoundError:
        return "xla"
    except mf.UnsupportedError:
        pass
    return ""


# ---- what is placed ----


def random_layout(rng: random.Random) -> tuple[mf.Layout, mf.Dataset, dict[str, Any], int]:
    """Gives a layout of up to 8 devices in any order, its dataset, and the global arrays."""
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
    """Every device has the index that the layout's report says, and those bytes of the batch."""
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


def same(got: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> None:
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    assert got.tobytes() == wanted.tobytes()


def test_facts() -> None:
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
        with pytest.raises(ValueError, match="array 'image' lies on devices in shards"):
            np.array(image, copy=False)
        del image


# ---- the loop ----


def test_same_as_jax() -> None:
    """The same loader places what JAX would get, in the same tree, in the mesh's device order."""
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
    """Loops of both kinds go on where the other stopped, also with batches made ahead for JAX."""
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
    assert loader.certificate().runs == ((0, 1, 0, 96),)


def test_epochs_and_states() -> None:
    loader = player(epochs=2)
    with mf.devices(VIRTUAL) as devices:
        loop = loader.place(devices)
        assert len(loop) == 4
        first = [np.asarray(batch["x"]).tolist() for _, batch in zip(range(3), loop, strict=False)]
        assert len(first) == 3
        assert (loader.epoch, loader.step) == (1, 1)
        other = mf.Loader(numbers(), layout=lay(), process=0, epochs=2, state=loader.state())
        rest = [np.asarray(batch["x"]).tolist() for batch in other.place(devices)]
        assert rest == first[1:2]
        loop.close()
        assert list(loop) == []


def test_remesh() -> None:
    """A loop goes on with the new mesh after a remesh."""
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
        "Loader.place: device 8 stands at position 8 of Mesh('data': 16), but virtual has "
        "devices 0 to 7; open at least 16 devices, or use a smaller mesh",
        lambda d: mf.Loader(
            numbers(),
            layout=mf.layout({"data": 16}, mf.P("data"), numbers(), batch_size=16),
            process=0,
        ).place(d),
    ),
    (
        mf.UnsupportedError,
        "Loader.place: Mesh('data': 8) has devices of 2 processes, but GoMLX places on those of "
        "one; give every process a mesh of its own devices",
        lambda d: mf.Loader(numbers(), layout=lay(processes=2), process=1).place(d),
    ),
    (
        mf.InvalidArgumentError,
        "Loader.place: this loader gives whole batches, and has no mesh; give mesh and specs, or "
        "play a layout: mf.Loader(ds, layout=lay, process=0)",
        lambda d: mf.Loader(numbers(), batch_size=8).place(d),
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
    """The batches that are out stay good, and the loader loses none."""
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


# ---- memory ----


def test_views() -> None:
    """A view is the memory itself, read-only; it keeps it whatever else goes."""
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
        assert len(addresses) == 2  # a loop holds a batch while the next is placed
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
        with pytest.raises(ValueError, match="cannot be had without a copy: its elements are int"):
            np.array(shard, dtype=np.float64, copy=False)
        del shard


def test_dlpack() -> None:
    """NumPy takes the versioned capsule, JAX the old one; both keep the memory."""
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
        brain = jax.dlpack.from_dlpack(batch["y"].shards[5])
        del batch, shard
        list(loop)
        for array, name in [(theirs, "float32"), (as_jax, "float32"), (brain, "bfloat16")]:
            same(np.asarray(array), filled((64, 16), name)[5:6])
        del loop, theirs, as_jax, brain, array
        jax.block_until_ready(jax.device_put(np.zeros(1)))
        assert live(devices) == 0


def test_capsules() -> None:
    """A capsule that nobody takes frees what it holds, and what cannot be had says why."""
    with mf.devices(VIRTUAL) as devices:
        loop = player().place(devices)
        shard = next(loop)["x"].shards[0]
        assert "dltensor_versioned" in repr(shard.__dlpack__(max_version=(1, 1)))
        assert '"dltensor"' in repr(shard.__dlpack__())
        assert shard.__dlpack_device__() == (1, 0)
        with pytest.raises(BufferError) as e:
            shard.__dlpack__(dl_device=(2, 0))
        assert str(e.value) == "the shard lies on DLPack device (1, 0), not (2, 0)"
        copied = np.from_dlpack(shard, copy=True)
        assert copied.ctypes.data != np.asarray(shard).ctypes.data
        held = shard.__dlpack__()
        del e, shard, loop  # the error's traceback holds the shard, too
        assert live(devices) > 0
        del held
        assert live(devices) == 0


def test_thousands_of_batches() -> None:
    """Memory goes round: neither buffers nor the process grow."""
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


# ---- processes ----


def run(code: str, **env: str) -> str:
    """Runs a program in a process of its own, and gives what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


FORK = """
import os, numpy as np, meshfeed as mf
ds = mf.from_arrays({"x": np.arange(16)})
lay = mf.layout({"data": 2}, mf.P("data"), ds, batch_size=8)
devices = mf.devices("virtual:2")
loader = mf.Loader(ds, layout=lay, process=0)
loop = loader.place(devices)
batch = next(loop)
view = np.asarray(batch["x"].shards[1])
child = os.fork()
if child == 0:
    for call in [lambda: mf.devices("go"), devices.stats, lambda: next(loop),
                 lambda: loader.place(devices), lambda: np.asarray(batch["x"].shards[0])]:
        try:
            call()
        except mf.ForkedError as e:
            print(str(e).split(":")[0])
    assert view.tolist() == [4, 5, 6, 7]
    del view, batch, loop, loader
    devices.close()
    os._exit(0) if not print(flush=True) else None
assert os.waitpid(child, 0)[1] == 0
print(np.asarray(next(loop)["x"])[4])
"""


def test_fork() -> None:
    assert run(FORK).split() == [
        *("mf.devices", "Devices.stats", "mf.Loader", "Loader.place", "Shard.__dlpack__"),
        "12",
    ]


EXIT = """
import numpy as np, meshfeed as mf, threading, sys
ds = mf.from_arrays({"x": np.arange(16)})
lay = mf.layout({"data": 2}, mf.P("data"), ds, batch_size=8)
devices = mf.devices("virtual:2")
loop = mf.Loader(ds, layout=lay, process=0, epochs=-1).place(devices)
kept = [next(loop) for _ in range(3)]
views = [np.asarray(b["x"].shards[1]) for b in kept]
capsule = kept[0]["x"].shards[0].__dlpack__()
threading.Thread(target=lambda: [None for _ in loop], daemon=True).start()
print("leaving")
"""


def test_exit_with_everything_open() -> None:
    assert run(EXIT) == "leaving\n"


BESIDE = """
import sys
def ours():
    global devices, loader, mf, np
    import numpy as np, meshfeed as mf
    devices = mf.devices(SPEC)
    ds = mf.from_arrays({"x": np.arange(64, dtype=np.float32)})
    lay = mf.layout({"data": 4}, mf.P("data"), ds, batch_size=8)
    loader = mf.Loader(ds, layout=lay, process=0)
def theirs():
    global jax
    import jax
    assert float(jax.jit(lambda x: x @ x)(jax.numpy.ones(4))) == 4
for first in ORDER:
    {"ours": ours, "theirs": theirs}[first]()
total = 0
for batch in loader.place(devices):
    shards = [np.asarray(s) for s in batch["x"].shards]
    parts = [jax.device_put(s, d) for s, d in zip(shards, jax.devices())]
    total += sum(float(jax.jit(lambda x: x.sum())(part)) for part in parts)
del batch, shards, parts
devices.close()
print(len(devices), devices.name, total)
"""


@pytest.mark.parametrize("order", [("ours", "theirs"), ("theirs", "ours")])
def test_beside_jax(order: tuple[str, str]) -> None:
    code = f"SPEC, ORDER = 'virtual:4', {order}\n{BESIDE}"
    assert run(code, JAX_NUM_CPU_DEVICES="4") == "4 virtual 2016.0\n"


def test_chosen_library(tmp_path: Path) -> None:
    """MESHFEED_LIBRARY names the library to use, wherever it is."""
    chosen = tmp_path / "a full library" / "libmeshfeed.so"
    chosen.parent.mkdir()
    shutil.copy(_library.path(), chosen)
    code = """
import meshfeed as mf
with mf.devices("virtual:2"): pass
maps = open("/proc/self/maps").read()
print(sorted({line.split(maxsplit=5)[5] for line in maps.splitlines() if "libmeshfeed" in line}))
"""
    assert run(code, MESHFEED_LIBRARY=str(chosen)) == f"{[str(chosen)]}\n"


# ---- the library that is built for XLA ----


@pytest.fixture(scope="session")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gives the folder of a library and a command that were built for XLA."""
    folder = tmp_path_factory.mktemp("full")
    subprocess.run(
        [ROOT / "capi" / "build.sh", folder / "libmeshfeed.so", "-tags=xla"],
        check=True,
        timeout=900,
    )
    subprocess.run(
        ["go", "build", "-tags=xla", "-o", folder / "meshfeed", "./cmd/meshfeed"],
        cwd=ROOT,
        env={**os.environ, "CGO_ENABLED": "1"},
        check=True,
        timeout=900,
    )
    return folder


def plugin() -> str:
    """Gives the path of XLA's plugin for CPUs."""
    path = ROOT / ".build/plugins/cpu/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"
    if not path.exists():
        pytest.skip(f"NOT TESTED: {path} is not there; fetch it with: make plugin-cpu")
    return str(path)


@pytest.mark.deep
@pytest.mark.parametrize("order", [("ours", "theirs"), ("theirs", "ours")])
@pytest.mark.parametrize("shared", ["true", "false"])
def test_plugin_beside_jax(full: Path, order: tuple[str, str], shared: str) -> None:
    spec = f"xla:{plugin()}?devices=4&shared={shared}"
    code = f"SPEC, ORDER = {spec!r}, {order}\n{BESIDE}"
    env = {"MESHFEED_LIBRARY": str(full / "libmeshfeed.so"), "JAX_NUM_CPU_DEVICES": "4"}
    assert run(code, **env) == "4 xla-cpu 2016.0\n"


UNSHARED = """
import json, numpy as np, meshfeed as mf
devices = mf.devices(SPEC)
ds = mf.from_arrays({"x": np.arange(64, dtype=np.float32)})
lay = mf.layout({"data": 4}, mf.P("data"), ds, batch_size=8)
shard = next(mf.Loader(ds, layout=lay, process=0).place(devices))["x"].shards[3]
texts = []
for call in [lambda: shard.__dlpack__(), lambda: np.array(shard, copy=False)]:
    try:
        call()
    except (mf.UnsupportedError, ValueError) as e:
        texts.append(str(e))
print(json.dumps([repr(devices), np.asarray(shard).tolist(), *texts]))
"""


@pytest.mark.deep
def test_memory_of_their_own(full: Path) -> None:
    spec = f"xla:{plugin()}?devices=4&shared=false"
    code = f"SPEC = {spec!r}\n{UNSHARED}"
    assert json.loads(run(code, MESHFEED_LIBRARY=str(full / "libmeshfeed.so"))) == [
        f"Devices({spec!r}, 4 x xla-cpu, memory of their own)",
        [6.0, 7.0],
        "Shard.__dlpack__: the memory of xla-cpu is not shared; read the shard, which copies it",
        "the shard on device 3 cannot be had without a copy: its memory is not the host's",
    ]


PROBED = """
import json, meshfeed as mf
texts = []
for more in [{"prober": "/no/such"}, {"prober": SLOW, "timeout": 0.3}, {"prober": "/bin/true"}]:
    try:
        mf.devices(SPEC, **more)
    except mf.Error as e:
        texts.append([type(e).__name__, str(e)])
with mf.devices(SPEC, preflight=False) as devices:
    texts.append(len(devices))
print(json.dumps(texts))
"""


@pytest.mark.deep
def test_probers(full: Path, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    spec = f"xla:{plugin()}?devices=2"
    code = f"SPEC, SLOW = {spec!r}, {str(slow)!r}\n{PROBED}"
    begin = f'mf.devices: "{spec}" was not opened: '
    assert json.loads(run(code, MESHFEED_LIBRARY=str(full / "libmeshfeed.so"))) == [
        ["NotFoundError", begin + 'the prober "/no/such" is no program that can be started'],
        [
            "IncompatibleError",
            begin
            + "its preflight did not end within 300ms; allow more time (timeout=) if the device "
            "is slow to start or held by another program",
        ],
        [
            "IncompatibleError",
            begin + 'the prober "/bin/true" ended without an answer (exit status 0); its main must '
            "call gomlxfeed.RunProbe first",
        ],
        2,
    ]
