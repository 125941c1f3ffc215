# ruff: noqa: E501

# %% [markdown]
# # Distributed loading in depth
#
# You can write a program that loads, augments, trains, evaluates, saves and continues on any mesh, and say
# what limits its speed.
#
# | level | before you begin | running time | memory |
# | --- | --- | --- | --- |
# | intermediate | [Quick reference](quick_reference.py); `pip install '.[demo]' optax orbax-checkpoint` | 20 s | 800 MB |
#
# One training program grows from section to section. The last sections run it whole, in two processes,
# kill one of them, and list what goes wrong most often. All of it runs on a laptop, on CPU devices.
#
# - [The data](#the-data) · [A mesh for any number of devices](#a-mesh-for-any-number-of-devices)
# - [Which dimension to split](#which-dimension-to-split) · [How many rows](#how-many-rows)
# - [The model and the step](#the-model-and-the-step) · [What JAX adds](#what-jax-adds)
# - [Train and evaluate](#train-and-evaluate) · [Uneven batches](#uneven-batches)
# - [The same run on other meshes](#the-same-run-on-other-meshes)
# - [What limits the speed](#what-limits-the-speed) · [Checkpoints](#checkpoints)
# - [A process is killed](#a-process-is-killed) · [Pitfalls](#pitfalls) · [Best practices](#best-practices)

# %% [markdown]
# ## The data
#
# 1,797 real images of handwritten digits, 8 by 8 pixels, from scikit-learn. 1,437 are for training, 360 for
# tests. They go into Arrow files: one column for each field, and a fixed shape for each row.

# %%
import builtins
import inspect
import json
import math
import os
import re
import socket
import subprocess
import sys
import tempfile
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pyarrow as pa
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from sklearn.datasets import load_digits

import meshfeed as mf

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 8)


def show(picture):
    """Shows a picture in a notebook, and its text elsewhere."""
    getattr(builtins, "display", print)(picture)


def say(message):
    """Prints a long message in lines of 80 characters."""
    print(textwrap.fill(message, 80, subsequent_indent="    "))


def write(path, images, labels):
    """Writes images and labels as an Arrow file."""
    tensor = pa.FixedShapeTensorArray.from_numpy_ndarray(images)
    table = pa.table({"image": tensor, "label": labels})
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=256)


folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.target))
images = (digits.images[order, :, :, None] / 16).astype(np.float32)
labels = digits.target[order].astype(np.int32)
write("train.arrow", images[:1437], labels[:1437])
write("test.arrow", images[1437:], labels[1437:])

train, test = mf.open("train.arrow"), mf.open("test.arrow")
print(train)
assert (len(train), len(test)) == (1437, 360)

# %% [markdown]
# ## A mesh for any number of devices
#
# A program that says `reshape(2, 2)` runs on four devices and on no other number. `mf.make_mesh` takes the
# sizes that the model needs, and -1 for the rest. If that does not work, the error lists the sizes that do.

# %%
for count in (1, 2, 3, 6, 8):
    try:
        mesh = mf.make_mesh({"data": -1, "model": 2}, devices=jax.devices()[:count])
        print(f"{count} devices: {dict(mesh.shape)}")
    except mf.InvalidArgumentError as error:
        say(f"{count} devices: {error}")

# %% [markdown]
# How to choose the axes:
#
# | devices | mesh | reason |
# | --- | --- | --- |
# | one | `{"data": -1}` | the same program, with nothing split |
# | eight in a host, and the model fits on each | `{"data": -1}` | only gradients move, once a step |
# | eight in a host, and the model needs two | `{"data": -1, "model": 2}` | the last axis joins neighbors, and traffic along "model" is in every layer |
# | four hosts of eight, and the model needs eight | `{"data": -1, "model": 8}` | "model" stays inside a host; "data" crosses hosts |
# | four hosts of eight, and the optimizer's states do not fit | `{"data": -1, "fsdp": 8}`, rows `P(("data", "fsdp"))` | states are split too, and all devices still have different rows |
# | four hosts of eight, and the model needs sixteen | `{"data": -1, "model": 16}` | two hosts share a model, so they need the *same* rows |
#
# Which rows each host needs follows from mesh and spec. `mf.layout` plans the last three without the hosts:

