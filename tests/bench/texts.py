"""What the page says beside its tables."""

HEAD = """\
# Benchmarks

Written by `make bench` from [benchmarks.json](benchmarks.json), which holds every round of every
number below.

**Machine.** {processor}, {cores} cores, last-level cache {last_level_cache}, {system}; {versions}.
Measured {dates}; {builds}. Eight CPU devices share these cores, so **the numbers show what loading
and handing over cost, never scaling**; nothing here was measured on GPU or TPU.

**End point**, the same for all: global `jax.Array`s with the sharding asked for, shuffled, ready
on eight CPU devices.

**Loops.** *probe*: `np.take` of the permuted records, then one `jax.device_put` of the dict.
*aligned*: the same into fresh 64-byte-aligned memory, which JAX can alias. *Grain*:
`MapDataset.source(…).shuffle().batch(…)` over the same rows, on the caller's thread (of several
settings the fastest), then `jax.device_put`. File cells give the probe and Grain the same file,
memory-mapped.

**Turns.** A cell is one process. The loops run in it one after the other in stretches of {ms:.0f}
ms, {rounds} rounds of them, beginning with another loop each time; the batches that stood ready
when a stretch began are not counted. So what else the machine does meets all loops, and a ratio is
taken round by round. Behind a number stands the range from the 10th to the 90th percentile of the
rounds' medians.

**Gates.** No cell has a number unless an epoch delivered every record once (but for a dropped
remainder), the batches held the records that `loader.records` promised, every device's shard,
replicas included, was equal to `batch[index]`, three batches kept over 200 more did not change,
and the probe's and Grain's batches passed the same test of their shards.
"""

SUMMARY = """\
**In short.** In {cells} warm cells, closed, meshfeed was {low:.2f} to {high:.2f} times as fast as
the probe, {middle:.2f} in the middle one; in {slower} slower (✗), in {short} less than 1.5 times
as fast (○). `next` kept its target in {reached} of {cells}; the same formula with F among calls of
`next` in {among}, and with F and G at the same time in {company}. What was missed is listed at
the end, with the reason.
"""

FLOW = """\
Rows per second, closed and pipelined (blocking on the last batch of a stretch only), and the 99th
percentile of a closed `next`. Grain has too few batches for one.
"""

SPLIT = """\
**F**: the bare `make_array_from_callback` calls for the same leaves over aligned buffers that
stand ready, in the same run, in a loop of their own; *F among*: in place of every fourth `next` of
the measured loop, where they find the caches as `next` leaves them. **G**: the gather alone, by
the loader's clock, while its caller does nothing but take. *F with G* and *G with F* are the two
as a closed loop has them: the next batch is gathered while this one is handed over, on two cores
that share a cache and their bandwidth. *blocks* is one `next` of the same loader without JAX: how
fast batches can be made. *wait* is how long `next` waited for the gather on average, and *rest*
what is left of `next` after *F with G* and *wait*.

The target is 1.15 · max(F, G) + 25 µs with F and G alone (*target*). *among* is the same formula
with *F among*, *in company* with F and G as they are at the same time: a loop that gathers while
it hands over has to live with those. These two explain; they do not replace the target.
"""

COSTS = """\
*CPU s*: seconds of processor of the whole process per million rows, pipelined. *faults* are pages
touched for the first time, per batch, over 2,000 of them: memory that is allocated anew for every
batch shows there, whoever allocates it. A buffer that comes once shows with a 2,000th of its pages:
the last of a loader's four, which it needs when a batch is begun before the one in use is dropped,
is 0.2 with batches of 1.5 MB. *Python bytes* are what Python and NumPy allocate during one `next`,
with the whole batch and with a quarter of it. First batch: from the construction of a loader over
data just opened to the batch ready, median of eight; in brackets the first of the process, which
loads the library.
"""

ROWS = """\
*gather* is the gather alone, called like `np.take(..., out=, mode="clip")` of the same rows: on the
caller's thread, again and again (a quarter of an epoch apart, so that neither finds the other's
rows in the cache; the way into Go is not counted, Python's call of `np.take`, about 1 µs, is). *G*
is the same in a loader, by its clock: mostly on a thread of its own, which the caller wakes and
interrupts, and the clock goes on while its core does something else. All write to three buffers in
turn, as a loop that hands batches over has to: one is gathered, one waits, one is in use, and on
CPU JAX reads that very memory. *one buffer* is `np.take` into the same memory every time, which no
loader can do. *memcpy* copies as many contiguous bytes from where a batch's rows begin, into the
same three. *times np.take* is the median of the rounds' ratios for *gather*, *at best* that of the
10th percentiles, which other work on the machine disturbs least; *G, times* and *G, at best* are
the same for *G*.
"""

COLD = """\
*Cache dropped*: the file's pages are dropped, then one epoch runs (at most 5 s), from opening the
file. *Disk* is what the kernel read for the process, beside the bytes of the rows delivered.
"""

PEAK = """\
By how many MB of memory that belongs to no file a process grows at most, over data in memory,
mesh (8,).
"""
