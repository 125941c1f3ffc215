# ruff: noqa: E501

# %% [markdown]
# # Coming from another loader
#
# You can translate a program for PyTorch, TensorFlow, Grain, Hugging Face datasets, Datarax, Levanter or
# MaxText.
#
# | level | before you begin | running time | memory |
# | --- | --- | --- | --- |
# | beginner | one of these libraries, a little JAX; `pip install '.[jax,arrow]'` | 6 s | 850 MB |
#
# - [Three questions](#three-questions) · [The data](#the-data) · [The step](#the-step)
# - [PyTorch](#pytorch) · [TensorFlow](#tensorflow) · [Grain](#grain)
# - [Hugging Face datasets](#hugging-face-datasets) · [Datarax](#datarax) · [Levanter and MaxText](#levanter-and-maxtext)
# - [Data far away](#data-far-away) · [Keep your loader](#keep-your-loader) · [Versions](#versions)
#
# The running time and memory above are without PyTorch, TensorFlow and Datarax. If one of the libraries is
# installed, its program runs too, and its batches, losses and weights are compared with ours.
# [Versions](#versions) says which of them ran.

# %% [markdown]
# ## Three questions
#
# A program of many devices answers three questions, and each library answers them in another place. Many
# porting tables mix the questions: they put `DistributedSampler` beside `PartitionSpec`. A sampler says
# which rows a process *reads*; a spec says where bytes *are*.
#
# | question | PyTorch | TensorFlow | Grain | JAX with meshfeed |
# | --- | --- | --- | --- | --- |
# | Which rows does a process read? | `DistributedSampler`, by rank | `Dataset.shard`, `AutoShardPolicy` | `ShardOptions`, by process | nothing to write: it follows from the mesh and the specs |
# | Where are the bytes of a batch? | `.to(device)`; `DataParallel` scatters | per-replica values of the strategy | host memory, until you place them | the `PartitionSpec` of each array |
# | Which code adds up gradients? | `DistributedDataParallel`, `all_reduce` | `Strategy.run` and `reduce` | none | XLA, in your jitted step |
#
# The sizes differ too. `world_size` counts processes. `mesh.shape["data"]` counts the parts of a batch.
# Both are equal only if each process has one device and no axis splits the model.

# %%
import builtins
import functools
import importlib.metadata
import logging
import os
import subprocess
import sys
import tempfile

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf

jax.config.update("jax_num_cpu_devices", 8)

mesh = mf.make_mesh({"data": -1, "model": 2})
print(jax.process_count(), "process,", mesh.size, "devices,", mesh.shape["data"], "parts")
assert (jax.process_count(), mesh.size, mesh.shape["data"]) == (1, 8, 4)


def show(x):
    """Draws a layout, as a picture in a notebook and as text elsewhere."""
    getattr(builtins, "display", print)(x)


distributions = importlib.metadata.packages_distributions()


@functools.cache
def installed(name):
    """Returns whether a library is installed, and prints its version, or that it is not installed."""
    found = name in distributions
    print(
        f"{name} {importlib.metadata.version(distributions[name][0])}"
        if found
        else f"skipped: {name} is not installed"
    )
    return found


# %% [markdown]
# ## The data
#
# 1,024 images in memory. The label of a record is its number, so a batch shows which rows it has. `compare`
# takes the batches of two loaders, and fails if a value differs.

# %%
images = np.random.default_rng(0).random((1024, 32, 32, 3), np.float32)
data = {"image": images, "label": np.arange(1024, dtype=np.int32)}
ds = mf.from_arrays(data)


def compare(ours, theirs):
    """Compares two sequences of batches, and returns how many there are."""
    count = 0
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.keys() == other.keys()
        for name, array in mine.items():
            np.testing.assert_array_equal(np.asarray(array), np.asarray(other[name]))
        count += 1
    return count


def labels(steps):
    """Returns the sorted labels of each step, for the batches of any number of processes."""
    return [sorted(np.concatenate([batch["label"] for batch in parts])) for parts in steps]


# %% [markdown]
# A name of another library is an error that says what to write here:

# %%
for typed in (lambda: ds.repeat(2), lambda: mf.Loader(ds, batch_size=256, num_workers=4)):
    try:
        typed()
        raise AssertionError("no such name")
    except (AttributeError, TypeError) as error:
        print(error)

# %% [markdown]
# ## The step
#
# The loop below is the whole program for every library in this guide. It replaces the sampler, the loader,
# the wrapper of the model and the exchange of gradients.

# %%
start = np.full(32 * 32 * 3, 0.01, np.float32)


@jax.jit
def step(weights, batch):
    """Averages over the global batch, and takes one step of gradient descent."""

    def loss(w):
        return ((batch["image"].reshape(len(batch["label"]), -1) @ w) ** 2).mean()

    value, gradient = jax.value_and_grad(loss)(weights)
    return weights - 1e-4 * gradient, value


def train(mesh, **order):
    """Trains for one epoch of four batches, and returns the weights and the losses."""
    weights, losses = jax.device_put(start, NamedSharding(mesh, P())), []
    with mf.Loader(ds, mesh, P("data"), batch_size=256, **order) as loader:
        for batch in loader:
            weights, loss = step(weights, batch)
            losses.append(float(loss))
    return np.asarray(weights), losses


on_one, _ = train(mf.make_mesh({"data": 1}, devices=jax.devices()[:1]), shuffle=True, seed=0)
on_eight, _ = train(mesh, shuffle=True, seed=0)
np.testing.assert_allclose(on_one, on_eight, rtol=1e-4)

weights, losses = train(mesh)  # in the order of the data, to compare with the other libraries
print("losses:", *(f"{loss:.1f}" for loss in losses))
batch = mf.put({name: array[:256] for name, array in data.items()}, mesh, P("data"))
program = step.lower(jax.device_put(start, NamedSharding(mesh, P())), batch).compile().as_text()
print("XLA's program has an all-reduce:", "all-reduce" in program)
assert losses == sorted(losses, reverse=True)
assert "all-reduce" in program