# %%
plans = {
    "a model in a host": ({"data": 4, "model": 8}, P("data")),
    "FSDP": ({"data": 4, "fsdp": 8}, P(("data", "fsdp"))),
    "a model in two hosts": ({"data": 2, "model": 16}, P("data")),
}
for name, (axes, spec) in plans.items():
    plan = mf.layout(axes, spec, train, batch_size=64, processes=4).report()
    rows = [process["rows"][0] for process in plan["processes"]]
    print(f"{name:21}", *(f"{first}:{last}".rjust(6) for first, last in rows))
assert rows == [[0, 32], [0, 32], [32, 64], [32, 64]]

# %% [markdown]
# A program that picks rows by the number of its process is wrong in the last case: [From one process to
# many](distributed.py) shows how. [How to split a model](strategy.py) computes memory and time of every
# choice for your model.
#
# The rest of this guide has a 4 by 2 mesh. Its axes have the type Auto: JAX chooses how results inside the
# step are split, as most models expect. The [pitfalls](#pitfalls) show the other type.


# %%
def grid(model=2, devices=None):
    """Returns a mesh. Groups of `model` devices share a model."""
    axes = {"data": -1, "model": model}
    return mf.make_mesh(axes, devices=devices)


mesh = grid()
show(mf.layout(mesh, P("data"), train, batch_size=64))

# %% [markdown]
# The note below the picture says that the devices of a pair hold the same rows. That is meant here: a pair
# shares one model.

# %% [markdown]
# ## Which dimension to split
#
# | dimension of an image batch | spec | reason |
# | --- | --- | --- |
# | batch | `"data"` | devices work on different images |
# | height, width | `None` | an axis here splits each image; only for images that are too large for a device |
# | channels | `None` | three channels rarely divide, and this splits the input, not the model |
#
# `mf.layout` checks a spec without devices and data. Here it does so for color images of 32 by 32 pixels. The
# last two specs have problems: one wastes memory, and the other is an error.

# %%
color = {"image": ("float32", (32, 32, 3))}
found = []
for spec in (P("data"), P("data", "model"), P(), P("data", None, None, "model")):
    plan = mf.layout(mesh, spec, color, batch_size=64)
    problems = [problem for problem in plan.check() if problem.severity != "info"]
    if not any(problem.severity == "error" for problem in problems):
        shape = plan.report()["arrays"]["image"]["shard_shape"]
        print(f"{spec}: each device has {shape}")
    for problem in problems:
        say(f"{spec}: {problem}")
        found.append(problem.code)
assert found == ["replicated", "indivisible"]

# %% [markdown]
# ## How many rows
#
# `batch_size` counts the rows of the *global* batch. To say it per device, multiply by the size of the axes
# that split the batch. The number of devices is the wrong factor if there is another axis:

# %%
factors = {'mesh.shape["data"]': mesh.shape["data"], "mesh.size": mesh.size}
for name, factor in factors.items():
    with mf.Loader(train, mesh, P("data"), batch_size=16 * factor) as loader:
        rows = len(loader.peek()["image"].addressable_shards[0].data)
    print(f"16 * {name:18} = {16 * factor:3}: {rows} rows on each device")
assert rows == 32

# %% [markdown]
# A fixed global batch keeps training the same on any mesh: the same steps, the same learning rate. A fixed
# batch per device keeps the devices busy, but with more devices the global batch grows, and training changes.
# This guide has a fixed global batch of 64.

# %%
BATCH = 64

# %% [markdown]
# ## The model and the step
#
# A small convolution network in plain JAX. Its largest weight is split over "model". `mf.put` places host
# arrays, such as new weights, as a loader places batches. Nothing after that mentions devices.


# %%
def place(mesh):
    """Returns new parameters on the mesh."""
    random = np.random.default_rng(0)
    params = {
        "conv": random.normal(scale=0.3, size=(3, 3, 1, 16)),
        "hidden": random.normal(scale=0.03, size=(8 * 8 * 16, 64)),
        "bias": np.zeros(64),
        "out": random.normal(scale=0.1, size=(64, 10)),
    }
    params = {name: np.float32(values) for name, values in params.items()}
    split = P("model")
    specs = {"conv": P(), "hidden": P(None, "model"), "bias": split, "out": split}
    return mf.put(params, mesh, specs)


