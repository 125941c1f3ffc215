"""Tests of the loader in one process: batches, order, states, memory, devices and reports."""
