"""Checks the hand-over on real accelerators: `make gpu-check`, or run this file.

It needs a JAX that sees a GPU or TPU and prints one line per check. What it
proves there, and the tests of `tests/python` prove on CPU:

- every array equals the rows of the order, for every type and memory kind;
- buffers are reused while transfers of earlier batches are still under way, and
  no batch changes by it, however long it is kept;
- replicas are equal (with two devices or more);
- everything is released in the end.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from meshfeed import _library

RECORDS, BATCH = 4096, 256
Arrays = dict[str, np.ndarray[Any, Any]]


def arrays() -> Arrays:
    """One field of every type that JAX keeps without x64, and a wide one."""
    rng = np.random.default_rng(0)
    kinds = ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "float32")
    fields = {
        kind: rng.integers(0, 2 if kind == "bool" else 100, (RECORDS, 8)).astype(kind)
        for kind in kinds
    }
    fields["bfloat16"] = rng.integers(0, 100, (RECORDS, 8)).astype(ml_dtypes.bfloat16)
    fields["wide"] = rng.standard_normal((RECORDS, 2048)).astype(np.float32)
    fields["id"] = np.arange(RECORDS, dtype=np.int32)
    return fields


def mesh() -> Mesh:
    return jax.make_mesh((jax.device_count(),), ("data",))


def same(got: jax.Array, expected: np.ndarray[Any, Any]) -> bool:
    """Whether the bytes are equal."""
    return np.asarray(got).tobytes() == np.ascontiguousarray(expected).tobytes()


def check_bytes(data: Arrays, kind: str | None = None) -> str:
    sharding = NamedSharding(mesh(), P("data"), memory_kind=kind)
    specs = dict.fromkeys(data, sharding)
    batches = 0
    with mf.Loader(mf.from_arrays(data), specs=specs, batch_size=BATCH, shuffle=True) as loader:
        for batch in loader:
            ids = np.asarray(batch["id"])
            for name, array in batch.items():
                assert array.sharding == sharding, f"{name} is on {array.sharding}"
                assert same(array, data[name][ids]), f"{name} differs in batch {batches}"
            batches += 1
    return f"{batches} batches of {len(data)} arrays"


def check_in_flight(data: Arrays, device_prefetch: int) -> str:
    """Sum every batch on its device, long after its host buffer was used again."""
    specs = {"wide": P("data"), "id": P("data")}
    busy = jax.jit(lambda x: (x @ x.T) @ x)  # keeps the device behind the loader
    total = jax.jit(
        lambda x: jnp.sum(jax.lax.bitcast_convert_type(x, jnp.uint32), dtype=jnp.uint32)
    )
    waiting: list[tuple[jax.Array, jax.Array]] = []
    ballast = jnp.ones((2048, 2048))
    options: dict[str, Any] = {
        "batch_size": BATCH,
        "shuffle": True,
        "epochs": 20,
        "device_prefetch": device_prefetch,
    }
    with mf.Loader(mf.from_arrays(data), mesh(), specs, **options) as loader:
        for batch in loader:
            ballast = busy(ballast) * 1e-9
            waiting.append((batch["id"], total(batch["wide"])))
            del batch
    for i, (ids, got) in enumerate(waiting):
        expected = data["wide"][np.asarray(ids)].view(np.uint32).sum(dtype=np.uint32)
        assert int(got) == int(expected), f"batch {i} changed while it was under way"
    return f"{len(waiting)} batches, device_prefetch={device_prefetch}"


def check_kept(data: Arrays) -> str:
    """Keep one batch while a thousand others pass through the same buffers."""
    specs = {"wide": P("data"), "id": P("data")}
    with mf.Loader(
        mf.from_arrays(data), mesh(), specs, batch_size=BATCH, shuffle=True, epochs=-1
    ) as loader:
        batches = iter(loader)
        kept = next(batches)
        before = np.asarray(kept["wide"]).copy()
        for _ in range(1000):
            next(batches)
        assert same(kept["wide"], before), "the kept batch changed"
    return "1,000 further batches"


def check_replicas(data: Arrays) -> str:
    if jax.device_count() < 2:
        return "skipped: one device has no replicas"
    with mf.Loader(mf.from_arrays(data), mesh(), {"wide": P()}, batch_size=BATCH) as loader:
        for batch in loader:
            first, *others = (np.asarray(s.data) for s in batch["wide"].addressable_shards)
            assert all(np.array_equal(first, other) for other in others), "replicas differ"
    return f"{jax.device_count()} replicas"


def check_released() -> str:
    gc.collect()
    jax.device_put(np.zeros(1)).block_until_ready()  # JAX drops its references in such a call
    gc.collect()
    live = _library.library().mf_live_batches()
    assert live == 0, f"{live} batches are still alive"
    return "no batch is alive"


def rate(data: Arrays) -> str:
    """Not a check: what arrives per second, blocking on every batch."""
    with mf.Loader(
        mf.from_arrays(data), mesh(), {"wide": P("data")}, batch_size=BATCH, epochs=-1
    ) as loader:
        batches = iter(loader)
        for _ in range(50):
            jax.block_until_ready(next(batches))
        began, count = time.perf_counter(), 500
        for _ in range(count):
            jax.block_until_ready(next(batches))
        seconds = time.perf_counter() - began
    size = BATCH * data["wide"][0].nbytes
    speed = size * count / seconds / 1e9
    return f"{count / seconds:,.0f} batches of {size / 2**20:.0f} MiB a second, {speed:.1f} GB/s"


def main() -> None:
    platform = jax.devices()[0].platform
    if platform == "cpu":
        sys.exit("JAX sees no accelerator here; tests/python checks the same on CPU")
    devices = f"{jax.device_count()} x {jax.devices()[0].device_kind}"
    print(f"meshfeed {mf.__version__} with JAX {jax.__version__} on {devices}")
    data = arrays()
    checks: dict[str, Callable[[], str]] = {
        "bytes": lambda: check_bytes(data),
        "bytes in pinned host memory": lambda: check_bytes(data, "pinned_host"),
        "in flight": lambda: check_in_flight(data, 0),
        "in flight, one ahead": lambda: check_in_flight(data, 1),
        "in flight, two ahead": lambda: check_in_flight(data, 2),
        "kept": lambda: check_kept(data),
        "replicas": lambda: check_replicas(data),
        "released": check_released,
        "rate": lambda: rate(data),
    }
    for name, check in checks.items():
        print(f"{name:<28} ok: {check()}", flush=True)


if __name__ == "__main__":
    main()
