"""Eight CPU devices for every test, and a check that no test leaks a batch or a handle."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["JAX_NUM_CPU_DEVICES"] = "8"
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")

import jax
import numpy as np
import pytest

from meshfeed._measure import timing
from meshfeed._native import library
from tests.python import ROOT
from tests.python.simulated import Machine

# A shell starts background jobs with SIGINT ignored. Tests of Ctrl-C then wait forever.
signal.signal(signal.SIGINT, signal.default_int_handler)

DEEP = os.environ.get("MESHFEED_DEEP") == "1"


@pytest.hookimpl(tryfirst=True)  # before -m selects by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skip = pytest.mark.skip(reason="set MESHFEED_DEEP=1 (make test-deep)")
    for item in items:
        if "deep" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.longer)
        if not DEEP and item.get_closest_marker("deep"):
            item.add_marker(skip)


def pytest_collection_finish() -> None:
    """Takes the objects of all imported modules from the garbage collector.

    Many tests end with a collection, which would look at each of these objects.
    """
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Returns them, so that the interpreter releases them at its end."""
    gc.unfreeze()


@pytest.fixture
def deep() -> bool:
    """Returns whether this is a deep run. A test that asks gets the marker longer."""
    return DEEP


def alive() -> tuple[int, int]:
    """Counts the library's handles and delivered batches."""
    lib = library.library()
    return lib.mf_live_handles(), lib.mf_live_batches()


def flushed(before: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """Counts after JAX has released the memory that it releases late.

    Most garbage is young, so the collections begin with the youngest generation. A thread of any
    device may release the last batch, so all devices have to answer.
    """
    for generation in range(3):
        gc.collect(generation)
        jax.block_until_ready([jax.device_put(np.zeros(1), d) for d in jax.local_devices()])
        gc.collect(0)
        if alive() <= before:
            break
    return alive()


def released(before: tuple[int, int]) -> tuple[int, int]:
    """Counts after JAX has released all memory but `before`, or after 20 seconds.

    JAX returns a result before its threads have released the arguments. On a busy machine that can
    take seconds.
    """
    end = time.monotonic() + 20
    while (after := flushed(before)) > before and time.monotonic() < end:
        os.sched_yield()
    return after


@pytest.fixture(autouse=True)
def nothing_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test that leaves a handle or a batch alive in the library."""
    if request.node.get_closest_marker("plain"):  # needs no library
        yield
        return
    before = alive()
    yield
    if placing := sys.modules.get("meshfeed._jax.put"):
        placing.plans.clear()  # each may keep a splitter
    if alive() > before:
        after = released(before)
        assert after <= before, f"(handles, batches) were {before} before, and are {after}"


@pytest.fixture(scope="session")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Builds a library that can inject faults (capi/faults.go), and returns its path."""
    out = tmp_path_factory.mktemp("faulty") / "libmeshfeed.so"
    recipe: list[str | Path] = [ROOT / "capi" / "build.sh", out, "-tags=meshfeed_faults"]
    subprocess.run(recipe, check=True, timeout=600)
    return str(out)


@pytest.fixture
def seed() -> int:
    """The seed of a random test. pytest prints it if the test fails; MESHFEED_SEED sets it."""
    value = int(os.environ.get("MESHFEED_SEED") or random.SystemRandom().getrandbits(32))
    print(f"MESHFEED_SEED={value}")
    return value


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Machine]:
    """Returns a function that makes a machine. The benchmark then reads its clock."""

    def make(*times: float) -> Machine:
        made = Machine(*times)
        monkeypatch.setattr(timing, "_clock", made.clock)
        return made

    return make
