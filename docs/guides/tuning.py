# ruff: noqa: E501

# %% [markdown]
# # Tuning
#
# After this guide you can measure an input, name the bottleneck of a training loop, change the one argument
# that matters, and start the result on a cluster.
#
# | level | before you begin | running time | memory |
# | --- | --- | --- | --- |
# | intermediate | the [quick reference](quick_reference.py); `pip install '.[jax,arrow]' matplotlib` | 10 s | 700 MB |
#
# - [Three numbers](#three-numbers) · [Two ways to wait](#two-ways-to-wait) · [The report](#the-report)
# - [What to change](#what-to-change): read-ahead, record batches, compression, files, huge pages, threads
# - [A trace](#a-trace) · [More devices](#more-devices) · [On a cluster](#on-a-cluster)
#
# The order matters: measure, change one thing, measure again. Most loops need no change.

# %%
import builtins
import os
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 8)


def show(x):
    """Shows a picture or a table: drawn in a notebook, as text elsewhere."""
    getattr(builtins, "display", print)(x)


start = Path.cwd()
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)

# %% [markdown]
# The data are 4,096 images of 32 by 32 pixels with three channels, as rows of 3,072 numbers, and a label. They are
# in an Arrow file. The model is a single matrix, so
# that the input is a large part of the time. Yours will be a smaller one.

# %%
rng = np.random.default_rng(0)
pixels = rng.integers(0, 16, size=(4096, 3072), dtype=np.uint8)
table = pa.table(
    {
        "image": pa.FixedSizeListArray.from_arrays(pixels.ravel(), 3072),
        "label": rng.integers(0, 10, size=4096, dtype=np.int32),
    }
)
feather.write_feather(table, "train.arrow", compression="uncompressed", chunksize=512)


def make(devices=8, batch_size=256, path="train.arrow", **options):
    """Returns a loader, a training step and the weights."""
    mesh = Mesh(jax.devices()[:devices], ("data",))
    loader = mf.Loader(
        mf.open(path), mesh, P("data"), batch_size=batch_size, shuffle=True, **options
    )

    @jax.jit
    def step(weights, batch):
        def loss(weights):
            x = batch["image"].astype(jnp.float32) / 255
            return jnp.mean((x @ weights - jax.nn.one_hot(batch["label"], 10)) ** 2)

        value, slope = jax.value_and_grad(loss)(weights)
        return weights - 0.1 * slope, value

    weights = jax.device_put(np.zeros((3072, 10), np.float32), NamedSharding(mesh, P()))
    return loader, step, weights


# %% [markdown]
# ## Three numbers
#
# How fast is the loop? How fast would it be without the input? How fast is the input alone? `mf.benchmark`
# measures all three. It takes any iterable of batches, so measure your old loader with it, too.

# %%
loader, step, weights = make()
with loader:
    loop = mf.benchmark(loader, step, carry=weights, batches=30)
    alone = mf.benchmark(loader, batches=30)
print(loop)
print(alone)
assert loop.batches == alone.batches == 30
assert loop.epochs == 3  # 35 batches, of which an epoch has 16
assert loop.memory["batch"] == 32 * (3072 + 4)  # bytes: 32 of the 256 rows are on each device
assert loop.memory["carry"] == 4 * 3072 * 10

# %% [markdown]
# - **time** is the mean over the batches, and so counts seldom batches that take long. If it is much larger than
#   the median, look for those in `loop.seconds`.
# - **waiting** is the share of the time that the loop spends in `next`. A step that was dispatched before may
#   run during this time, so waiting is not yet a loss.
# - **the step alone** repeats the step with a batch that is there already. If the loop takes as long, the input
#   costs nothing, and nothing in this guide makes your loop faster. Work on the step instead.
# - **without the input … times as fast** is the quotient of the two, and so the most that tuning the input can
#   gain. On CPU devices it can be more than the waiting explains: the threads that prepare batches also take
#   cores from the step.
# - **first** is the time of the first batch and of the first call of the step, which compiles it. They are not
#   part of the other numbers.
# - **per device** is computed from shapes and shardings. On a GPU or TPU there is also the measured peak.
#
# `carry` is what a step takes and returns, here the weights. A step without one is `step(batch)`.
#
# The usual mistakes of a benchmark by hand cannot happen here:
#
# - a clock that starts when the batch has already arrived, or stops at the dispatch;
# - `times[5:]` of a run with five batches, which is empty;
# - bytes that count one array only.

