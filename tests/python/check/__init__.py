"""Tests of benchmarks, of the self-check, and of `meshfeed doctor`."""
