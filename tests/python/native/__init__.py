"""Tests of the calls of the C library: its ABI, errors, limits, faults, and processes that end."""