def predict(params, image):
    """Returns the scores of the ten digits."""
    kernel, order = params["conv"], ("NHWC", "HWIO", "NHWC")
    x = jax.lax.conv_general_dilated(image, kernel, (1, 1), "SAME", None, None, order)
    x = jax.nn.relu(x).reshape(len(x), -1)
    return jax.nn.relu(x @ params["hidden"] + params["bias"]) @ params["out"]


params = place(mesh)
show(mf.draw(params))

# %% [markdown]
# Images are augmented inside the step, on the devices. `extras=("key",)` adds a random key for each row to
# the batch: a hash of seed, epoch and record. So record 17 is shifted in the same way on any mesh, in any
# batch size and after any restart, and differently in the next epoch.


# %%
def shift(image, key):
    """Moves an image by up to one pixel in each direction."""
    down, right = jax.random.randint(jax.random.wrap_key_data(key), (2,), 0, 3)
    padded = jnp.pad(image, ((1, 1), (1, 1), (0, 0)))
    return jax.lax.dynamic_slice(padded, (down, right, 0), image.shape)


# %% [markdown]
# 1,437 images are 22 batches of 64, and 29 images remain. `remainder="pad"` fills the last batch with zeros,
# and adds the mask "valid" to *every* batch. The loss is the mean over valid rows.


# %%
def loss_of(params, batch):
    """Returns the mean loss of the valid rows."""
    scores = predict(params, jax.vmap(shift)(batch["image"], batch["key"]))
    losses = optax.softmax_cross_entropy_with_integer_labels(scores, batch["label"])
    return losses.mean(where=batch["valid"])


optimizer = optax.sgd(0.05, momentum=0.9)


@jax.jit
def step(params, states, batch):
    """Trains on one batch."""
    loss, slopes = jax.value_and_grad(loss_of)(params, batch)
    changes, states = optimizer.update(slopes, states, params)
    return optax.apply_updates(params, changes), states, loss


def open_loader(dataset, mesh, **options):
    """Returns the loader of a training run."""
    options = {"shuffle": True, "remainder": "pad", "extras": ("key",), **options}
    return mf.Loader(dataset, mesh, P("data"), batch_size=BATCH, **options)


# %% [markdown]
# ## What JAX adds
#
# The step contains no communication. From the shardings of its arguments, the partitioner of XLA (Shardy;
# GSPMD in older versions) decides what each device computes, and inserts the communication that this needs.
# The compiled program shows it. First on a mesh that splits only rows:


# %%
def communicated(mesh):
    """Prints the collectives of the compiled step, and returns how many values they move."""
    params = place(mesh)
    with open_loader(train, mesh) as loader:
        lowered = step.lower(params, optimizer.init(params), loader.peek())
    collective = r"= (.*) ((?:all|reduce|collective)-[\w-]+)\("
    total = 0
    for shapes, name in re.findall(collective, lowered.compile().as_text()):
        sizes = [json.loads(shape) for shape in re.findall(r"\[[\d,]*\]", shapes)]
        values = sum(math.prod(size) for size in sizes)
        print(f"mesh {mesh.shape['data']} by {mesh.shape['model']}: {name} of {values:,} values")
        total += values
    return total


weights = sum(array.size for array in jax.tree.leaves(params))
print(f"{weights:,} weights")
assert communicated(grid(model=1)) == weights + 2

# %% [markdown]
# These are sums over all devices: of all gradients, the loss, and the number of valid rows. No batch size is
# in these numbers. That is why data parallelism needs little communication: as much as there are weights,
# once a step.
#
# With a model axis of size 2, a device has gradients of half of the split weights only. But now pairs of
# devices also add up values in the middle of the step, for each of their 16 rows. These are 10 scores on the
# way forward, and 1,024 inputs of the dense layer on the way back. That grows with the batch. So use a model
# axis only if the model needs it.

