"""Checks the hand-over on real accelerators: `make gpu-check`, or run this file.

It needs a JAX that sees a GPU or TPU and prints one line per check. What it
proves there, and the tests of `tests/python` prove on CPU:

- every shard holds the rows of the order, for every type, and in every kind of
  memory that the device has;
- replicas are equal, to each other and to the data;
- buffers are reused while transfers of earlier batches are still under way, and
  no batch changes by it, however long it is kept;
- donated arrays take no buffer with them that somebody else reads;
- everything is released in the end.

`test_gpu_check.py` runs it in small on CPU devices, so that it works on the day
it is needed.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from meshfeed import _library

Arrays = dict[str, np.ndarray[Any, Any]]
TYPES = ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "float32")


@dataclass(frozen=True)
class Size:
    """How much is checked: the real thing, or as little as shows that the checks work."""

    records: int = 4096
    batch: int = 256
    width: int = 2048
    steps: int = 1000  # that a batch is kept, and that buffers are reused
    in_flight: int = 320
    timed: int = 500


SMALL = Size(records=64, batch=16, width=64, steps=40, in_flight=20, timed=5)


def arrays(size: Size) -> Arrays:
    """One field of every type that JAX keeps without x64, and a wide one."""
    rng = np.random.default_rng(0)
    fields = {
        kind: rng.integers(0, 2 if kind == "bool" else 100, (size.records, 8)).astype(kind)
        for kind in TYPES
    }
    fields["bfloat16"] = rng.integers(0, 100, (size.records, 8)).astype(ml_dtypes.bfloat16)
    fields["wide"] = rng.standard_normal((size.records, size.width)).astype(np.float32)
    return fields


def line() -> Mesh:
    return jax.make_mesh((jax.device_count(),), ("data",))


def square() -> Mesh:
    """A mesh of two dimensions, with replicas in both where there are four devices."""
    n = jax.device_count()
    down = next(d for d in (4, 2, 1) if n % d == 0 and (d < n or n < 4))
    return jax.make_mesh((down, n // down), ("data", "model"))


def delivered(loader: mf.Loader) -> Iterator[tuple[np.ndarray[Any, Any], dict[str, jax.Array]]]:
    """Yields every batch after the numbers of the records that it must hold."""
    place = loader.state()
    for batch, state in loader.with_state():
        yield loader.records(place["epoch"], place["position"]), batch
        place = state


def assert_same(got: Any, expected: np.ndarray[Any, Any], what: str) -> None:
    same = np.asarray(got).tobytes() == np.ascontiguousarray(expected).tobytes()
    assert same, f"{what} differs from the data"


def assert_shards(array: jax.Array, whole: np.ndarray[Any, Any], what: str) -> None:
    """Every device's shard has the bytes of its index."""
    for shard in array.addressable_shards:
        assert_same(shard.data, whole[shard.index], f"{what} on {shard.device}")


def check_bytes(data: Arrays, size: Size, kind: str) -> str:
    sharding = NamedSharding(line(), P("data"), memory_kind=kind)
    specs, count = dict.fromkeys(data, sharding), 0
    with mf.Loader(
        mf.from_arrays(data), specs=specs, batch_size=size.batch, shuffle=True
    ) as loader:
        for records, batch in delivered(loader):
            for name, array in batch.items():
                assert array.sharding == sharding, f"{name} is on {array.sharding}"
                assert_shards(array, data[name][records], f"{name} of batch {count}")
            count += 1
    assert count == size.records // size.batch
    return f"{count} batches of {len(data)} arrays"


def check_replicas(data: Arrays, size: Size) -> str:
    mesh, names = square(), ("wide", "bfloat16", "uint8", "bool")
    specs = dict(zip(names, (P("data"), P("model"), P(), P("data", "model")), strict=True))
    options: dict[str, Any] = {"batch_size": size.batch, "shuffle": True}
    with mf.Loader(mf.from_arrays(data), mesh, specs, **options) as loader:
        for records, batch in delivered(loader):
            for name, array in batch.items():
                assert_shards(array, data[name][records], name)
    return f"{mesh}, {', '.join(map(str, specs.values()))}"


def check_in_flight(data: Arrays, size: Size, device_prefetch: int) -> str:
    """Sums every batch on its device, long after its host buffer was used again."""
    busy = jax.jit(lambda x: (x @ x.T) @ x)  # keeps the device behind the loader
    total = jax.jit(
        lambda x: jnp.sum(jax.lax.bitcast_convert_type(x, jnp.uint32), dtype=jnp.uint32)
    )
    waiting: list[tuple[np.ndarray[Any, Any], jax.Array]] = []
    ballast = jnp.ones((size.width, size.width))
    options: dict[str, Any] = {
        "batch_size": size.batch,
        "shuffle": True,
        "epochs": size.in_flight * size.batch // size.records,
        "device_prefetch": device_prefetch,
    }
    specs = {"wide": P("data")}
    with mf.Loader(mf.from_arrays(data), line(), specs, **options) as loader:
        for records, batch in delivered(loader):
            ballast = busy(ballast) * 1e-9
            waiting.append((records, total(batch["wide"])))
            del batch
    for i, (records, got) in enumerate(waiting):
        expected = data["wide"][records].view(np.uint32).sum(dtype=np.uint32)
        assert int(got) == int(expected), f"batch {i} changed while it was under way"
    assert len(waiting) == size.in_flight
    return f"{len(waiting)} batches, device_prefetch={device_prefetch}"


