"""Computation that keeps the devices busy for a given time and depends on a batch.

Every device computes alone, without collectives. On CPU devices, a collective waits until a host
thread runs it for every device, and many collectives at a time can block each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

_SIDE = 64  # the size of the square matrix that a step multiplies
_FIRST, _MOST = 256, 2**24  # the first and the largest number of multiplications to try

Step = Callable[[Any, Any], Any]


class Work:
    """Builds steps that compute for a given time on all devices of a mesh.

    A step takes a carried array and a batch, and returns the next carried array. It cannot begin
    before every shard of the batch is on its device.

    Args:
        mesh: the devices, on one axis "data".
        batch: a batch with the structure of those passed to the steps, ready on its devices, with
            its rows partitioned over "data".

    Attributes:
        start: the first carried array.
    """

    def __init__(self, mesh: Mesh, batch: dict[str, jax.Array]) -> None:
        ones = np.broadcast_to(np.eye(_SIDE, dtype=np.float32), (mesh.size, _SIDE, _SIDE))
        self.start = jax.device_put(ones, NamedSharding(mesh, P("data")))
        self._batch = batch
        specs = P("data"), P("data"), P()
        self._run = jax.jit(jax.shard_map(_compute, mesh=mesh, in_specs=specs, out_specs=P("data")))

    def step(self, seconds: float) -> Step:
        """Returns a step that takes this much longer than a step without multiplications."""
        n = 0
        if seconds:
            self._time(0)  # compiles
            base, trial = self._time(0), _FIRST
            while (took := self._time(trial) - base) < seconds and trial < _MOST:
                trial *= 4
            n = round(trial * min(1.0, seconds / max(took, 1e-9)))
        return lambda carry, batch: self._run(carry, batch, n)

    def _time(self, n: int) -> float:
        """Returns the time of the fastest of a few runs, in seconds."""
        times = []
        for _ in range(5):
            before = time.perf_counter()
            jax.block_until_ready(self._run(self.start, self._batch, n))
            times.append(time.perf_counter() - before)
        return min(times)


def _compute(carry: jax.Array, batch: dict[str, jax.Array], n: jax.Array) -> jax.Array:
    """Reads the first value of every row on the device, and multiplies n times.

    Adding 0 times what was read makes the result depend on the batch.
    """
    firsts = [x[(slice(None), *[0] * (x.ndim - 1))] for x in batch.values()]
    read = sum(jnp.sum(first.astype(jnp.float32)) for first in firsts)
    out: jax.Array = jax.lax.fori_loop(0, n, lambda _, x: (x @ x + x) * 0.5, carry + 0.0 * read)
    return out
