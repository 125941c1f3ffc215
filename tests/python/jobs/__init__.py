"""Tests of what the processes of a job agree on, compare and tell each other."""