# %% [markdown]
# `mean()` is the mean of the *global* batch. XLA sees that its rows are on four groups of devices, and
# inserts the all-reduce. You write no communication, and the weights come out as on one device.

# %% [markdown]
# ## PyTorch
#
# | PyTorch | JAX with meshfeed |
# | --- | --- |
# | `torch.distributed.init_process_group` | `jax.distributed.initialize()` |
# | `world_size`, `rank` | nothing: no loader takes them; `jax.process_count()`, `jax.process_index()` for your logs |
# | `DataParallel(model)`, one process that scatters each batch | nothing: one process with a mesh of its devices |
# | `DistributedDataParallel(model)` | nothing: `jax.jit` of a step over sharded batches |
# | `dist.all_reduce(x)` of a gradient or a loss | nothing: a sum over the global batch is global |
# | `dist.barrier()` | `jax.experimental.multihost_utils.sync_global_devices(name)`, if you need one |
# | `DistributedSampler(dataset, num_replicas, rank)` | nothing: rows follow from the mesh and the spec |
# | `DistributedSampler(shuffle=True, seed=s)` | `shuffle=True, seed=s` |
# | `sampler.set_epoch(epoch)` | nothing: every epoch has an order of its own |
# | `DistributedSampler(drop_last=False)`, which repeats records to fill up | `remainder="pad"`, zeros and a mask |
# | `drop_last=True` | `remainder="drop"`, the default |
# | `DataLoader(batch_size=b)`, rows per process | `batch_size=B`, rows of the global batch; `b * mesh.shape["data"]` |
# | `num_workers`, `multiprocessing_context`, `worker_init_fn` | nothing: rows are gathered by threads in the library |
# | `persistent_workers`, `generator` | nothing: there are no workers, and `seed=` sets the order |
# | `prefetch_factor` | `prefetch=`, in batches |
# | `pin_memory=True` and `.to(device)` | nothing: batches arrive on their devices |
# | `collate_fn` | nothing: rows of fixed shape; several arrays from a field with `mf.Array` |
# | `Subset(dataset, range(a, b))`, `ConcatDataset` | `ds.slice(a, b)`; `mf.open` of several files |
# | `random_split(dataset, [0.9, 0.1])` | `ds.split({"train": 0.9, "test": 0.1}, seed=0)` |
# | `next(iter(dataloader))`, to look at a sample | `loader.peek()`, in any process, alone |
# | `torchvision.datasets.ImageFolder(root)`, `.classes` | `mf.open(root, images=True)`, `ds.schema["label"].names` |
# | `StatefulDataLoader.state_dict()` of `torchdata`, one per rank | `loader.state_dict()`, one for the job |
# | `load_state_dict(state)`, on as many ranks and workers | `load_state_dict(state)` or `state=`, on any mesh |
#
# Before, a program for every process. With PyTorch installed, the next cell runs two of them on the CPU:

# %%
TORCH = """
import sys

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

folder, rank = sys.argv[1], int(sys.argv[2])
dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)

arrays = np.load(f"{folder}/data.npz")
dataset = TensorDataset(torch.from_numpy(arrays["image"]), torch.from_numpy(arrays["label"]))
sampler = DistributedSampler(dataset, shuffle=False)
loader = DataLoader(dataset, batch_size=128, sampler=sampler, drop_last=True)

model = torch.nn.Linear(32 * 32 * 3, 1, bias=False)
torch.nn.init.constant_(model.weight, 0.01)
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

rows, losses = [], []
for epoch in range(1):
    sampler.set_epoch(epoch)
    for image, label in loader:
        loss = (model(image.flatten(1)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss := loss.detach())
        losses.append(loss.item() / dist.get_world_size())
        rows.append(label.numpy())

weights = model.module.weight.detach().numpy()[0]
np.savez(f"{folder}/rank{rank}.npz", weights=weights, losses=losses, rows=rows)
dist.destroy_process_group()
"""

if installed("torch"):
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/data.npz", **data)
        command = [sys.executable, "-c", TORCH, folder]
        ranks = [subprocess.Popen([*command, str(rank)]) for rank in range(2)]
        try:
            assert [rank.wait(timeout=300) for rank in ranks] == [0, 0]
        finally:  # a rank that is left alone waits for half an hour
            for rank in ranks:
                rank.kill()
                rank.wait()
        for rank in range(2):
            saved = np.load(f"{folder}/rank{rank}.npz")
            np.testing.assert_allclose(saved["losses"], losses, rtol=1e-4)
            np.testing.assert_allclose(saved["weights"], weights, rtol=1e-4)
            for number, seen in enumerate(saved["rows"]):  # every second record
                assert seen.tolist() == list(range(256 * number + rank, 256 * (number + 1), 2))
    print("equal losses and weights after", len(losses), "steps of DistributedDataParallel")

# %% [markdown]
# After: `train` of [the step](#the-step), in every process of any number. In a job of several processes, call
# `jax.distributed.initialize()` first. The losses and weights are the same, and so are the rows of each
# global batch. `DistributedDataParallel` sends its gradients while it still computes others, as XLA may do
# too. Its `DataLoader` runs Python in worker processes; `ds.map` runs it in threads.
#
# A loop that stops and continues on another mesh, with half the batch:

# %%
run = {"shuffle": True, "seed": 0, "epochs": 3}
with mf.Loader(ds, mesh, P("data"), batch_size=256, **run) as loader:
    assert len(loader) == 3 * 4
    for count, _batch in enumerate(loader, 1):
        if count == 5:
            saved = loader.state_dict()