# %% [markdown]
# ## Two ways to wait
#
# JAX dispatches a step and returns before it is done. A loop that never reads its results overlaps the input
# with the computation. A loop that prints the loss after every step waits for it, and only then asks for the
# next batch. The benchmark measures the first kind, and with `closed=True` the second one.
#
# The difference is largest for a loader that does its work inside `next`, as this generator does:


# %%
def generator():
    while True:
        rows = rng.permutation(4096)[:256]
        image = pixels[rows][:, ::-1].copy()  # some work on the host
        yield {"image": image, "label": np.zeros(256, np.int32)}


for closed in (False, True):
    print(mf.benchmark(generator(), step, carry=weights, batches=15, closed=closed), end="\n\n")

# %% [markdown]
# On an accelerator, pipelined is close to the larger of the two times, and closed to their sum. On CPU devices
# host and devices share the cores, so the difference is small. A loader of meshfeed prepares the next
# batches on threads of its own in both cases.

# %%
first = mf.benchmark(generator(), step, carry=weights, batches=15)
figure, axes = plt.subplots(figsize=(8, 3))
axes.bar(range(1, 16), 1e3 * np.array(first.seconds), label="the step, and the rest of the loop")
axes.bar(range(1, 16), 1e3 * np.array(first.wait_seconds), label="waiting for the batch")
axes.set(xlabel="batch", ylabel="ms")
axes.legend()
show(figure)
plt.close(figure)

# %% [markdown]
# ## The report
#
# A benchmark needs a run of its own. A report does not: every loader counts as it runs, and `loader.report()`
# says at any time what limits the loop, how much faster it would be without this limit, and what to change.
# `print(loader.report())` at the end of every epoch is enough to notice an input that becomes slow.

# %%
loader, step, weights = make(epochs=6)
for batch in loader:
    weights, loss = step(weights, batch)
    if loader.step % 8 == 0:
        loss.block_until_ready()  # virtual CPU devices hang if dozens of steps are under way
report = loader.report()
show(report)
assert 80 < report.batches < 6 * 16
assert 0 <= report.waited <= 1

# %% [markdown]
# Read it from the top: what share of the time the loop waited, what bounds it, and what to do. The table then
# splits the time of a batch into `wait`, `hand-over` and `step`. The lines below `build` run at the same time on
# other threads. They cost something only if they take longer than the step.
#
# | bound | meaning | what helps |
# | --- | --- | --- |
# | `step` | the loop waits for at most 20 % of the time | make the step faster; if the input costs 5 to 20 % of the time beside it, the report says how to shorten it |
# | `synchronization` | the program waits for the devices in every step | do not read results in every step |
# | `hand-over` | making `jax.Array`s | larger batches, one field for several of equal type and shape |
# | `gather` | copying rows | fewer bytes per row, such as uint8 images; free cores |
# | `decode` | decompressing | files without compression, smaller record batches |
# | `storage` | reading files | a local disk, memory for the files, read-ahead |
# | `process` | another process is late, by its input or its program | its report: `loader.report(all_processes=True)` |
#
# If the loop waits for more than 20 % of the time, the largest part of the input is the bound, even if the step
# takes longer: the input is what these arguments can change.
#
# `report.bound`, `report.action` and `report.change` are for programs, `report.to_dict()` is for a log.

# %% [markdown]
# ## What to change
#
# **Read-ahead.** `prefetch=2` batches are gathered while Python and the devices compute. This hides a steady
# input that is faster than the step. More read-ahead helps only if the input is uneven, for example a network
# disk that sometimes takes ten times as long. It costs host memory, one batch each. `max_host_bytes` bounds the
# memory of all batches.
#
# `device_prefetch=1` sends one batch to a GPU or TPU ahead, so that the transfer overlaps with the step before.
# It costs device memory, one batch each. On CPU it is 0, because nothing is sent.
#
# The column `waited` shows what read-ahead hides. On CPU devices the time of a batch changes little, because the
# thread that prepares batches takes cores from the step.

