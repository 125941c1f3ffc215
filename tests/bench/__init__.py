"""Speed: meshfeed against the loop it has to beat, and against Grain.

`make bench` runs every cell of cases x inputs x meshes in a process of its own, all loaders
interleaved in it, and writes docs/benchmarks.md and a JSON file with the raw numbers. The end
point is the same for all: global `jax.Array`s ready on eight CPU devices.
"""