pair = mf.make_mesh({"data": 2}, devices=jax.devices()[:2])  # another mesh, and half the batch
with mf.Loader(ds, pair, P("data"), batch_size=128, **run) as loader:
    loader.load_state_dict(saved)
    print("continues at step", loader.step, "of epoch", loader.epoch)
    assert (loader.epoch, loader.step) == (1, 2)

# %% [markdown]
# The trap: with a `DataLoader` of `batch_size=b` on every rank, the global batch grows with the number of
# ranks. Records go to ranks in turn, so the same global batch has its rows in another order. Here
# `batch_size` and the order stay the same on every mesh. `DataParallel` scatters one batch to GPUs from one
# process; without a GPU it calls the model. The next cell plays four ranks:

# %%
if installed("torch"):
    import torch
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    dataset = TensorDataset(*map(torch.from_numpy, data.values()))

    def torch_batches(batch_size, sampler=None):
        """Yields the batches of one rank as NumPy arrays."""
        for image, label in DataLoader(dataset, batch_size, sampler=sampler, drop_last=True):
            yield {"image": image.numpy(), "label": label.numpy()}

    with mf.Loader(ds, mesh, P("data"), batch_size=256) as loader:
        print(compare(loader, torch_batches(256)), "equal batches of one process")

    ranks = [DistributedSampler(dataset, 4, rank, shuffle=False) for rank in range(4)]
    first = [next(torch_batches(64, sampler))["label"] for sampler in ranks]
    print("rows of rank 1:", first[1][:4], "…")
    assert first[1][:4].tolist() == [1, 5, 9, 13]
    assert sorted(np.concatenate(first)) == list(range(256))  # the same set of rows as batch 0

    linear = torch.nn.Linear(3, 1)
    rows = torch.ones(4, 3)
    if not torch.cuda.is_available():
        assert torch.equal(torch.nn.DataParallel(linear)(rows), linear(rows))

    if installed("torchdata"):
        from torchdata.stateful_dataloader import StatefulDataLoader

        stateful = StatefulDataLoader(dataset, 256)
        next(iter(stateful))
        resumed = StatefulDataLoader(dataset, 256)
        resumed.load_state_dict(stateful.state_dict())
        with mf.Loader(ds, mesh, P("data"), batch_size=256) as loader:
            loader.seek(epoch=0, position=256)  # as load_state_dict of a saved state
            theirs = ({"image": image, "label": label} for image, label in resumed)
            print(compare(loader, theirs), "equal batches after a restore")

    uneven = [list(DistributedSampler(range(1000), 3, r, shuffle=False)) for r in range(3)]
    assert sum(map(len, uneven)) == 1002  # 1,000 records: two are repeated

# %% [markdown]
# ## TensorFlow
#
# | TensorFlow | JAX with meshfeed |
# | --- | --- |
# | `tf.distribute.MirroredStrategy()` | `mf.make_mesh({"data": -1})` |
# | `strategy.scope()`, which makes mirrored variables | nothing: weights are arrays with the sharding `P()` |
# | `strategy.run(fn, args=(batch,))` | a call of the jitted function with the global batch |
# | `strategy.reduce("SUM", values, axis=None)` | `sum()` inside the jitted function; the result is global |
# | `strategy.num_replicas_in_sync` | `mesh.shape["data"]` |
# | `strategy.experimental_distribute_dataset(dataset)` | `mf.Loader(ds, mesh, specs, batch_size=B)` |
# | `strategy.distribute_datasets_from_function(fn)` | the same |
# | `Dataset.shard(num_shards, index)` | nothing: rows follow from the mesh and the spec |
# | `InputContext.input_pipeline_id`, `num_input_pipelines` | nothing |
# | `InputContext.get_per_replica_batch_size(B)` | nothing: `batch_size=B` is global |
# | `tf.data.Options().experimental_distribute.auto_shard_policy`: `FILE`, `DATA`, `OFF` | nothing: files need not be as many as hosts |
# | `.shuffle(buffer_size, seed)` | `shuffle=True, seed=s`, over all records; no buffer |
# | `.shuffle(reshuffle_each_iteration=True)` | nothing: every epoch has an order of its own |
# | `.batch(b, drop_remainder=True)` | `remainder="drop"`, the default |
# | `.repeat(n)` | `epochs=n`; `epochs=-1` has no end |
# | `.prefetch(tf.data.AUTOTUNE)` | `prefetch=2`, the default |
# | `tf.train.Checkpoint(iterator=it)`, with the buffers in it | `loader.state()`, under 256 bytes |
# | `tf.data.TFRecordDataset(files).map(parse)`, `tfds.load(…)` | `mf.open("train.tfrecord-*")`, or the directory with `split="train"` |
# | `.map(fn)`, `.filter(fn)` | `ds.map(fn)`, `ds.filter(fn)`: functions of several rows, in NumPy |
#
# Before, with TensorFlow installed, on two virtual CPUs. The sum of the changes of both replicas is
# TensorFlow's all-reduce. After: `train` of [the step](#the-step), with the same losses and weights.

