"""Tests of arrays without a loader: `mf.put`, `mf.place_batches` and arrays of files."""