def check_kept(data: Arrays, size: Size) -> str:
    """Keeps one batch while many others pass through the same few buffers."""
    options: dict[str, Any] = {"batch_size": size.batch, "shuffle": True, "epochs": -1}
    with mf.Loader(mf.from_arrays(data), line(), {"wide": P("data")}, **options) as loader:
        batches = delivered(loader)
        records, kept = next(batches)
        for _ in range(size.steps // 2):
            next(batches)
        before = loader.stats()
        for _ in range(size.steps // 2):
            next(batches)
        after = loader.stats()
        assert_same(kept["wide"], data["wide"][records], "the kept batch")
        assert after["batches"] - before["batches"] == size.steps // 2
        made = int(after["host_bytes"] // (size.batch * data["wide"][0].nbytes))
        # One is kept, two wait, one is being made, and JAX lets go of some late.
        assert made <= 12, f"{made} buffers for {size.steps} batches: they are not used again"
    return f"{size.steps:,} further batches in {made} buffers"


def check_donated(data: Arrays, size: Size) -> str:
    """Donates one of two replicated arrays over one buffer pool, and reads the other."""
    step = jax.jit(lambda x: x * 2 + 1, donate_argnums=0)
    specs = {"given": mf.Array("wide", P()), "kept": mf.Array("wide", P())}
    options: dict[str, Any] = {"batch_size": size.batch, "shuffle": True, "epochs": 2}
    count = 0
    with mf.Loader(mf.from_arrays(data), line(), specs, **options) as loader:
        for records, batch in delivered(loader):
            rows = data["wide"][records]
            got = step(batch.pop("given"))
            for shard in got.addressable_shards:
                np.testing.assert_allclose(np.asarray(shard.data), rows * 2 + 1, rtol=1e-6)
            assert_shards(batch["kept"], rows, f"the array beside a donated one, in batch {count}")
            count += 1
    return f"{count} batches"


def check_released() -> str:
    gc.collect()
    jax.device_put(np.zeros(1)).block_until_ready()  # JAX drops its references in such a call
    gc.collect()
    live = _library.library().mf_live_batches()
    assert live == 0, f"{live} batches are still alive"
    return "no batch is alive"


def rate(data: Arrays, size: Size) -> str:
    """Not a check: what arrives per second, blocking on every batch."""
    options: dict[str, Any] = {"batch_size": size.batch, "epochs": -1}
    with mf.Loader(mf.from_arrays(data), line(), {"wide": P("data")}, **options) as loader:
        batches = iter(loader)
        for _ in range(size.timed // 10):
            jax.block_until_ready(next(batches))
        began = time.perf_counter()
        for _ in range(size.timed):
            jax.block_until_ready(next(batches))
        seconds = time.perf_counter() - began
    each = size.batch * data["wide"][0].nbytes
    speed = each * size.timed / seconds / 1e9
    return (
        f"{size.timed / seconds:,.0f} batches of {each / 2**20:.1f} MiB a second, {speed:.1f} GB/s"
    )


def checks(size: Size) -> dict[str, Callable[[], str]]:
    """Gives all checks by name, in the order in which they run."""
    data = arrays(size)
    kinds = [memory.kind for memory in jax.devices()[0].addressable_memories()]
    return {
        **{f"bytes in {kind}": partial(check_bytes, data, size, kind) for kind in kinds},
        "replicas": lambda: check_replicas(data, size),
        **{f"in flight, {n} ahead": partial(check_in_flight, data, size, n) for n in range(3)},
        "kept": lambda: check_kept(data, size),
        "donated": lambda: check_donated(data, size),
        "released": check_released,
        "rate": lambda: rate(data, size),
    }


def main() -> None:
    platform = jax.devices()[0].platform
    if platform == "cpu":
        sys.exit("JAX sees no accelerator here; tests/python checks the same on CPU")
    devices = f"{jax.device_count()} x {jax.devices()[0].device_kind}"
    print(f"meshfeed {mf.__version__} with JAX {jax.__version__} on {devices}")
    for name, check in checks(Size()).items():
        print(f"{name:<28} ok: {check()}", flush=True)


if __name__ == "__main__":
    main()
