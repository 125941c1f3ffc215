"""Tests of the strategy planner, compared with what XLA compiles, and of its drawings."""