# %%
shards = [array.addressable_shards[0].data for array in jax.tree.leaves(params)]
part = sum(shard.size for shard in shards)
assert communicated(mesh) == part + 2 + 16 * (10 + 1024)

# %% [markdown]
# The loader itself communicates nothing. Each row goes from the host to the devices that need it:

# %%
totals = mf.layout(mesh, P("data"), train, batch_size=BATCH).report()["totals"]
for name in ("read_bytes", "interconnect_bytes", "network_bytes"):
    print(name, totals[name])
assert totals["interconnect_bytes"] == totals["network_bytes"] == 0

# %% [markdown]
# ## Train and evaluate
#
# `one_epoch` is a pass over the test images that leaves the loader where it is. Each evaluation makes a new
# one.


# %%
@jax.jit
def count(params, batch):
    """Counts the valid rows that are recognized."""
    right = predict(params, batch["image"]).argmax(axis=-1) == batch["label"]
    return (right & batch["valid"]).sum()


def accuracy(params, loader):
    """Returns the share of the records that are recognized."""
    right = [int(count(params, batch)) for batch in loader.one_epoch()]
    return sum(right) / len(test)


tests = mf.Loader(test, mesh, P("data"), batch_size=BATCH, remainder="pad")
params = place(mesh)
states = optimizer.init(params)
history = []
with open_loader(train, mesh) as loader:
    while loader.epoch < 20:
        for batch in loader:
            params, states, loss = step(params, states, batch)
            history.append(float(loss))  # waits for the step: see the pitfalls
        if loader.epoch % 5 == 0:
            mean, share = np.mean(history[-23:]), accuracy(params, tests)
            print(f"epoch {loader.epoch:2}: loss {mean:.3f}, accuracy {share:.1%}")
    report = loader.report()
assert accuracy(params, tests) > 0.93
assert len(history) == 20 * 23

# %% [markdown]
# ## Uneven batches
#
# 360 test images are 5 batches of 64 and one of 40. A metric without the mask counts 24 images that do not
# exist.

# %%
right, valid = [], []
for batch in tests.one_epoch():
    guess = np.asarray(predict(params, batch["image"])).argmax(axis=-1)
    right.append(guess == np.asarray(batch["label"]))
    valid.append(np.asarray(batch["valid"]))
right, valid = np.concatenate(right), np.concatenate(valid)
for name, rows in {"with the mask": right[valid], "without the mask": right}.items():
    print(f"{name:16} {rows.sum()} of {rows.size}: {rows.mean():.2%}")
assert (valid.sum(), right.size) == (360, 384)
assert right[valid].mean() == accuracy(params, tests) != right.mean()

# %% [markdown]
# In the loss the error is larger. The last training batch has 29 real images. The mean of the valid rows is
# the loss of these 29 alone. A mean over all 64 rows also learns from 35 black images with the label 0.

# %%
with open_loader(train, mesh) as loader:
    *_, last = loader
    last = {name: np.asarray(array) for name, array in last.items()}
alone = {name: array[:29] for name, array in last.items()}
unmasked = {**last, "valid": np.ones(BATCH, bool)}
here = jax.device_get(params)
batches = {"29 alone": alone, "masked": last, "unmasked": unmasked}
mean, compiled = {}, jax.jit(loss_of)
for name, batch in batches.items():
    mean[name] = float(compiled(here, batch))
    print(f"{name:9} {mean[name]:.4f}")
assert last["valid"].sum() == 29
assert np.isclose(mean["masked"], mean["29 alone"], rtol=1e-4)
assert abs(mean["unmasked"] - mean["masked"]) > 0.01

# %% [markdown]
# Padding by hand is easy to get wrong. Datarax's sharding guide pads a short batch to a multiple of the
# number of devices. That is another shape, so the step is compiled a second time. The labels are left out,
# `valid_mask` is a number instead of a mask, and only short batches have it, so the tree of arrays changes
# too. Every batch of a loader has one shape and one tree:

# %%
traced = []


@jax.jit
def sum_of(image):
    traced.append(image.shape[0])
    return image.sum()


with open_loader(train, mesh) as loader:
    for batch in loader:
        sum_of(batch["image"]).block_until_ready()
