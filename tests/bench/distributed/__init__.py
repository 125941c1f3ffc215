"""Speed with many processes: four of two CPU devices each, as one `jax.distributed` job.

    python -m tests.bench.distributed            measure all, two minutes
    python -m tests.bench.distributed restore    one: steps/CASE, cold, replicas, restore, remesh
    python -m tests.bench.distributed --render   print the section from the results

`play` is what a process runs, `loops` are the loops, which take turns: all processes run the
same one at a time, and meet before each turn at a barrier of the coordination service, which is
no program. Results go to docs/benchmarks-processes.json, from which docs/benchmarks.md takes a
section when `python -m tests.bench --render` writes it. A machine with fewer cores than processes
shows what a loop costs, not what it waits for: the processes take each other's cores.
"""
