"""Programs across processes, which fail without collectives and work with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

N = 4 * 48  # elements; a multiple of every job's number of devices
DENIED = "Multiprocess computations aren't implemented on the CPU backend."


def tried() -> dict[str, Any]:
    """Runs each program once on all devices; returns its result, or the text of its error."""
    mesh = Mesh(np.array(jax.devices()), ("data",))
    sharding = NamedSharding(mesh, PartitionSpec("data"))
    numbers = np.arange(N, dtype=np.int32)
    array = jax.make_array_from_callback((N,), sharding, lambda index: numbers[index])
    programs: dict[str, Callable[[], Any]] = {
        "device_put": lambda: jax.device_put(numbers, sharding).shape[0],
        "process_allgather": lambda: multihost_utils.process_allgather(array, tiled=True).sum(),
        "jit with a sum": lambda: jax.jit(jnp.sum)(array),
        "jit without": lambda: jax.jit(lambda x: x + 1)(array).block_until_ready().shape[0],
        "sync": lambda: multihost_utils.sync_global_devices("here") or 0,
    }
    return {name: _outcome(program) for name, program in programs.items()}


def _outcome(program: Callable[[], Any]) -> int | str:
    try:
        return int(program())
    except jax.errors.JaxRuntimeError as e:
        return str(e)