print("traced for the loader: batches of", traced)
sum_of(np.pad(alone["image"], ((0, 3), (0, 0), (0, 0), (0, 0))))
print("and with 29 rows padded to a multiple of eight:", traced)
assert traced == [64, 32]

# %% [markdown]
# For a batch that you hold already, the same takes one line:

# %%
own = mf.from_arrays({"image": images[:50], "label": labels[:50]})
with mf.Loader(own, mesh, P("data"), batch_size=BATCH, remainder="pad") as loader:
    batch = next(iter(loader))
print({name: array.shape for name, array in batch.items()})
print("valid:", batch["valid"].sum())
assert int(batch["valid"].sum()) == 50

# %% [markdown]
# ## The same run on other meshes
#
# Nothing above depends on the mesh: not the order of the records, not the keys of the augmentation, not the
# batch size. So the first losses are the same on one device, on two, four and eight, and with a model axis,
# up to the rounding of sums. One device needs no code of its own.

# %%
losses = {}
for devices, model in ((1, 1), (2, 1), (4, 1), (8, 1), (8, 2)):
    some = grid(model, jax.devices()[:devices])
    new = place(some)
    run = new, optimizer.init(new)
    with open_loader(train, some) as loader:
        for batch in loader:
            *run, loss = step(*run, batch)
            losses.setdefault(tuple(some.shape.values()), []).append(float(loss))
            if loader.step == 4:
                break
for shape, values in losses.items():
    print(f"mesh {shape[0]} by {shape[1]}:", *(f"{value:.5f}" for value in values))
    assert np.allclose(values, history[:4], rtol=1e-4)

# %% [markdown]
# ## What limits the speed
#
# Every loader measures its loop. `report` says how long the loop waited for data, what limits it, and what to
# change. This is the report of the training above:

# %%
show(report)

# %% [markdown]
# The step of this small network takes a few milliseconds, so the fixed cost of handing over a batch can be
# noticeable. With a longer step it matters less. A batch size is also part of the experiment: if the report
# suggests a larger one, you decide.
#
# `mf.benchmark` times a loop on purpose: the wait for each batch *and* its step. Some batches come before, to
# warm up, because the first step is compiled; "first" says how long that took. A clock that starts when the
# batch is there does not see a slow input. A clock that stops when `step` returns does not see the step,
# because JAX returns before the devices are done.


# %%
def train_step(run, batch):
    """Trains on one batch, for a benchmark."""
    *run, loss = step(*run, batch)
    return tuple(run), loss


with open_loader(train, mesh) as loader:
    run = params, states
    show(mf.benchmark(loader, jax.jit(train_step), carry=run, batches=20))

# %% [markdown]
# A sweep repeats this for other meshes, batch sizes or anything else:


# %%
def training(devices):
    some = grid(1, jax.devices()[:devices])
    new = place(some)
    return open_loader(train, some), train_step, (new, optimizer.init(new))


table = mf.benchmark.sweep(training, {"devices": [1, 2, 4, 8]}, batches=20)
show(table)

# %% [markdown]
# **What this can show:** that the loader keeps up, and what more devices cost. An array on eight devices is
# handed to JAX in eight parts, and devices wait for each other in each collective.
#
# **What this cannot show:** scaling. These devices are threads that share the cores of one machine, so eight
# of them have no more power than one. A table of "near-linear speedup" needs real devices. Run this cell on
# yours, and divide its rows per second by the rows per second of one device.
#
# Memory per device needs no measurement. It follows from the shapes, but it has two readings, which are
# easily mixed up. With a fixed *global* batch, each device holds less of it. With a fixed batch *per device*,
# nothing shrinks.


# %%
def feeding(devices, batch_size):
    some = grid(1, jax.devices()[:devices])
    return mf.Loader(train, some, P("data"), batch_size=batch_size)


fixed = [{"devices": n, "batch_size": 64} for n in (1, 2, 4, 8)]
growing = [{"devices": n, "batch_size": 64 * n} for n in (1, 2, 4, 8)]
table = mf.benchmark.sweep(feeding, fixed + growing, batches=20)
show(table)
held = [point.result.memory["batch"] for point in table.points]
row = 8 * 8 * 4 + 4  # bytes of an image and a label
assert held == [64 * row, 32 * row, 16 * row, 8 * row] + 4 * [64 * row]

