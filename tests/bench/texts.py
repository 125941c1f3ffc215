"""The text of the page between its tables."""

HEAD = """\
# Benchmarks

`make bench` writes this page from [benchmarks.json](benchmarks.json), which holds every round of
every number below.

**Machine.** {processor}, {cores} cores, last-level cache {last_level_cache}, {system}; {versions}.
Measured {dates}; {builds}. Eight CPU devices share these cores, so **the numbers show what loading
and handing over cost, never scaling**. Nothing here was measured on GPU or TPU.

**End point**, the same for all loops: global `jax.Array`s with the requested sharding, shuffled,
ready on eight CPU devices.

**Loops.** *probe*: `np.take` of the permuted records, then one `jax.device_put` of the dict.
*aligned*: the same into new 64-byte-aligned memory, which JAX can alias. *Grain*:
`MapDataset.source(…).shuffle().batch(…)` over the same rows, on the caller's thread (the fastest of
several settings), then `jax.device_put`. In file cells, probe and Grain read the same file,
memory-mapped.

**Turns.** A cell is one process. The loops take turns of {ms:.0f} ms in it, {rounds} rounds of
them, and each round begins with another loop. Batches that were ready when a turn began do not
count. Other load of the machine therefore meets all loops, and ratios are taken round by round. The
range after a number is from the 10th to the 90th percentile of the rounds' medians.

**Gates.** A cell has numbers only if four checks passed. An epoch delivered every record once,
except a dropped remainder. The batches held the records that `loader.records` promised. Every
device's shard, replicas included, was equal to `batch[index]`. Three batches kept over 200 more did
not change. The batches of the probe and of Grain passed the same test of their shards.
"""

SUMMARY = """\
**In short.** In {cells} warm cells, closed, meshfeed was {low:.2f} to {high:.2f} times as fast as
the probe, with a median of {middle:.2f}. It was slower in {slower} (✗), and less than 1.5 times as
fast in {short} (○). `next` met its target in {reached} of {cells}. By the same formula with F among
calls of `next` it is {among}, and with F and G at the same time {together}. The end of the page
lists every missed target, with the reason.
"""

FLOW = """\
Rows per second, closed and pipelined (which blocks on the last batch of a turn only), and the 99th
percentile of a closed `next`. Grain has too few batches for a percentile.
"""

SPLIT = """\
**F** is the bare hand-over: the `make_array_from_callback` calls for the same leaves over aligned
buffers that are ready, in the same run, in a separate loop. *F among* replaces every fourth `next`
of the measured loop, where the caches are as `next` leaves them. **G** is the bare gather, by the
loader's clock, while its caller only takes batches. *F with G* and *G with F* are measured as in a
closed loop, which gathers the next batch while it hands this one over. The two cores share a cache
and its bandwidth. *blocks* is one `next` of the same loader without JAX: the time to build a
batch. *wait* is how long `next` waited for the gather on average. *rest* is what remains of `next`
after *F with G* and *wait*.

The target is 1.15 · max(F, G) + 25 µs, with F and G measured alone (*target*). *among* is the same
formula with *F among*. *together* uses F and G at the same time, because a loop gathers while it
hands over. These two explain the target; they do not replace it.
"""

COSTS = """\
*CPU s* is the processor time of the whole process per million rows, pipelined. *faults* are pages
touched for the first time, per batch, over 2,000 batches. Memory that is allocated for every batch
shows there. A buffer that is allocated once shows with a 2,000th of its pages: the last of a
loader's four buffers is 0.2 with batches of 1.5 MB. *Python bytes* are the allocations of Python
and NumPy during one `next`, with the whole batch and with a quarter of it. *first batch* is the
time from the construction of a loader, over data just opened, to the ready batch. It is the median
of eight. The time in brackets is that of the first one of the process, which loads the library.
"""

ROWS = """\
*gather* is the gather alone, called like `np.take(..., out=, mode="clip")` of the same rows, on the
caller's thread. Successive calls are a quarter of an epoch apart, so that neither finds the other's
rows in the cache. Entering Go does not count; Python's call of `np.take`, about 1 µs, does. *G* is
the gather in a loader, by its clock. It runs on another thread, and the clock runs on if that
thread loses its core. All write to three buffers in turn, as a loop does that hands batches over:
one is gathered, one waits, one is in use, and JAX on CPU reads that memory. *one buffer* is
`np.take` into one buffer every time, which no loader can do.
*memcpy* copies as many contiguous bytes into the same three buffers, from where the rows of a batch
begin. *times np.take* is the median of the rounds' ratios for *gather*. *at best* is the ratio of
the 10th percentiles, which other load disturbs least. *G, times* and *G, at best* are the same for
*G*.
"""

COLD = """\
*Cache dropped*: the file's pages are dropped, then one epoch runs (at most 5 s), from opening the
file. *disk* is what the kernel read for the process; *rows* are the bytes of the delivered rows.
"""

PEAK = """\
The largest growth of a process, in MB of memory that belongs to no file, over data in memory, mesh
(8,).
"""

PUT = """\
`mf.put` and `jax.device_put` of arrays that another loader made, closed: until the arrays are
ready, which are then dropped. Times in µs: the 10th percentile and the median of all calls.
Both take turns of 20 ms. *rounds* is the range of the ratio, round by round. *unaligned* memory
begins 16 bytes after a multiple of 64, as most NumPy arrays do: both copy it. All other memory is
aligned. *read-only* memory and that of *may_alias=True* is used by both without a copy where a
block is contiguous. *writable* memory is copied by `mf.put`, so that the caller may write to it
again. `device_put` would use it, and its array would change with the memory. So the call that
compares is `jax.device_put(np.array(x), sharding)`. In a mesh with *both*, rows and columns are
split, and both calls copy.
"""

PUT_PROCESSES = """\
The same in four processes of two devices each, of a batch of 1.5 MB (128x32x32x3 float32) that
every process has whole, by which dimensions are split. `device_put` gathers the data of all
processes and compares it in every call. Times in µs, medians of the processes: the 10th percentile
and the median of the rounds. The target is ten times as fast.
"""
