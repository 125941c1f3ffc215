"""Compiles programs that never run, to read what XLA reports about them."""

from __future__ import annotations

from typing import Any

import jax

# Most of a compilation is spent on machine code. These options make it quick to generate and slow
# to run. The CPU backend allocates the same buffers then, and has the same collectives.
OPTIONS: dict[str, dict[str, str | bool]] = {
    "cpu": {"xla_backend_optimization_level": "0", "xla_cpu_use_fusion_emitters": False}
}


def compiled(lowered: jax.stages.Lowered, platform: str = "cpu") -> jax.stages.Compiled:
    """Compiles a program for the devices of a platform."""
    return lowered.compile(compiler_options=OPTIONS.get(platform))


def memory(lowered: jax.stages.Lowered) -> Any:
    """Returns the bytes of a program's buffers on CPU devices."""
    found = compiled(lowered).memory_analysis()
    assert found is not None
    return found