# %% [markdown]
# This table has no step, so the loop does nothing but wait. It shows what the input alone can deliver.
# [Tuning](tuning.py) says what each argument changes, and reads a trace of `jax.profiler`.

# %% [markdown]
# ## Checkpoints
#
# A checkpoint of a training run has three parts: the weights, the states of the optimizer, and the state of
# the loader, which is a small dict. Orbax saves them together or not at all. The arrays to restore into say
# where each part goes, so the mesh may be another one.

# %%
try:
    import orbax.checkpoint as ocp
except ImportError:
    ocp = None
    print("skipped: orbax-checkpoint is not installed")


def open_checkpoints(folder):
    """Opens the checkpoints in a folder."""
    options = ocp.CheckpointManagerOptions(enable_async_checkpointing=False)
    return ocp.CheckpointManager(os.path.abspath(folder), options=options)


def save(checkpoints, loader, run):
    """Saves parameters and states under the number of steps that are done."""
    done = loader.epoch * loader.steps_per_epoch + loader.step
    arrays, position = ocp.args.StandardSave(run), ocp.args.JsonSave(loader.state())
    checkpoints.save(done, args=ocp.args.Composite(run=arrays, loader=position))


def restore(checkpoints, loader, run):
    """Returns the newest parameters and states, and moves the loader to their step."""
    arrays, position = ocp.args.StandardRestore(run), ocp.args.JsonRestore()
    args = ocp.args.Composite(run=arrays, loader=position)
    saved = checkpoints.restore(checkpoints.latest_step(), args=args)
    loader.restore(saved.loader)
    return saved.run


# %% [markdown]
# Ten steps on the 4 by 2 mesh, a save, and five more steps on another mesh, of four devices. The losses
# equal the losses of the training above, which was not interrupted. `mf.check_replicas` compares the copies
# of each array on all devices.

# %%
if ocp:
    new = place(mesh)
    run = new, optimizer.init(new)
    with open_loader(train, mesh) as loader, open_checkpoints("alone") as checkpoints:
        for batch in loader:
            *run, loss = step(*run, batch)
            loss.block_until_ready()
            if loader.step == 10:
                break
        save(checkpoints, loader, tuple(run))

    small = grid(model=1, devices=jax.devices()[:4])
    new = place(small)
    run = new, optimizer.init(new)
    with open_loader(train, small) as loader, open_checkpoints("alone") as checkpoints:
        run = restore(checkpoints, loader, run)
        mf.check_replicas(run, name="restored")
        print("continues at", loader.state())
        for batch in loader:
            *run, loss = step(*run, batch)
            now = loader.last.step
            print(f"step {now}: loss {loss:.5f}, uninterrupted {history[now]:.5f}")
            assert np.isclose(loss, history[now], rtol=1e-3)
            if now == 14:
                break

# %% [markdown]
# ## A process is killed
#
# Here is everything so far as one program. It runs in any number of processes: each of them runs the same
# text, and the text contains no rank except to join the job. If there is a checkpoint, it continues from
# there.

# %%
HEAD = """
import os
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from jax.sharding import PartitionSpec as P

import meshfeed as mf

BATCH = 64
optimizer = optax.sgd(0.05, momentum=0.9)
"""

MAIN = """
address, processes, rank = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
jax.distributed.initialize(
    address, processes, rank, cluster_detection_method="deactivate"
)

mesh = grid()
params = place(mesh)
run = params, optimizer.init(params)
train = mf.open("train.arrow")
with open_loader(train, mesh) as loader, open_checkpoints("job") as checkpoints:
    if checkpoints.latest_step():
        run = restore(checkpoints, loader, run)
    while loader.epoch < 1:
        for batch in loader:
            *run, loss = step(*run, batch)
            done = loader.epoch * loader.steps_per_epoch + loader.step
            print("step", done, float(loss), flush=True)
            if done % 5 == 0:
                save(checkpoints, loader, tuple(run))
jax.distributed.shutdown()
"""

