"""Compares reads of Parquet files from a web server far away with other libraries.

    python -m tests.bench.far             every loop, about five minutes
    python -m tests.bench.far --quick     few rows, printed, nothing kept

A Go program serves the files: each answer begins after 30 ms, and a connection has 50 MB/s. All
loops end with global `jax.Array`s ready on eight CPU devices. A run of a loop is a fresh process.
Loops whose packages are not installed are left out:

    pip install aiohttp==3.14.5 obstore==0.12.1

MosaicML Streaming 0.13 is left out: it needs PyTorch, and NumPy before 2.2. tf.data reads no
Parquet, and has no file system for web servers.
"""
