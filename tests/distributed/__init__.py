"""Real JAX processes on one machine: each gets its part, and together they hold the batch."""
