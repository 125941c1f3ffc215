"""Compares shuffled Parquet files with Grain, Hugging Face and pyarrow.

    python -m tests.bench.parquet             every case and loop, about ten minutes
    python -m tests.bench.parquet --quick      a small case, half a minute, printed, nothing kept
    python -m tests.bench.parquet --only zstd cases with this in their name

The results stay in build/bench, and their section of docs/benchmarks.md is written. A run of one
loop is a fresh process of two epochs, and the loops take turns. All of them end with global
`jax.Array`s ready on eight CPU devices.
"""
