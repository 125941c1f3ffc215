"""The checks: right bytes on every device, no early reuse of a buffer, no leak.

Each check is a function that returns one line of facts, or raises `Mismatch`. The checks compare
with the source arrays through `Loader.records`, never with another loader.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from meshfeed._layout.blocks import dtype_of
from meshfeed._native import library
from meshfeed._selfcheck.work import Work

Array = np.ndarray[Any, Any]
Check = Callable[[], str]

NARROW = (
    *("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32"),
    *("float16", "bfloat16", "float32", "complex64"),
)
WIDE = ("int64", "uint64", "float64", "complex128")  # JAX has them with x64 only
BUSY = 0.003  # seconds that the devices compute per batch, many times what the loader takes


class Mismatch(Exception):  # noqa: N818 - a result, not a fault of the program
    """A check failed."""


@dataclass(frozen=True)
class Size:
    """How much the checks load."""

    rows: int = 4096  # records of the dataset
    batch: int = 256  # rows of a batch; rounded up to a multiple of the number of devices
    width: int = 2048  # float32 values in a row of the array "wide"
    flight: int = 320  # batches that are transferred while the devices are busy
    reuse: int = 1000  # batches that are loaded while one is kept


def every(size: Size) -> dict[str, Check]:
    """Returns all checks by name, in the order of their runs."""
    run = _Checks(size)
    kinds = [memory.kind for memory in jax.devices()[0].addressable_memories()]
    checks: dict[str, Check] = {
        f"bytes in {kind} memory": partial(run.bytes_in, kind) for kind in kinds
    }
    checks["bytes of 64-bit types"] = run.wide_types
    checks["replicas and split rows"] = run.replicas
    for ahead in range(3):
        checks[f"transfers in flight, device_prefetch={ahead}"] = partial(run.in_flight, ahead)
    checks["a kept batch"] = run.kept
    checks["donated arrays"] = run.donated
    checks["memory returned"] = _returned
    return checks


def one_axis() -> Mesh:
    """Returns a mesh of one axis over all devices."""
    return jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))


def two_axes() -> Mesh:
    """Returns a mesh of two axes. With four devices or more both axes have replicas."""
    n = jax.device_count()
    rows = next(d for d in (4, 2, 1) if n % d == 0 and (d < n or n < 4))
    shape, automatic = (rows, n // rows), (AxisType.Auto,) * 2
    return jax.make_mesh(shape, ("data", "model"), axis_types=automatic)


def round_up(rows: int) -> int:
    """Rounds up to a multiple of the number of devices."""
    n = jax.device_count()
    return -(-rows // n) * n


class _Checks:
    """The checks and their data."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.batch = round_up(size.batch)
        self.rows = max(size.rows // self.batch, 2) * self.batch
        rng = np.random.default_rng(0)
        self.wide = rng.standard_normal((self.rows, round_up(size.width))).astype(np.float32)

    def loader(self, data: dict[str, Array], specs: Any, mesh: Any = None, **more: Any) -> Any:
        options = {"batch_size": self.batch, "shuffle": True, **more}
        return mf.Loader(mf.from_arrays(data), mesh, specs, **options)

    # ---- bytes ----

    def bytes_in(self, kind: str) -> str:
        sharding = NamedSharding(one_axis(), P("data"), memory_kind=kind)
        return self._types(NARROW, sharding)

    def wide_types(self) -> str:
        before = jax.config.jax_enable_x64  # type: ignore[attr-defined]
        jax.config.update("jax_enable_x64", True)
        try:
            return self._types(WIDE, NamedSharding(one_axis(), P("data")))
        finally:
            jax.config.update("jax_enable_x64", before)

    def _types(self, names: tuple[str, ...], sharding: NamedSharding) -> str:
        data = {name: self._field(name) for name in names if _holds(name, sharding)}
        missing = [name for name in names if name not in data]
        if not data:
            return f"JAX puts none of {', '.join(names)} there"
        count = self._compare(data, dict.fromkeys(data, sharding))
        note = f"; JAX itself does not put {', '.join(missing)} there" if missing else ""
        return f"{count} batches of {len(data)} types{note}"

    def _field(self, name: str) -> Array:
        rng = np.random.default_rng(1)
        return rng.integers(0, 2 if name == "bool" else 100, (self.rows, 8)).astype(dtype_of(name))

    def replicas(self) -> str:
        mesh = two_axes()
        specs = {
            "wide": P("data"),
            "columns": mf.Array("wide", P(None, "model")),
            "both": mf.Array("wide", P("data", "model")),
            "flags": P("model"),
            "all": mf.Array("flags", P()),
        }
        data = {"wide": self.wide, "flags": self._field("bool")}
        count = self._compare(data, specs, mesh)
        return f"{count} batches of {len(specs)} specs on {dict(mesh.shape)}"

    def _compare(self, data: dict[str, Array], specs: dict[str, Any], mesh: Any = None) -> int:
        """Compares every batch of an epoch with the data; returns the number of batches."""
        fields = {name: spec.field for name, spec in specs.items() if isinstance(spec, mf.Array)}
        count = 0
        with self.loader(data, specs, mesh) as loader:
            for records, batch in _delivered(loader):
                for name, array in batch.items():
                    if isinstance(specs[name], NamedSharding) and array.sharding != specs[name]:
                        raise Mismatch(f"{name} is on {array.sharding}, not on {specs[name]}")
                    whole = data[fields.get(name, name)][records]
                    _same_shards(array, whole, f"{name} of batch {count}")
                count += 1
        if count != self.rows // self.batch:
            raise Mismatch(f"{count} batches came, not {self.rows // self.batch}")
        return count

    # ---- buffers ----

    def in_flight(self, ahead: int) -> str:
        """Sums every batch on its devices, long after the loader could reuse its host buffer."""
        mesh, epochs = one_axis(), -(-self.size.flight * self.batch // self.rows)
        rows = P("data")
        sums = jax.jit(jax.shard_map(_sum_of_bits, mesh=mesh, in_specs=rows, out_specs=rows))
        options = {"epochs": epochs, "device_prefetch": ahead}
        waiting: list[tuple[Array, jax.Array]] = []
        with self.loader({"wide": self.wide}, P("data"), mesh, **options) as loader:
            work = Work(mesh, jax.block_until_ready(next(loader.one_epoch())))
            busy, carry = work.step(BUSY), work.start
            for records, batch in _delivered(loader):
                carry = busy(carry, batch)  # makes the devices slower than the loader
                waiting.append((records, sums(batch["wide"])))
                del batch
        jax.block_until_ready((carry, [got for _, got in waiting]))  # also if one is wrong
        for i, (records, got) in enumerate(waiting):
            shards = self.wide[records].view(np.uint32).reshape(mesh.size, -1)
            if not np.array_equal(np.asarray(got), shards.sum(1, dtype=np.uint32)):
                raise Mismatch(f"batch {i} of {len(waiting)} changed while it was transferred")
        return f"{len(waiting)} batches"

    def kept(self) -> str:
        """Keeps one batch while many others use the same few buffers."""
        with self.loader({"wide": self.wide}, P("data"), one_axis(), epochs=-1) as loader:
            batches = _delivered(loader)
            records, kept = next(batches)
            for _ in range(self.size.reuse):
                next(batches)
            _same(kept["wide"], self.wide[records], "the kept batch")
            buffers = int(loader.stats()["host_bytes"]) // (self.batch * self.wide[0].nbytes)
        # One batch is kept, two are ready, one is being filled, and JAX releases some late.
        if buffers > 12:
            raise Mismatch(f"{self.size.reuse} batches took {buffers} buffers: they are not reused")
        return f"{self.size.reuse} further batches in {buffers} buffers"

    def donated(self) -> str:
        """Donates one of two replicated arrays that alias one buffer, and reads the other."""
        step = jax.jit(lambda x: x * 2 + 1, donate_argnums=0)
        specs = {"given": mf.Array("wide", P()), "kept": mf.Array("wide", P())}
        count = 0
        with self.loader({"wide": self.wide}, specs, one_axis()) as loader:
            for records, batch in _delivered(loader):
                rows = self.wide[records]
                got = step(batch.pop("given"))
                for shard in got.addressable_shards:
                    if not np.allclose(np.asarray(shard.data), rows * 2 + 1, 1e-5, 1e-5):
                        raise Mismatch(f"the donated array of batch {count} held other values")
                _same_shards(batch["kept"], rows, f"the array beside a donated one, batch {count}")
                count += 1
        return f"{count} batches"


def _holds(name: str, sharding: NamedSharding) -> bool:
    """Returns whether JAX itself can put this type there. Some devices lack some types."""
    zeros = np.zeros((jax.device_count(), 1), dtype_of(name))
    try:
        np.asarray(jax.device_put(zeros, sharding))
    except Exception:
        return False
    return True


def _sum_of_bits(shard: jax.Array) -> jax.Array:
    bits = jax.lax.bitcast_convert_type(shard, jnp.uint32)
    return jnp.sum(bits, dtype=jnp.uint32, keepdims=True)[0]


def _delivered(loader: mf.Loader) -> Iterator[tuple[Array, dict[str, jax.Array]]]:
    """Yields every batch with the numbers of the records that it must contain."""
    before = loader.state()
    for batch, after in loader.with_state():
        yield loader.records(before["epoch"], before["position"]), batch
        before = after


def _same(got: Any, expected: Array, what: str) -> None:
    if np.asarray(got).tobytes() != np.ascontiguousarray(expected).tobytes():
        raise Mismatch(f"{what} differs from the source")


def _same_shards(array: jax.Array, whole: Array, what: str) -> None:
    """Compares the shard of every device with its part of the batch."""
    for shard in array.addressable_shards:
        _same(shard.data, whole[shard.index], f"{what} on {shard.device}")


def _returned() -> str:
    gc.collect()
    jax.device_put(np.zeros(1)).block_until_ready()  # JAX releases references in such a call
    gc.collect()
    live = library.library().mf_live_batches()
    if live:
        raise Mismatch(f"{live} batches are still live")
    return "no live batches"
