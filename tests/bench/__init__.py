"""Compares the speed of meshfeed with a loop by hand and with Grain.

`make bench` measures every missing piece, each in its own process, keeps the results in
build/bench, and writes a section of docs/benchmarks.md from them. A run may be interrupted at any
time, and the next one continues. The end point is the same for all loops: global `jax.Array`s
ready on eight CPU devices.

`turns` runs the loops in short turns, so that other load of the machine meets all of them. `cell`
measures a warm case on a mesh, and `rows` the gather alone by the size of a row. `cold` measures a
file without its pages in memory. `limits` and `ballast` limit the memory.
"""