parts = [grid, place, predict, shift, loss_of, step, open_loader]
parts += [open_checkpoints, save, restore]
sections = [HEAD, *map(inspect.getsource, parts), MAIN]
program = "\n\n\n".join(section.strip() for section in sections) + "\n"
with open("train.py", "w") as file:
    file.write(program)
print(program)


# %% [markdown]
# Two processes with two devices each start it. After step 8 one is killed with SIGKILL. The others would wait
# for it in a collective, so the scheduler of a cluster, here `job`, ends them too.


# %%
def job(processes, kill_after=None):
    """Runs the program in new processes, and returns the loss of every step."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "2"}
    env["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    members = [
        subprocess.Popen(
            [sys.executable, "train.py", address, str(processes), str(rank)],
            env=env,
            stdout=subprocess.DEVNULL if rank else subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(processes)
    ]
    losses, log = {}, []
    try:
        for line in members[0].stdout:
            log.append(line)
            if line.startswith("step "):
                _, done, loss = line.split()
                losses[int(done)] = float(loss)
                if int(done) == kill_after:
                    for member in reversed(members):
                        member.kill()
        ended = [member.wait() for member in members]
    finally:
        for member in members:
            member.kill()  # after Ctrl-C; a process that has ended stays as it is
        members[0].stdout.close()
    assert kill_after in losses or not any(ended), "".join(log)
    return losses


if ocp:
    killed = job(processes=2, kill_after=8)
    print("two processes did steps", *killed)

# %% [markdown]
# One process with two devices continues from the newest checkpoint. What came after the checkpoint is done
# again. The last column is the training above, with eight devices in one process and without interruption.

# %%
if ocp:
    continued = job(processes=1)
    print("step  2 processes  1 process  undisturbed")
    for done, undisturbed in enumerate(history[:23], 1):
        both = [losses.get(done) for losses in (killed, continued)]
        cells = ["" if loss is None else f"{loss:.5f}" for loss in both]
        print(f"{done:4}  {cells[0]:>11}  {cells[1]:>9}  {undisturbed:.5f}")
        assert any(both)
        assert np.allclose([loss for loss in both if loss], undisturbed, rtol=1e-2)
    assert min(continued) % 5 == 1
    assert max(continued) == 23

# %% [markdown]
# JAX can also let the processes that are left continue without a restart (`jax_enable_recoverability`). Then
# `loader.remesh` continues at the same position on the devices that are left. The program moves its
# parameters, or restores them if the lost devices held the only copy of a part. Here a mesh of eight devices
# becomes one of four, in one process:

# %%
left = grid(model=1, devices=jax.devices()[:4])


def move(array):
    """Moves an array to the devices that are left."""
    return jax.device_put(array, NamedSharding(left, array.sharding.spec))


new = place(mesh)
run = new, optimizer.init(new)
with open_loader(train, mesh) as loader:
    for batch in loader:
        *run, loss = step(*run, batch)
        now = loader.last.step
        held = batch["image"].sharding.num_devices
        print(f"step {now}: {held} devices, loss {loss:.5f}")
        assert np.isclose(loss, history[now], rtol=1e-3)
        if now == 2:
            run = jax.tree.map(move, run)
            loader.remesh(left)
        if now == 4:
            break

# %% [markdown]
# `make drill` does all this with four processes and draws it. [From one process to many](distributed.py)
# shows what notices a process that reads other data than the rest.

# %% [markdown]
# ## Pitfalls
#
# Each one with the error or the wrong number that it causes.


# %%
def error_of(function, *arguments, **options):
    """Prints the error that a call raises."""
    try:
        function(*arguments, **options)
    except Exception as error:
        say(f"{type(error).__name__}: {str(error).splitlines()[0]}")
    else:
        raise AssertionError("no error")


# %% [markdown]
# **The batch does not divide** over the devices:

# %%
error_of(mf.Loader, train, mesh, P("data"), batch_size=30)

# %% [markdown]
# **Axes are Explicit**, which is the default of `jax.make_mesh`. Then the sharding is part of an array's type,
# and JAX refuses an operation if its result could be split in several ways. To look at values, use
# `np.asarray(batch["image"])[0]`. In a model, say `out_sharding=`, or use `mf.make_mesh`, which has Auto axes.

# %%
explicit = mf.make_mesh({"data": -1}, axis_types=AxisType.Explicit)
with mf.Loader(train, explicit, P("data"), batch_size=BATCH) as loader:
    image = next(iter(loader))["image"]
error_of(lambda: image[0])

# %% [markdown]
# **One batch too many.** `zip` takes from its first argument before it notices that the second has ended. Use
# `itertools.islice(loader, 5)`, or put the loader last.

# %%
with open_loader(train, mesh) as loader:
    for _ in zip(loader, range(5), strict=False):
        pass
    print("five steps wanted, taken:", loader.step)
    assert loader.step == 6

# %% [markdown]
# **Epochs counted by `range`** after a restart. A loop over a loader that was restored in epoch 1 first ends
# that epoch. Count by `loader.epoch`, or say `epochs=3` and write one loop.

# %%
with open_loader(train, mesh) as loader:
    loader.seek(epoch=1, position=640)
    for _ in range(3):
        for _ in loader:
            pass
    print("three epochs wanted, done:", loader.epoch)
    assert loader.epoch == 4

# %% [markdown]
# **Another seed or dataset after a restart.** The order would be another one: some records would come twice,
# others never. So it is refused:

# %%
with open_loader(train, mesh) as loader:
    state = loader.state()
error_of(open_loader, train, mesh, seed=1, state=state)

# %% [markdown]
# **States that are whole on one device.** Zeros do not depend on the parameters, so under `jax.jit` nothing
# says where they belong. Call `optimizer.init` without `jit`, or give `out_shardings=`.

# %%
init = optimizer.init
for name, function in {"init": init, "jit(init)": jax.jit(init)}.items():
    hidden = function(params)[0].trace["hidden"]
    size = hidden.addressable_shards[0].data.nbytes
    print(f"{name:9} on {hidden.sharding.num_devices} devices, {size:,} bytes on the first")

# %% [markdown]
# **`next` inside `jit`.** The program would contain that one batch as a constant:

# %%
with open_loader(train, mesh) as loader:
    error_of(jax.jit(lambda: next(iter(loader))["image"].sum()))

# %% [markdown]
# **Many steps ahead on virtual devices.** JAX dispatches steps faster than they run. On accelerators that is
# welcome. Eight virtual devices on two cores share a few threads. With about forty unfinished steps, their
# collectives wait for each other without end, also in a program without meshfeed. After 40 s XLA ends the
# process: "Termination timeout for `all reduce ...` exceeded". Wait in each step, as `float(loss)` does
# above.
#
# **Rows chosen by rank.** If a model crosses processes, `jax.process_index()` is the wrong key, and JAX does
# not notice: [From one process to many](distributed.py#the-bug-that-jax-cannot-notice).

# %% [markdown]
# ## Best practices
#
# 1. Give the mesh by name and let -1 fill it: `mf.make_mesh({"data": -1, "model": 2})`. Split only the batch
#    until something does not fit.
# 2. Fix the global batch, so that a run is the same on any mesh. If you fix it per device, multiply by
#    `mesh.shape["data"]`, and scale the learning rate.
# 3. Look at `loader.layout` once before a large run. `mf.layout` shows it before you have the devices.
# 4. Pad, and use the mask in the loss and in each metric.
# 5. Augment in the step, with `extras=("key",)`.
# 6. Evaluate with `one_epoch`, and count records by the mask.
# 7. Save weights, the optimizer's states and `loader.state()` together. Try the restore, on another mesh,
#    before you need it, and check the copies with `mf.check_replicas`.
# 8. Leave the first steps out of a measurement, wait for the result of a step, and count the wait for the
#    batch.
# 9. Read `loader.report()` before you change anything. If it says that the step is the limit, leave the input
#    as it is.
# 10. Compare the first losses of a new mesh with the losses on one device.

# %% [markdown]
# Next: [From one process to many](distributed.py), [How to split a model](strategy.py), [Jobs of many
# processes](../jobs.md).

# %%
tests.close()
train.close()
test.close()
os.chdir("/")
folder.cleanup()