# %%
if installed("tensorflow"):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    cpu = tf.config.list_physical_devices("CPU")[0]
    two = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, two)

    rows = tf.data.Dataset.from_tensor_slices(data)
    batches = rows.batch(256, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        variable = tf.Variable(start, aggregation=tf.VariableAggregation.SUM)

    def replica_step(batch):
        """Takes one step in one replica, and returns its part of the loss."""
        with tf.GradientTape() as tape:
            flat = tf.reshape(batch["image"], (-1, 32 * 32 * 3))
            loss = tf.reduce_sum(tf.linalg.matvec(flat, variable) ** 2) / 256  # the global batch
        variable.assign_sub(1e-4 * tape.gradient(loss, variable))
        return loss

    @tf.function
    def global_step(batch):
        """Runs a step in every replica, and adds up the loss."""
        return strategy.reduce("SUM", strategy.run(replica_step, args=(batch,)), axis=None)

    distributed = strategy.experimental_distribute_dataset(batches)
    np.testing.assert_allclose([float(global_step(b)) for b in distributed], losses, rtol=1e-4)
    np.testing.assert_allclose(variable.numpy(), weights, rtol=1e-4)
    print("equal losses and weights after", len(losses), "steps of MirroredStrategy")

    with mf.Loader(ds, mesh, P("data"), batch_size=256) as loader:
        print(compare(loader, batches.as_numpy_iterator()), "equal batches")
    for batch in distributed:  # each replica has half of the rows, in order
        first, second = strategy.experimental_local_results(batch["label"])
        assert int(first[-1]) + 1 == int(second[0])

    part = [int(row["label"]) for row in rows.shard(4, 1).take(4)]
    assert part == [1, 5, 9, 13]  # every fourth record, whatever the mesh is

# %% [markdown]
# The trap: `experimental_distribute_dataset` rebatches for replicas, and does not know a model axis across
# hosts. `shard` before `shuffle` shuffles within each host's part only. What tf.data does and meshfeed does
# not: readers of many formats and stores, and buffers that it tunes by itself. [Images and functions](transforms.py#names-of-other-libraries) have
# tables for all of these libraries.

# %% [markdown]
# ## Grain
#
# | Grain | JAX with meshfeed |
# | --- | --- |
# | `grain.sharding.ShardByJaxProcess()`, `ShardOptions(shard_index, shard_count)` | nothing: rows follow from the mesh and the spec |
# | `grain.sharding.NoSharding()` and `jax.device_put` | `loading="global"`, which is rarely needed |
# | `grain.samplers.IndexSampler(num_records, shard_options, shuffle, num_epochs, seed)` | `shuffle=True, seed=s, epochs=n` |
# | `MapDataset.source(s)[jax.process_index()::jax.process_count()]` | `mf.open(...)`, not sliced |
# | `.shuffle(seed).repeat(n).batch(b, drop_remainder=True)` | `shuffle=True, seed=s, epochs=n, batch_size=B` |
# | `.to_iter_dataset(grain.ReadOptions(num_threads, prefetch_buffer_size))` | `prefetch=` |
# | `.mp_prefetch(grain.MultiprocessingOptions(num_workers))` | nothing: no worker processes |
# | `jax.make_array_from_process_local_data` after it | nothing: batches are global arrays; for Grain's batches, [`mf.place_batches`](#keep-your-loader) |
# | `iterator.get_state()`, `set_state(state)`, one per process | `loader.state()`, `restore(state)`, one for the job |
# | `grain.experimental.ElasticIterator(ds, global_batch_size, shard_options)` | every loader |
# | `grain.experimental.BestFitPackIterDataset`, `ConcatThenSplitIterDataset` | `ds.pack(field, length=n)`, with `method="split"`; `{key}_segment_ids` is `segment_ids` |
# | `MapDataset.mix(datasets, weights)`, `DatasetSelectionMap` | `mf.mix(datasets, weights)`, with `schedule=` for weights that change |
# | `.map(fn)`, `.random_map(fn)` | `ds.map(fn)`, with `with_keys=True` for random choices; `fn` gets several rows |
#
# Before: `grain_part` is what each process runs, and `jax.make_array_from_process_local_data` makes a global
# array of its batches. After: a loader. The parts of four processes are the rows of the same batches, with
# and without a shuffle:

# %%
if installed("grain"):
    import grain

    class Source:
        """The records for Grain, one dict per record."""

        def __len__(self):
            return len(ds)

        def __getitem__(self, record):
            return {name: array[record] for name, array in data.items()}

    def grain_part(index, count, shuffle):
        """Yields the batches of one process."""
        rows = grain.MapDataset.source(Source()).seed(0)
        rows = rows.shuffle() if shuffle else rows
        yield from rows[index::count].batch(256 // count, drop_remainder=True).to_iter_dataset()

    with mf.Loader(ds, mesh, P("data"), batch_size=256) as loader:
        print(compare(loader, grain_part(0, 1, shuffle=False)), "equal batches")
        ours = labels([batch] for batch in loader)
    for shuffle in (False, True):
        four = labels(zip(*(grain_part(i, 4, shuffle) for i in range(4)), strict=True))
        assert four == labels(zip(grain_part(0, 1, shuffle), strict=True))
        assert (four == ours) == (not shuffle)  # each library shuffles in its own way
        assert sorted(np.concatenate(four)) == list(range(1024))

# %% [markdown]
# Grain's `ElasticIterator` continues with another number of processes and another batch, as every loader
# here does. It takes the batching and the shards over, and refuses filters. What Grain does and meshfeed
# does not: worker processes, for functions that hold Python's lock.

# %%
if installed("grain"):

    def elastic(batch_size, index, count):
        """Returns Grain's elastic iterator of one process."""
        options = grain.sharding.ShardOptions(index, count, drop_remainder=True)
        rows = grain.MapDataset.source(Source())
        return iter(grain.experimental.ElasticIterator(rows, batch_size, options))

    four = [elastic(256, index, 4) for index in range(4)]
    for _ in range(2):
        before = [next(part)["label"] for part in four]
    two = [elastic(128, index, 2) for index in range(2)]
    for part in two:
        part.set_state(four[0].get_state())
    after = sorted(np.concatenate([next(part)["label"] for part in two]))

    with mf.Loader(ds, mesh, P("data"), batch_size=256) as loader:
        ours = [batch["label"].tolist() for _, batch in zip(range(2), loader, strict=False)]
        state = loader.state()
    with mf.Loader(ds, mesh, P("data"), batch_size=128, state=state) as loader:
        continued = next(iter(loader))["label"].tolist()
    assert sorted(np.concatenate(before)) == ours[1]
    assert after == continued == list(range(512, 640))
    print("rows", continued[0], "to", continued[-1], "come next, in both")

# %% [markdown]
# Now four processes of two devices each, and a copy of the model that spans two processes. Processes 0 and
# 2 hold the same rows, and so do 1 and 3. Grain gives each process rows of its own, because it knows the
# process and not the mesh:

# %%
plan = mf.layout({"model": 2, "data": 4}, P("data"), ds, batch_size=256, processes=4)
needed = [process["rows"] for process in plan.report()["processes"]]
print("needed:  ", needed)
assert needed == [[[0, 128]], [[128, 256]], [[0, 128]], [[128, 256]]]

if installed("grain"):
    shards = []
    for index in range(4):
        options = grain.sharding.ShardOptions(shard_index=index, shard_count=4, drop_remainder=True)
        sampler = grain.samplers.IndexSampler(len(ds), options, num_epochs=1)
        shards.append([sampler[index + 4 * i].record_key for i in range(256)])
    print("by shard:", [[min(records), max(records) + 1] for records in shards])
    assert shards == [list(range(256 * index, 256 * index + 256)) for index in range(4)]

# %% [markdown]
# JAX raises no error if these rows become one array. [From one process to
# many](distributed.py#the-bug-that-jax-cannot-notice) shows what happens then.

# %% [markdown]
# ## Hugging Face datasets
#
# | Hugging Face datasets | JAX with meshfeed |
# | --- | --- |
# | `dataset.save_to_disk(folder)`, `load_from_disk(folder)` | `mf.open(folder)` reads that folder |
# | a dataset in memory, also shuffled, filtered, concatenated | `mf.from_arrow(dataset)` |
# | `dataset.with_format("jax", device=str(d))`, arrays on one device | `mf.Loader`: global arrays on a mesh |
# | `dataset.with_format("numpy").iter(batch_size=b)` | `mf.Loader(ds, batch_size=b)`: NumPy, without JAX |
# | `dataset.shuffle(seed=s)` before each epoch, then `flatten_indices()` | `shuffle=True, seed=s` |
# | `datasets.distributed.split_dataset_by_node(dataset, rank, world_size)` | nothing: rows follow from the mesh and the spec |
# | `IterableDataset.state_dict()`, without the shuffle buffer | `loader.state()`: any position, the exact order |
# | `features`: `Array2D` to `Array5D`, fixed-size `Sequence` | fields with a fixed shape |
# | `Sequence` of varying length, text | `ds.pad("tokens", length=2048)` |
# | `Image` | `ds.decode_image("image", size=(224, 224))` |
# | `Audio` | encoded bytes, for [a function](transforms.py#9-audio) that decodes them |
# | `ClassLabel(names=…)` | `ds.schema["label"].names` |
# | `load_dataset("…", streaming=True)`, `hf://` | `mf.open("hf://datasets/ORG/NAME/data", split="train")` for files of Parquet, Arrow, JSON Lines or WebDataset |
# | `.map(fn, batched=True)` | `ds.map(fn)`, ahead of the step; `ds.map(fn, key=…).cache()` computes once |
# | `.set_transform(fn)`, `.with_transform(fn)` | `ds.map(fn)` |
#
# The library writes Arrow files, and maps them into memory; so does meshfeed. Before: `hugging_face`, in
# every process. After: a loader of the folder. `split_dataset_by_node` gives each process one contiguous
# part, so four processes read the same records in an epoch, in other global batches:

# %%
if installed("datasets"):
    import datasets
    from datasets.distributed import split_dataset_by_node

    def hugging_face(dataset, rank, world_size):
        """Yields the batches of one process."""
        part = split_dataset_by_node(dataset, rank, world_size).with_format("numpy")
        yield from part.iter(batch_size=256 // world_size, drop_last_batch=True)

    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory() as folder:
        features = datasets.Features(
            image=datasets.Array3D((32, 32, 3), "float32"), label=datasets.Value("int32")
        )
        corpus = datasets.Dataset.from_dict(data, features=features)
        corpus.save_to_disk(folder)
        with mf.open(folder) as files, mf.Loader(files, mesh, P("data"), batch_size=256) as loader:
            print(compare(loader, hugging_face(corpus, 0, 1)), "equal batches from a", files)

            ours = labels([batch] for batch in loader)
            four = labels(zip(*(hugging_face(corpus, rank, 4) for rank in range(4)), strict=True))
            assert four[0] == [*range(64), *range(256, 320), *range(512, 576), *range(768, 832)]
            assert four != ours
            assert sorted(np.concatenate(four)) == sorted(np.concatenate(ours))

    batch = next(corpus.with_format("jax").iter(batch_size=256))
    assert len(batch["image"].devices()) == 1

# %% [markdown]
# What Hugging Face datasets does and meshfeed does not: it reads CSV, runs scripts of a repository, and decodes audio. Its
# streams know their position since `IterableDataset.state_dict`, except for the rows in a shuffle buffer.

# %% [markdown]
# ## Datarax
#
# Datarax has a quick reference and a guide on sharding. Each of their blocks is here in the same order, first
# as it is there and then with meshfeed.
#
# | Datarax | JAX with meshfeed |
# | --- | --- |
# | `MemorySource(config, data)`, `len(source)` | `mf.from_arrays(data)`, `len(ds)` |
# | `from_source(source, batch_size=128)`, `Pipeline(source=, stages=[], batch_size=, rngs=)` | `mf.Loader(ds, mesh, specs, batch_size=128)` |
# | `rngs=nnx.Rngs(0)` | `seed=0`; `extras=("key",)` for a random key per record |
# | `stages=[...]` | none: do this in your step; [the guide](../guide.md#randomness-per-record) has a key per record |
# | `with mesh:` around the loop, which JAX deprecates | nothing: batches know their mesh |
# | `jax.device_put(batch["image"], sharding)` | nothing: batches arrive on their devices |
# | `ArraySharder`, `JaxProcessSharderModule` | nothing: rows follow from the mesh and the spec |
# | `use_sharding = len(devices) >= 2` | nothing: one device is a mesh of size one |
# | `create_sharded_pipeline(source, mesh, per_device)` | `mf.Loader(ds, mesh, specs, batch_size=per_device * mesh.shape["data"])` |
# | `benchmark_sharding(pipeline, mesh, num_batches, warmup)` | `mf.benchmark(loader, step, batches=50, warmup=5)` |
# | `handle_uneven_batches(batch, mesh, target)` | `remainder="pad"` |
# | `prefetch_to_device` | `device_prefetch=` |
# | `pipeline.step()`, `pipeline.scan(step_fn)` | none: batches come from the host, and the loop is yours |
# | its mesh patterns "data", "model" and "hybrid" | `mf.make_mesh` with these axes: [mesh patterns](quick_reference.py#9-mesh-patterns) |
#
# **Quick reference, steps 1 to 4.** Before: a check of the device count, a mesh, a sharding for each array, and
# `device_put` of each. After: a loader. The check is not needed, because a mesh of one device runs the same code:

# %%
if installed("datarax"):
    from datarax.pipeline import Pipeline
    from datarax.sources import MemorySource, MemorySourceConfig
    from flax import nnx

    def datarax(batch_size, shuffle=False):
        """Yields the batches of one epoch."""
        source = MemorySource(MemorySourceConfig(shuffle=shuffle), data, rngs=nnx.Rngs(0))
        pipeline = Pipeline(source=source, stages=[], batch_size=batch_size, rngs=nnx.Rngs(0))
        for _, batch in zip(range(len(source) // batch_size), pipeline, strict=False):
            yield dict(batch)


def datarax_sharded(devices):
    """Yields batches of Datarax that are split over devices, as its quick reference does."""
    if len(devices) < 2:
        yield from datarax(128)
        return
    over_all = Mesh(np.array(devices), ("data",))
    on_batch = NamedSharding(over_all, P("data", None, None, None))
    for batch in datarax(128):
        image = jax.device_put(batch["image"], on_batch)
        label = jax.device_put(batch["label"], NamedSharding(over_all, P("data")))
        yield {"image": image, "label": label}


for count in (1, 2, 8):
    some = mf.make_mesh({"data": -1}, devices=jax.devices()[:count])
    specs = {"image": P("data", None, None, None), "label": P("data")}
    with mf.Loader(ds, some, specs, batch_size=128) as loader:
        for _, batch in zip(range(2), loader, strict=False):
            rows = batch["image"].addressable_shards[0].data.shape[0]
        print(count, "devices:", rows, "rows each,", batch["image"].sharding.spec)
        assert rows == 128 // count
        assert batch["image"].sharding.spec == specs["image"]
    if installed("datarax"):
        with mf.Loader(ds, some, specs, batch_size=128) as loader:
            print(compare(loader, datarax_sharded(jax.devices()[:count])), "equal batches")

# %% [markdown]
# **Guide, part 1: specs.** The guide splits three color channels over two devices, which no library can do.
# Before: JAX says so when a batch arrives. After: meshfeed says so before anything runs.

# %%
on_batch, replicated, on_channels = P("data"), P(), P(None, None, None, "model")
for spec in (on_batch, replicated, on_channels):
    layout = mf.layout({"data": 4, "model": 2}, {"image": spec}, ds, batch_size=256)
    errors = [problem for problem in layout.check() if problem.severity == "error"]
    print(spec, "->", *(errors or [layout.report()["arrays"]["image"]["shard_shape"]]))
    assert bool(errors) == (spec == on_channels)

try:
    jax.device_put(images[:256], NamedSharding(mesh, on_channels))
    raise AssertionError("3 channels do not divide by 2")
except ValueError as error:
    print("JAX:", error)

# %% [markdown]
# **Part 2: meshes.** Before: `reshape(2, 2)`, which fails for every count except four. After: any count that two
# divides, and an error names the sizes that do.

# %%
try:
    Mesh(np.array(jax.devices()).reshape(2, 2), ("data", "model"))
    raise AssertionError("8 devices are not 2 by 2")
except ValueError as error:
    print("before:", error)

assert mf.make_mesh({"data": -1, "model": 2}).shape == {"data": 4, "model": 2}
try:
    mf.make_mesh({"data": -1, "model": 3})
    raise AssertionError("8 devices do not divide by 3")
except mf.InvalidArgumentError as error:
    print("after:", error)

# %% [markdown]
# **Part 3: a pipeline with a batch per device.** The batch is split over the axis "data" and not over all
# devices. So the total is a multiple of that axis. Before: a function that returns a pipeline and a sharding,
# and a loop that places each array. After: one argument.


# %%
def datarax_part_3(mesh, per_device):
    """Yields batches with so many rows per device, as the guide does."""
    for batch in datarax(per_device * mesh.shape["data"]):
        yield {name: jax.device_put(batch[name], NamedSharding(mesh, P("data"))) for name in batch}


with mf.Loader(ds, mesh, P("data"), batch_size=64 * mesh.shape["data"]) as loader:
    batch = loader.peek()
    show(loader.layout)
    if installed("datarax"):
        print(compare(loader, datarax_part_3(mesh, 64)), "equal batches")
assert batch["image"].shape == (256, 32, 32, 3)
assert batch["image"].addressable_shards[0].data.shape == (64, 32, 32, 3)

# %% [markdown]
# **Part 4: measure.** Before: a clock that starts after the batch has arrived, so it measures `device_put` alone.
# After: `mf.benchmark` counts the wait for the batch and the step, and waits for the devices where it has to. It
# takes any iterable, so it measures both:

# %%
device_weights = jax.device_put(start, NamedSharding(mesh, P()))
options = {"carry": device_weights, "batches": 10, "warmup": 2}
with mf.Loader(ds, mesh, P("data"), batch_size=256) as loader:
    measured = mf.benchmark(loader, step, closed=True, **options)
print(measured)
assert (measured.batches, measured.warmup) == (10, 2)

if installed("datarax"):
    options |= {"batches": 6, "warmup": 2}  # an epoch of 128 rows has 8 batches
    print(mf.benchmark(datarax_part_3(mesh, 32), step, closed=True, **options))

# %% [markdown]
# **Part 5: uneven batches.** Before: padding to a multiple of the device count. That is a new shape, so JAX
# compiles again. The result has an integer instead of a mask, and only if there was padding. After: all
# shapes stay, and every batch has a boolean mask:

# %%
last = {name: array[768:1000] for name, array in data.items()}  # 232 rows
padding = -len(last["label"]) % jax.device_count()
before = np.pad(last["image"], [(0, padding), (0, 0), (0, 0), (0, 0)])
print("before:", before.shape)

with mf.Loader(ds.slice(0, 1000), mesh, P("data"), batch_size=256, remainder="pad") as loader:
    batches = list(loader)
shapes = {(batch["image"].shape, batch["valid"].shape) for batch in batches}
real = sum(int(batch["valid"].sum()) for batch in batches)
print("after: ", *shapes, "with", real, "real rows in all")
assert before.shape == (232, 32, 32, 3)
assert (shapes, real) == ({((256, 32, 32, 3), (256,))}, 1000)
np.testing.assert_array_equal(batches[-1]["image"][:232], last["image"])

# %% [markdown]
# **Randomness.** A shuffled epoch of Datarax 0.1.4 draws a new order for each batch, so it repeats some records
# and leaves out others. What Datarax does and meshfeed does not: stages with weights, an epoch in one program
# of XLA, and augmentation on the devices as part of the pipeline.

# %%
if installed("datarax"):
    seen = {int(row) for batch in datarax(128, shuffle=True) for row in batch["label"]}
    print(f"a shuffled epoch of Datarax visits {len(seen)} of 1,024 records")

with mf.Loader(ds, batch_size=128, shuffle=True) as loader:
    seen = {int(row) for batch in loader for row in batch["label"]}
    print(f"a shuffled epoch of meshfeed visits {len(seen)} of 1,024 records")
assert len(seen) == 1024

# %% [markdown]
# ## Levanter and MaxText
#
# Levanter asks the sharding which rows each device needs, as meshfeed does. It stops at whole rows, and
# stacks examples in Python. MaxText's processes load parts of each batch by their numbers. They form an array
# that is split over all axes of the mesh, and `jax.device_put` moves it to the sharding of the model.
#
# | Levanter, MaxText | JAX with meshfeed |
# | --- | --- |
# | Levanter's `DataLoader(data, batch_size, mesh, axis_resources)` | `mf.Loader(ds, mesh, specs, batch_size=B)`; specs may also split the inside of a row |
# | Levanter's TensorStore cache of tokens | Arrow files: [the cookbook](../cookbook.md#tokens-from-hugging-face) writes them |
# | Levanter's state, the number of the step | `loader.state()`; the batch size may change as well |
# | Levanter's padding with zeros | `remainder="pad"`, zeros and a mask |
# | MaxText's batch over all axes, moved before the step | the default, which moves nothing; or `loading="reshard"` and `loader.reshard(batch)` in the step |
# | MaxText's `dataset_type`: `grain`, `hf`, `tfds` | Arrow and Parquet files |
# | MaxText's `grain_use_elastic_iterator` | every loader |
# | MaxText's `packing`, with `targets_segmentation` and `targets_position` | `ds.pack`, and `rename` for other names; it resumes on any process count |
# | mixtures with stages of weights | `mf.mix`, with `schedule=` |
# | batch-size schedules | none: `restore` continues with another batch size |
#
# What both do and meshfeed does not: they train whole models on large TPU slices, where meshfeed has never
# run. Both can also change the batch size on a schedule.

# %% [markdown]
# What Levanter does for a batch, in plain JAX: each device asks for its index, and the rows of it are
# stacked. What MaxText does: the batch arrives split over all axes, and is moved. All three
# deliver the same batches.

# %%
sharding = NamedSharding(mesh, P("data"))


def levanter():
    """Yields batches with their rows stacked one by one, for every device."""
    for start in range(0, 1024, 256):
        batch = {}
        for name, array in data.items():

            def part(index, array=array, start=start):
                return np.stack([array[start + row] for row in range(*index[0].indices(256))])

            shape = (256, *array.shape[1:])
            batch[name] = jax.make_array_from_callback(shape, sharding, part)
        yield batch


def moved(batch):
    """Moves a batch, as MaxText's loader does before each step."""
    return jax.device_put(batch, sharding)


with mf.Loader(ds, mesh, P("data"), batch_size=256) as loader:
    print(compare(loader, levanter()), "equal batches")
spread = P(("data", "model"))
with (
    mf.Loader(ds, mesh, P("data"), batch_size=256) as loader,
    mf.Loader(ds, mesh, spread, batch_size=256) as over_all,
):
    print(compare(loader, map(moved, over_all)), "equal batches")

# %% [markdown]
# Both ways, as plans of four processes. "process" reads what the devices need, and some rows in two processes.
# "reshard" reads each row once in the whole job, as MaxText does, and sends the rest over the network in every
# step:

# %%
for loading in ("process", "reshard"):
    axes = {"copies": 2, "data": 2, "model": 2}
    plan = mf.layout(axes, P("data"), ds, batch_size=256, processes=4, loading=loading)
    report = plan.report()
    read = sum(process["bytes_per_step"] for process in report["processes"])
    sent = report["totals"]["network_bytes"]
    print(f"{loading:8} reads {read:>9,} bytes and sends {sent:>9,} in a step")
    assert (sent > 0) == (loading == "reshard")

# %% [markdown]
# ## Data far away
#
# Before: a stream, a mount, or files that fsspec opens. [The guide](../guide.md#data-on-a-web-server) says how such files
# are read.
#
# | streaming of Hugging Face | with meshfeed |
# | --- | --- |
# | `load_dataset("ORG/NAME", streaming=True)` | `mf.open("hf://datasets/ORG/NAME/data", split="train")`: numbered records, read by row groups |
# | `.shuffle(seed=s, buffer_size=n)` | `shuffle=True`, a full shuffle; or `order="blocks"`, which needs a window of row groups at a time |
# | `.take(n)`, `.skip(n)` | `ds.slice(0, n)`, `ds.slice(n)`; `loader.skip(steps)` |
# | `state_dict()`, which leaves the shuffle buffer out | `loader.state()`: any position, the exact order |
# | `revision="…"` | `hf://datasets/ORG/NAME@REVISION/…`; a branch becomes a commit once |
# | data that cross the network in every epoch | row groups that stay in the cache of the host |
#
# | MosaicML Streaming | with meshfeed |
# | --- | --- |
# | `MDSWriter`; shards in MDS | files of Parquet or Arrow; MDS is not read, so write the rows once: `meshfeed convert`, or pyarrow |
# | `StreamingDataset(remote="s3://…", local=folder)` | `mf.open("s3://…", cache=folder)`; whole row groups travel, not whole files |
# | `cache_limit="500gb"` | `cache_bytes=500 * 10**9`; fields that do not fit are an error when a loader starts |
# | `predownload=n`, `download_retry=n` | nothing: windows are fetched ahead, and attempts go on at the byte reached |
# | `shuffle_algo="py1e"`, `shuffle_block_size=n` | `order="blocks"` |
# | `num_canonical_nodes`, for the same order on other counts of nodes | nothing: the order never depends on the processes |
# | `Stream(proportion=…)` | `mf.mix({"a": a, "b": b}, weights=…)` |
# | `clean_stale_shared_memory()` after a crash | nothing: a killed process leaves no part |
#
# | gcsfuse, Mountpoint for S3, s3fs, gcsfs, adlfs | with meshfeed |
# | --- | --- |
# | a mount, with a file cache and a prefetch to tune | `gs://…` and `s3://…`; or the mount as a path, which `io="read"` and `cache="/fast/disk"` suit |
# | `ls -R` to fill the cache of metadata | nothing: one listing has names, sizes and versions |
# | `fsspec.open(…)`, `pyarrow.dataset.dataset(…, filesystem=fs)` | the same address; for other storages `mf.open(paths, filesystem=fs)` |
# | `storage_options={"key": …, "secret": …}` | the environment and the profiles of the tools of the store; `meshfeed doctor s3://…` says which are used |
# | a batch from other versions of a file after it was replaced | a `DataLossError` that names the file and both versions |

# %% [markdown]
# ## Keep your loader
#
# If another loader has to prepare the rows, keep it, and let meshfeed place its batches. `mf.put` makes
# global arrays of one batch of any library: no collective, no comparison over the network, any sharding.
# `mf.place_batches` does it for an iterable, ahead of the step. Arrays and tensors of these libraries are taken
# as they are:

# %%
streams = {
    "NumPy": [
        {name: array[i : i + 256] for name, array in data.items()} for i in range(0, 1024, 256)
    ]
}
if installed("torch"):
    loader = DataLoader(dataset, 256)
    streams["PyTorch"] = ({"image": image, "label": label} for image, label in loader)
if installed("tensorflow"):
    streams["TensorFlow"] = tf.data.Dataset.from_tensor_slices(data).batch(256)
if installed("grain"):
    streams["Grain"] = grain.MapDataset.source(Source()).batch(256)
if installed("datasets"):
    columns = datasets.Dataset.from_dict(data, features=features).with_format("numpy")
    streams["Hugging Face"] = columns.iter(batch_size=256)
if installed("datarax"):
    streams["Datarax"] = datarax(256)

for name, stream in streams.items():
    with (
        mf.place_batches(stream, mesh, P("data")) as placed,
        mf.Loader(ds, mesh, P("data"), batch_size=256) as loader,
    ):
        print(compare(loader, placed), "equal batches of", name)

# %% [markdown]
# Here the whole batch is in every process, `rows="all"`. If each process has its own rows, pass
# `rows="local"`: the rows are checked against the sharding, and an error says how many there should be.
# What `mf.put` cannot know is whether the rows are the right ones. `mf.check_replicas(batch)` compares
# the rows that several devices hold:

# %%
batch = mf.put({"label": data["label"][:256]}, mesh, P("data"), rows="local")
print(mf.check_replicas(batch))
try:
    mf.put(np.arange(6), mesh, P("data"), rows="local")
    raise AssertionError("6 rows do not divide by 4")
except mf.InvalidArgumentError as error:
    print(error)

# %%
ds.close()

# %% [markdown]
# ## Versions
#
# These versions ran beside JAX 0.10.2 on 2026-11-23. "Tests" says how often they run again: `make test` and
# `make test-deep` run every line of this guide if its library is installed.
#
# | library | version | tests |
# | --- | --- | --- |
# | grain | 0.2.18 | `make test` |
# | datasets | 5.2.0 | `make test` |
# | tensorflow | 2.21.0 | `make test-deep` |
# | datarax | 0.1.4 | `make test-deep` |
# | torch | 2.15.0 | by hand: its package for Linux needs 4 GB of CUDA |
# | torchdata | 0.11.0 | by hand |
#
# Nothing of Levanter and MaxText ran: their part above is what their sources do, in plain JAX.