# %%
prefetched = mf.benchmark.sweep(
    lambda prefetch: make(prefetch=prefetch), {"prefetch": [0, 2, 8]}, batches=30
)
show(prefetched)
assert [point.values["prefetch"] for point in prefetched.points] == [0, 2, 8]
assert all(point.result for point in prefetched.points)

# %% [markdown]
# **Record batches and compression.** A shuffled loader takes single rows from everywhere. From a file without
# compression it copies just these rows, so the size of the record batches does not matter. In a compressed file
# one row costs the decompression of its record batch. A dataset keeps what it decoded last in a cache. This one
# fits into the cache, so that only the first epoch pays. The first batch shows the price. Its 32 rows are from
# about 30 record batches of 16 rows, or from the only one of 4,096 rows:


# %%
def compressed(compression, rows):
    path = f"{compression}-{rows}.arrow"
    feather.write_feather(table, path, compression=compression, chunksize=rows)
    print(
        f"{compression:12} record batches of {rows:4}: {Path(path).stat().st_size / 1e6:.1f} MB in the file"
    )
    return make(path=path, batch_size=32)[0]


files = mf.benchmark.sweep(
    compressed, {"compression": ["uncompressed", "lz4", "zstd"], "rows": [16, 4096]}, batches=16
)
for point in files.points:
    print(
        f"{point.values['compression']:12} {point.values['rows']:4}  first batch {point.result.first_batch_ms:6.1f} ms"
    )

print(mf.open("zstd-4096.arrow"))
assert "encoded" in str(mf.open("zstd-4096.arrow"))
assert "encoded" not in str(mf.open("uncompressed-16.arrow"))

# %% [markdown]
# Write training files with `compression="uncompressed"`. `to_feather` and `write_feather` compress unless they
# get this argument. If the files must be compressed, write small record batches, or read in file order.
#
# **Files.** `mf.open(paths, io="auto")` chooses by the size and the location of the files. `io="map"` maps them into
# memory; all processes of a host then share one copy in the page cache. `io="read"` reads each row from its file,
# which suits network file systems and data that are larger than the memory. There, small rows in shuffled order
# cost much more than their bytes: use larger rows, `order="local"`, or a faster disk.
#
# **Huge pages.** The memory of large batches asks for transparent huge pages. They work if
# `/sys/kernel/mm/transparent_hugepage/enabled` is `madvise` or `always`.
#
# **Threads.** One producer builds the batches of a loader. Leave a free core for every process that feeds
# devices, and take one process per host rather than one per device where you can. `GOMAXPROCS` bounds how many
# threads run the library at a time. It is at least 4 unless you set it; a lower value costs processor time.
#
# `python -m meshfeed doctor data/` prints the facts: file systems, huge pages, limits, cores, versions, and
# what is wrong with them.

# %% [markdown]
# ## A trace
#
# A report gives sums. A trace shows single steps: which batch was late, and what the devices did meanwhile.
# `jax.profiler.trace` writes one that [Perfetto](https://ui.perfetto.dev) and XProf open. This program reads it
# itself.

# %%
loader, step, weights = make(epochs=1)
with jax.profiler.trace("trace"):
    for batch in loader:
        weights, loss = step(weights, batch)
    jax.block_until_ready(weights)

(path,) = Path("trace").rglob("*.xplane.pb")
spans = {}
for plane in jax.profiler.ProfileData.from_file(str(path)).planes:
    for line in plane.lines:
        for event in line.events:
            if event.name.startswith("meshfeed."):
                spans.setdefault(event.name, []).append(event.duration_ns / 1000)
for name, micros in sorted(spans.items()):
    print(
        f"{name:16} {len(micros):3} times, median {np.median(micros):6.0f} µs, longest {max(micros):6.0f} µs"
    )
assert len(spans["meshfeed.next"]) == 16 + 1  # the last one finds the end of the epoch

# %% [markdown]
# - `meshfeed.next` is one `next` of the loop, on the line of your Python thread.
# - `meshfeed.wait` inside it is the wait for a batch that is not ready. If it is long, the input is slow.
# - `meshfeed.arrays` inside it makes the arrays of the batch.
#
# In Perfetto, look at the lines of the devices above a long `meshfeed.wait`. If they compute, nothing is lost.
# If they are empty, the loop waits for data. If they are empty *between* two `next` calls, the program waits for
# something else, such as a `float(loss)`.

