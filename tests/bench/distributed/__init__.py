"""Measures four processes of two CPU devices each, as one `jax.distributed` job.

    python -m tests.bench.distributed            measure all, two minutes
    python -m tests.bench.distributed restore    one: steps/CASE, cold, replicas, restore, remesh
    python -m tests.bench.distributed --render   write the section from kept results

Each process runs `play`. The loops (`loops`) take turns: all processes run the same one at a
time, and meet before each turn at a barrier of the coordination service, which runs no program.
Results stay in build/bench, and their section of docs/benchmarks.md is written. A machine with
fewer cores than processes shows what a loop costs and not what it waits for, because the
processes compete for cores.
"""
