"""Jobs of real JAX processes on one machine: each gets its part of every batch."""