# %% [markdown]
# ## More devices
#
# `mf.benchmark.sweep` tries all combinations of values. A point that fails is named, and the others go on. Here
# a batch of 100 rows cannot be split over eight devices:

# %%
scaling = mf.benchmark.sweep(make, {"devices": [1, 2, 4, 8], "batch_size": [100, 256]}, batches=10)
failed = [dict(point.values) for point in scaling.points if point.error]
assert failed == [{"devices": 8, "batch_size": 100}]
shares = [
    point.result.memory["batch"] for point in scaling.points if point.values["batch_size"] == 256
]
assert shares == [256 * 3076 // devices for devices in (1, 2, 4, 8)]

# %%
show(scaling)

# %% [markdown]
# Such a sweep over CPU devices shows that the program runs on any of these meshes. It shows how the memory of a
# device shrinks if the *global* batch stays the same, and what each further device adds to the hand-over.
#
# What it cannot show: scaling. Eight CPU devices of a laptop share the same few cores, so eight are no faster
# than one. They have no transfers and no links. Run the same lines on your accelerators for that, or start with
# `mf.advise`, which computes it. If the batch *per device* stays the same, as it usually does, then the memory of
# a device stays the same, too.
#
# `python -m meshfeed selfcheck` measures transfers and overlap on the devices that JAX sees.

# %% [markdown]
# ## On a cluster
#
# The program has no rank in it, so a launcher has only to start it everywhere. [train.py](../recipes/train.py) is a
# complete one: it continues from the file that it saved. If a process gets a SIGTERM, all save after the same step and
# end with the status 75. JAX's own detection finds coordinator, number of processes and rank.
#
# **Slurm**: [slurm.sh](../recipes/slurm.sh). JAX reads `SLURM_JOB_ID`, `SLURM_STEP_NODELIST`, `SLURM_NTASKS`,
# `SLURM_PROCID` and `SLURM_LOCALID`, which `srun` sets, and takes one GPU per process. `srun
# --wait=60` ends the job a minute after its first process has ended. The time limit sends a SIGTERM five minutes
# early, and the status 75 puts the job back into the queue. With `--kill-on-bad-exit=1`, `srun` would kill the
# processes that end a moment after the first one, and its status can be 137 instead of 75.
#
# ```bash
# srun --kill-on-bad-exit=0 --wait=60 python train.py "$DATA/train-*.arrow" "$SAVED/train" || status=$?
# if [ "$status" -eq 75 ]; then  # saved after a SIGTERM: five minutes before the time limit
#   scontrol requeue "$SLURM_JOB_ID"
# fi
# ```
#
# **Kubernetes with JobSet**: [jobset.yaml](../recipes/jobset.yaml). JAX could ask the Kubernetes API for the
# numbers, which needs a permission for the pods. The recipe gives them by variables instead: the host name
# of the first pod, which JobSet makes from its names, and the index that Kubernetes gives to every pod.
# `maxRestarts` starts all pods again after a failure, also after a status of 75.
#
# ```yaml
# env:
#   - {name: JAX_COORDINATOR_ADDRESS, value: "train-host-0-0.train:55527"}
#   - {name: PROCESSES, value: "2"}
# ```
#
# **TPU slices**: [tpu.sh](../recipes/tpu.sh) starts the program on all hosts of a slice of TPU VMs. In GKE, use
# the JobSet with TPU resources and without the two variables: there JAX reads `TPU_WORKER_HOSTNAMES` and
# `TPU_WORKER_ID`.
#
# ```bash
# gcloud compute tpus tpu-vm ssh "$TPU" --zone="$ZONE" --worker=all \
#   --command='python3 train.py "/data/train-*.arrow" /saved/train'
# ```
#
# To try a job on CPUs, give each process one device, or wait for every step. With several CPU devices per
# process, steps that overlap can wait for each other forever, in the library that CPUs communicate
# through.
#
# Tests run these launch lines with two processes on one machine, with programs that play `srun` and `gcloud`,
# and they stop and continue the Slurm job. No test ran on a real cluster, so try a recipe with a small job first.
# [Jobs of many processes](../jobs.md) says what the processes compare, and how a job ends when one of them fails.

# %%
os.chdir(start)
folder.cleanup()
