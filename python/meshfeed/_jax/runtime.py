"""The state of JAX in this process and thread: the only module with JAX's private names."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from meshfeed._layout.blocks import dtype_of
from meshfeed.errors import InvalidStateError, UnsupportedError


def context_mesh() -> Mesh | None:
    """Returns the mesh of `jax.set_mesh`, or None. A block `with mesh:` does not count."""
    if not _traces_nothing():
        return None
    mesh = _get_mesh()
    return None if mesh.empty else mesh


def _mesh_getter() -> Callable[[], Mesh]:
    """Returns JAX's function that returns the mesh of `jax.set_mesh`. It is public from 0.9 on."""
    if hasattr(jax.sharding, "get_mesh"):
        return jax.sharding.get_mesh
    from jax._src import mesh

    return mesh.get_concrete_mesh


_get_mesh = _mesh_getter()


def process_count() -> int:
    """Returns the number of processes of the run, including processes outside of the mesh."""
    count: int = jax.process_count()
    return count


def process_index() -> int:
    """Returns the number of this process."""
    return jax.process_index()


def job_process() -> int:
    """Returns the number of this process in the job, without starting a backend."""
    from jax._src import distributed

    process: int = distributed.global_state.process_id
    return process


# The options of JAX that change a program, its numbers or its transport. If they differ between
# processes, the devices of a job run different programs, which wait for each other or crash.
_FLAGS = (
    "jax_enable_x64",
    "jax_explicit_x64_dtypes",
    "jax_numpy_dtype_promotion",
    "jax_default_matmul_precision",
    "jax_allow_f16_reductions",
    "jax_default_prng_impl",
    "jax_enable_custom_prng",
    "jax_random_seed_offset",
    "jax_threefry_partitionable",
    "jax_threefry_gpu_kernel_lowering",
    "jax_high_dynamic_range_gumbel",
    "jax_softmax_custom_jvp",
    "jax_disable_jit",
    "jax_debug_nans",
    "jax_debug_infs",
    "jax_error_checking_behavior_nan",
    "jax_error_checking_behavior_divide",
    "jax_error_checking_behavior_oob",
    "jax_use_shardy_partitioner",
    "jax_use_direct_linearize",
    "jax_compiler_enable_remat_pass",
    "jax_disable_most_optimizations",
    "jax_optimization_level",
    "jax_memory_fitting_level",
    "jax_exec_time_optimization_effort",
    "jax_memory_fitting_effort",
    "jax_cpu_collectives_implementation",
)


def program_flags() -> dict[str, Any]:
    """Returns the release of JAX and its options that change programs, as far as it has them."""
    values = ((name, getattr(jax.config, name, None)) for name in _FLAGS)
    plain = bool, int, float, str
    flags = {name: value if type(value) in plain else str(value) for name, value in values}
    return {"jax": jax.__version__} | {n: v for n, v in flags.items() if v != "None"}


_TESTED = "0.8.0, 0.9.0, 0.10.2 and 0.12.0.1"  # releases that the tests have run on
_CLIENT = (  # the methods of the client that meshfeed calls
    "key_value_set_bytes",
    "blocking_key_value_get_bytes",
    "key_value_try_get_bytes",
    "key_value_delete",
    "key_value_dir_get_bytes",
)


def coordination_client() -> Any:
    """Returns the client of `jax.distributed`'s key-value store, which has no public name.

    Raises:
        UnsupportedError: `jax.distributed` is not initialized, or JAX has its client elsewhere.
    """
    hint = "pass coordinator= any store with the methods of mf.Coordinator, or False for none"
    try:
        from jax._src import distributed

        client = distributed.global_state.client
    except (ImportError, AttributeError):
        client = missing = "jax._src.distributed.global_state.client"
    else:
        missing = next((name for name in _CLIENT if not hasattr(client, name)), "")
    if client is None:
        message = "the mesh spans processes, but jax.distributed was not initialized"
        raise UnsupportedError(message, hint=hint)
    if missing:
        message = f"JAX {jax.__version__} has no {missing}, by which processes would agree"
        message += f" (tested: JAX {_TESTED})"
        raise UnsupportedError(message, hint=hint)
    return client


def delivered_name(dtype: str) -> str:
    """Returns the name of the type that JAX delivers. If x64 is off, 64-bit types are narrowed."""
    return str(jax.dtypes.canonicalize_dtype(dtype_of(dtype)).name)


def x64(*, enabled: bool) -> Any:
    """Returns a context manager that sets `jax_enable_x64` on this thread."""
    if jax.config.jax_enable_x64 == enabled:  # type: ignore[attr-defined]
        return contextlib.nullcontext()
    module = jax if hasattr(jax, "enable_x64") else jax.experimental  # before JAX 0.9
    return module.enable_x64(enabled)


# Returns whether the profiler records a trace. The call takes a tenth of the time of an annotation.
# If a release of JAX does not have the function, annotations are always made.
is_profiling: Callable[[], bool] = getattr(jax.profiler.TraceAnnotation, "is_enabled", lambda: True)


def is_guarded() -> bool:
    """Returns whether JAX refuses implicit transfers here and permits explicit ones."""
    level: str = jax.config.jax_transfer_guard_host_to_device  # type: ignore[attr-defined]
    return level == "disallow"


def check_untraced(op: str) -> None:
    """Raises an error if JAX records a program, which would contain a batch as a constant.

    Args:
        op: the user's call.
    """
    if is_traced():
        message = "a batch was asked for inside of a function that JAX traces: the program "
        message += "would hold that one batch as a constant, and never get another"
        hint = "take batches outside of jax.jit, scan and the like, and pass them as arguments"
        raise InvalidStateError(message, op=op, hint=hint)


def is_traced() -> bool:
    """Returns whether JAX records operations into a program. `grad` and `vmap` alone do not."""
    if _traces_nothing():
        return False
    with jax.transfer_guard("allow"):
        return isinstance(jax.lax.neg(np.float32(0)), jax.core.Tracer)


def _trace_state() -> Callable[[], bool]:
    """Returns JAX's function that reports whether no trace is active. It has no public name."""
    from jax._src import core

    return getattr(core, "trace_state_clean", lambda: True)


_traces_nothing = _trace_state()
