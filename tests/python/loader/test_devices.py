"""Devices that are not JAX's: their attributes, and processes that open them."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import meshfeed as mf
from meshfeed._native import library
from tests.python.loader.placing import BESIDE, VIRTUAL, player
from tests.python.programs import run
from tests.python.samples import DTYPES, wrong


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
        'mf.devices: "virtual": the number of devices is missing; add it, such as "virtual:8"',
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


def test_a_device_that_does_not_exist() -> None:
    with mf.devices("virtual:2") as devices, pytest.raises(mf.OutOfRangeError) as e:
        devices.describe(2)
    assert str(e.value) == "Devices.describe: there is no device 2, only 0 to 1"


def test_not_pickled() -> None:
    with mf.devices("go") as devices, pytest.raises(mf.InvalidStateError) as e:
        pickle.dumps(devices)
    assert str(e.value).startswith("mf.Devices: devices cannot be pickled")


def test_built_without_xla() -> None:
    if has_xla():
        pytest.skip("this library is built for XLA")
    with pytest.raises(mf.UnsupportedError, match="built without XLA") as e:
        mf.devices("xla:/no/such/plugin.so")
    assert str(e.value).startswith('mf.devices: "xla:/no/such/plugin.so": ')


def has_xla() -> bool:
    """Returns whether the library opens plugins."""
    with pytest.raises((mf.NotFoundError, mf.UnsupportedError)) as e:
        mf.devices("xla:/no/such/plugin.so")
    return e.type is mf.NotFoundError


# ---- processes ----


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


@pytest.mark.parametrize("order", [("ours", "theirs"), ("theirs", "ours")])
def test_beside_jax(order: tuple[str, str]) -> None:
    code = f"SPEC, ORDER = 'virtual:4', {order}\n{BESIDE}"
    assert run(code, JAX_NUM_CPU_DEVICES="4") == "4 virtual 2016.0\n"


def test_chosen_library(tmp_path: Path) -> None:
    """MESHFEED_LIBRARY chooses the library."""
    chosen = tmp_path / "a full library" / "libmeshfeed.so"
    chosen.parent.mkdir()
    shutil.copy(library.path(), chosen)
    code = """
import meshfeed as mf
with mf.devices("virtual:2"): pass
maps = open("/proc/self/maps").read()
print(sorted({line.split(maxsplit=5)[5] for line in maps.splitlines() if "libmeshfeed" in line}))
"""
    assert run(code, MESHFEED_LIBRARY=str(chosen)) == f"{[str(chosen)]}\n"
