"""Speed: meshfeed against the loop it has to beat, and against Grain.

`make bench` measures what has not been measured yet, piece by piece, each in a process of its
own; keeps every piece in docs/benchmarks.json; and writes docs/benchmarks.md from that. A run may
be cut off at any time, and the next one goes on. The end point is the same for all loops: global
`jax.Array`s ready on eight CPU devices.

`turns` takes the loops in short stretches one after the other, so that whatever else the machine
does meets all of them; `cell` is a warm case on a mesh, `rows` the gather alone by the size of a
row, `cold` files whose pages are not in memory, `limits` and `ballast` what makes memory short.
"""
