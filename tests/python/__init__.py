"""Tests of the Python package, end to end on eight CPU devices."""
