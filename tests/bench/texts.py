"""The text of the section between its tables."""

HEAD = """\
## JAX on eight CPU devices

`make bench` measures this section. {processor}, {cores} cores, last-level cache
{last_level_cache}, {system}; {versions}. Measured {dates}, {builds}. A cell is one process. Its
loops take turns of {ms:.0f} ms in {rounds} rounds. Ratios are taken round by round, and ranges
are from the 10th to the 90th percentile. An epoch counts only if it delivered every record once,
each shard equaled `batch[index]`, and kept batches did not change. *probe* is `np.take` of the
permuted records and one `jax.device_put` of the dict. *Grain* is
`MapDataset.source(…).shuffle().batch(…)` on the caller's thread, the fastest of several settings,
then `jax.device_put`.
"""

SUMMARY = """\
**In short.** In {cells} warm cells, closed, meshfeed was {low:.2f} to {high:.2f} times as fast as
the probe, with a median of {middle:.2f}. It was slower in {slower} (✗), and less than 1.5 times
as fast in {short} (○). `next` met its target in {reached} of {cells}.
"""

CLOSED = """\
The table has times of `next` in µs; the loop waits for each batch. The target is 1.15 · max(F, G)
+ 25: F is JAX's hand-over of ready memory alone, and G the gather alone. On two cores they slow
each other down. *p99* has meshfeed first, then the probe.
"""

PUT = """\
Over {cells} cells of arrays, memory and meshes, `mf.put` is {low:.2f} to {high:.2f} times as fast
as `jax.device_put` (median {middle:.2f}), and slower in {slower}. It copies memory that can be
written, so there it is compared with `jax.device_put(np.array(x), …)`. In four processes that each
have the whole batch (1.5 MB), it is {times} times as fast: `device_put` compares data of all
processes.
"""

COLD = """\
*cold*: the file's pages are dropped, then one epoch runs. *limited*: a file of twice the memory
({way}). *disk* is what the kernel read.
"""
