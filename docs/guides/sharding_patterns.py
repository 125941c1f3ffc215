# ruff: noqa: E501, RUF003

# %% [markdown]
# # Sharding patterns
#
# You can name the pattern that a model needs, draw it, and compute what it costs.
#
# | level | before you begin | running time | memory |
# | --- | --- | --- | --- |
# | intermediate | [Quick reference](quick_reference.py); what a matrix product is; `pip install '.[jax]'` | 6 s | 700 MB |
#
# A pattern says which axis of a mesh splits which array. There are few of them, and large jobs combine them.
# This guide goes from one array on four devices to GPT-3 on thousands. Each drawing is made by `mf.draw` or
# `mf.diagram`, and each number is computed and asserted, where it can be on eight CPU devices, by a program
# that XLA compiled. The last section lists what the usual tables get wrong.
#
# - [Rows over devices](#rows-over-devices) · [The model beside the data](#the-model-beside-the-data)
# - [Two axes](#two-axes) · [One product](#one-product) · [Collectives](#collectives)
# - [Tensor parallelism](#tensor-parallelism) · [Dividing the states](#dividing-the-states)
# - [Pipelines](#pipelines) · [Three axes](#three-axes) · [Side by side](#side-by-side)
# - [Memory](#memory) · [Which pattern?](#which-pattern) · [Three models](#three-models) · [Advice](#advice)
# - [Debugging](#debugging) · [Tuning](#tuning)
# - [What the usual tables get wrong](#what-the-usual-tables-get-wrong)

# %% [markdown]
# ## Rows over devices
#
# The first pattern splits the rows of an array. Four devices hold 32 of 128 rows each:

# %%
import builtins
import re
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 8)
devices = np.array(jax.devices())


def show(picture):
    """Shows a drawing: as a picture in a notebook, as text elsewhere."""
    getattr(builtins, "display", print)(picture)


four = Mesh(devices[:4], ("data",))
x = mf.put(np.ones((128, 8), np.float32), four, P("data"))
show(mf.draw(x))
assert [shard.index[0] for shard in x.addressable_shards] == [
    slice(start, start + 32) for start in (0, 32, 64, 96)
]

# %% [markdown]
# `mf.put` places one array or one batch, and `mf.draw` reads the sharding of a live array. `jax.device_put`
# does the same in one process; in several, it compares the data of all processes in every call. A `mf.Loader`
# delivers the batches of a data set in this form.

# %% [markdown]
# ## The model beside the data
#
# In data parallelism, the rows of a batch are split, and every device has the whole model. Each device
# computes gradients from its rows. The model must get the mean of all of them. The gradient of a matrix is a
# product over the rows, so each device has a part of its sum:

# %%
inputs = {"shape": (64, 128), "spec": P(None, "data")}  # transposed
gradients = {"shape": (128, 32), "spec": P("data")}
show(mf.diagram("matmul", mesh=four, x=inputs, w=gradients))

# %% [markdown]
# In JAX, two specs say this. `P("data")` splits the rows of the batch, and `P()` keeps the weights whole. You
# write no communication. XLA inserts it into the compiled program, where this function finds it:


# %%
def collectives(function, *arrays, out=None):
    """Returns how many collectives of each kind the compiled function has."""
    text = jax.jit(function, out_shardings=out).lower(*arrays).compile().as_text()
    kinds = "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute"
    found = {kind: len(re.findall(rf" {kind}(?:-start)?\(", text)) for kind in kinds}
    return {kind: count for kind, count in found.items() if count}


def array(mesh, shape, *spec):
    """Describes an array without allocating it."""
    sharding = NamedSharding(mesh, P(*spec))
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding)


def loss(weights, rows):
    return ((rows @ weights) ** 2).mean()


weights, rows = array(four, (64, 32)), array(four, (128, 64), "data")
whole = NamedSharding(four, P())
print("forward:           ", collectives(lambda w, x: x @ w, weights, rows))
print("forward, backward: ", collectives(jax.grad(loss), weights, rows, out=whole))
assert collectives(lambda w, x: x @ w, weights, rows) == {}
assert collectives(jax.grad(loss), weights, rows, out=whole) == {"all-reduce": 1}

# %% [markdown]
# The forward pass sends nothing: replicas of weights need no communication. The one all-reduce belongs to the
# gradients.

# %% [markdown]
# ## Two axes
#
# If the model is too large for a device, a second axis splits it. Eight devices form a grid of four rows and
# two columns. The rows split the data and the columns the model. So there are four parts of the data, each on
# two devices, and two parts of the model, each on four:

# %%
axes = {"data": -1, "model": 2}  # -1 is the rest of the devices
mesh = mf.make_mesh(axes)
assert mesh == Mesh(devices.reshape(4, 2), ("data", "model"))
show(mf.draw(mesh))


def holders(spec):
    """Returns the groups of devices that hold the same part of an array."""
    groups = {}
    for device, (part,) in NamedSharding(mesh, spec).devices_indices_map((8,)).items():
        groups.setdefault(part.start or 0, set()).add(device.id)
    return list(groups.values())


print("the same data: ", *holders(P("data")))
print("the same model:", *holders(P("model")))
assert holders(P("data")) == [{0, 1}, {2, 3}, {4, 5}, {6, 7}]
assert holders(P("model")) == [{0, 2, 4, 6}, {1, 3, 5, 7}]

# %% [markdown]
# Read the groups twice. Devices that *differ* only along "model" hold the same data. A collective over
# "model" runs among them, in four groups of two.

# %% [markdown]
# ## One product
#
# On this mesh, a batch of 128 rows is multiplied by a matrix of 4096 × 2048. The rows of the batch are split
# over "data", and the columns of the matrix over "model":

# %%
product = {
    "mesh": mesh,
    "x": {"shape": (128, 4096), "spec": P("data", None)},
    "w": {"shape": (4096, 2048), "spec": P(None, "model")},
}
show(mf.diagram("matmul", **product))

# %% [markdown]
# The same, computed. `out_shardings` states the sharding of the output, and JAX would have chosen it too.

# %%
rng = np.random.default_rng(0)
x_host = rng.normal(size=(128, 4096)).astype(np.float32)
w_host = rng.normal(size=(4096, 2048)).astype(np.float32)
x = jax.device_put(x_host, NamedSharding(mesh, P("data", None)))
w = jax.device_put(w_host, NamedSharding(mesh, P(None, "model")))
multiply = jax.jit(jnp.matmul, out_shardings=NamedSharding(mesh, P("data", "model")))
y = multiply(x, w)
for part in (x, w, y):
    print(part.shape, part.sharding.spec, "on a device", part.addressable_shards[0].data.shape)

local = [part.addressable_shards[0].data.shape for part in (x, w, y)]
assert local == [(32, 4096), (4096, 1024), (32, 1024)]
assert np.allclose(y, x_host @ w_host, atol=1e-2)
assert collectives(jnp.matmul, x, w) == {}

# %% [markdown]
# The output is (128, 2048) globally and (32, 1024) on a device. No data moves, because every device has whole
# rows of `x` and whole columns of `w`. If the spec splits the dimension that a product sums over, each device
# has only a part of each sum, and an all-reduce adds the parts:

# %%
x_split = array(mesh, (128, 4096), None, "model")
w_split = array(mesh, (4096, 2048), "model", None)
print(collectives(jnp.matmul, x_split, w_split))
assert collectives(jnp.matmul, x_split, w_split) == {"all-reduce": 1}

# %% [markdown]
# ## Collectives
#
# A collective is a step that exchanges data between the devices of a group. Three of them carry most
# patterns. Here they run on four devices. For the first two, device k holds the number k + 1; for the
# third, every device holds the array 1, 2, 3, 4.

# %%
line = Mesh(devices[:4], ("x",))
one_each = jax.device_put(np.array([1, 2, 3, 4]), NamedSharding(line, P("x")))
all_four = jax.device_put(np.array([1, 2, 3, 4]), NamedSharding(line, P()))


def run(collective, array):
    """Runs a collective, and returns what each of the four devices has afterwards."""
    specs = {"in_specs": array.sharding.spec, "out_specs": P("x")}
    program = jax.jit(jax.shard_map(collective, mesh=line, check_vma=False, **specs))
    return np.asarray(program(array)).reshape(4, -1).tolist()


sums = run(lambda part: jax.lax.psum(part, "x"), one_each)
gathered = run(lambda part: jax.lax.all_gather(part, "x", tiled=True), one_each)
scattered = run(lambda part: jax.lax.psum_scatter(part, "x", tiled=True), all_four)
print("all-reduce, every device has the sum:           ", *sums)
print("all-gather, every device has all parts:         ", *gathered)
print("reduce-scatter, every device has a part of sums:", *scattered)
assert sums == [[10]] * 4
assert gathered == [[1, 2, 3, 4]] * 4
assert scattered == [[4], [8], [12], [16]]

# %% [markdown]
# A drawing shows the steps. The devices form a ring, and each sends one part to the next in every step. Here
# all four parts of the array on device k are the number k + 1:

# %%
show(mf.diagram("collective", op="reduce-scatter", devices=4, algorithm="ring"))

# %% [markdown]
# After three steps, every device has a quarter of the sum, 10. An all-gather passes the quarters on, in three
# more steps, and the result is an all-reduce. That gives the costs. A device sends this share of the array:

# %%
operations = "reduce-scatter", "all-gather", "all-reduce"
print("devices ", *operations)
for n in (2, 4, 8):
    sent = []
    for op in operations:
        drawn = mf.diagram("collective", op=op, devices=n, algorithm="ring")
        numbers = re.search(r"sends (\d+) parts?\. The array has (\d+)", str(drawn))
        sent.append(int(numbers[1]) / int(numbers[2]))
    print(f"{n:7} {sent[0]:15.3f} {sent[1]:10.3f} {sent[2]:10.3f}")
    assert sent == [(n - 1) / n, (n - 1) / n, 2 * (n - 1) / n]

# %% [markdown]
# The share approaches one and two arrays, and no more, however many devices there are. Drawings of an
# all-reduce often add up on one device, which then sends the sum to all. The result is the same, but that
# device sends n - 1 arrays. The `algorithm="tree"` and the other collectives are in `mf.diagram("collective",
# …)`, too.

# %% [markdown]
# ## Tensor parallelism
#
# Tensor parallelism splits *every layer*: each device holds a part of each matrix. A pair of matrices, as in
# a feed-forward block, is split by columns and then by rows. Then the halves of the hidden units fit
# together, and one all-reduce at the end is enough [[Megatron](https://arxiv.org/abs/1909.08053), section 3]:

# %%
layers = [
    ({"shape": (16, 64), "spec": P()}, {"shape": (64, 256), "spec": P(None, "tensor")}),
    ({"shape": (16, 256), "spec": P(None, "tensor")}, {"shape": (256, 64), "spec": P("tensor")}),
]
for left, right in layers:
    show(mf.diagram("matmul", mesh={"tensor": 2}, x=left, w=right, dtype="float32"))

# %% [markdown]
# Compiled, with the other choices beside it:


# %%
def pair(a, b, x):
    return jax.nn.gelu(x @ a) @ b


def pair_loss(a, b, x):
    return (pair(a, b, x) ** 2).sum()


tensor = Mesh(devices[:2], ("tensor",))
by = {"columns": (None, "tensor"), "rows": ("tensor", None)}
tokens, whole = array(tensor, (16, 64)), NamedSharding(tensor, P())
for first in by:
    for second in by:
        a, b = array(tensor, (64, 256), *by[first]), array(tensor, (256, 64), *by[second])
        used = collectives(pair, a, b, tokens, out=whole)
        print(f"a by {first:8} b by {second:8}", used)
        assert (sum(used.values()) == 1) == ((first, second) == ("columns", "rows"))

a = array(tensor, (64, 256), *by["columns"])
b = array(tensor, (256, 64), *by["rows"])
gradients = jax.grad(pair_loss, argnums=(0, 1, 2))
both_passes = collectives(gradients, a, b, tokens, out=(a.sharding, b.sharding, whole))
print("columns, then rows, forward and backward:", both_passes)
assert collectives(pair, a, b, tokens, out=whole) == {"all-reduce": 1}
assert both_passes == {"all-reduce": 2}

# %% [markdown]
# Only columns-then-rows needs a single collective, one forward and one backward. A transformer layer has two
# such pairs, attention and feed-forward, so it has two all-reduces forward and two backward. No all-gather
# follows each layer. (With sequence parallelism, each all-reduce becomes a reduce-scatter and an all-gather,
# which send the same bytes; `sequence_parallel=True` draws it.)
#
# Computation waits for these collectives, in every layer. So the axis stays among devices with fast links,
# inside a node. All devices of a group see the same rows of the batch.

# %% [markdown]
# ## Dividing the states
#
# Data parallelism keeps the same weights, gradients and optimizer states on all devices. Nothing forces it
# to. Fully sharded data parallelism (FSDP, or ZeRO stage 3) splits the weights over the devices that split
# the batch. Before a layer computes, its weights are gathered:


# %%
def two_layers(params, x):
    return ((jax.nn.relu(x @ params["a"]) @ params["b"]) ** 2).mean()


fsdp = Mesh(devices, ("fsdp",))
params = {"a": array(fsdp, (64, 256), "fsdp"), "b": array(fsdp, (256, 64), "fsdp")}
out = {name: leaf.sharding for name, leaf in params.items()}
rows = array(fsdp, (512, 64), "fsdp")
in_the_step = collectives(jax.grad(two_layers), params, rows, out=out)
print(in_the_step)
assert in_the_step["all-gather"] == 2

# %% [markdown]
# One spec per array, and XLA gathers both matrices. The remaining collective adds the gradients up. It is an
# all-reduce on CPUs; XLA's compiler for GPUs has a pass, ReduceScatterCreator, that makes a reduce-scatter of
# it.
#
# Here a gathered matrix stays in memory until the backward pass, so with many layers nothing is saved. With
# `jax.checkpoint` around a layer, the backward pass gathers its weights again:


# %%
def many_layers(params, x):
    def layer(x, pair):
        return jax.nn.relu(x @ pair["a"]) @ pair["b"], None

    x, _ = jax.lax.scan(jax.checkpoint(layer), x, params)
    return (x**2).mean()


deep = {
    "a": array(fsdp, (4, 64, 256), None, "fsdp"),
    "b": array(fsdp, (4, 256, 64), None, "fsdp"),
}
out = {name: leaf.sharding for name, leaf in deep.items()}
in_both_passes = collectives(jax.grad(many_layers), deep, rows, out=out)
print("in the loop over layers:", in_both_passes)
assert in_both_passes["all-gather"] == 4

# %% [markdown]
# The loop has two all-gathers forward, and two backward.
#
# ZeRO divides in three stages: first the optimizer states, then also the gradients, then also the weights.
# The published example has 7.5 billion parameters and 64 devices [[ZeRO](https://arxiv.org/abs/1910.02054),
# figure 1]. With AdamW a parameter takes 16 bytes: 2 for the weight, 2 for the gradient, and 12 for the
# optimizer.

# %%
GB = 10**9
zero = {
    "no division": 16,
    "stage 1": 2 + 2 + 12 / 64,
    "stage 2": 2 + (2 + 12) / 64,
    "stage 3": 16 / 64,
}
published = {"no division": 120, "stage 1": 31.4, "stage 2": 16.6, "stage 3": 1.9}
planned = mf.advise(
    mf.strategy.parameters(7_500_000_000),
    mf.strategy.training(batch=64),
    mf.strategy.cluster(devices=64, memory_bytes=80 * GB),
    search={"axes": {"data": [1, 64], "fsdp": [1, 64]}, "zero": [0, 1, 2]},
)
by_stage = {}
for found in planned.candidates:
    by_stage[3 if "fsdp" in found.mesh else found.zero] = found.memory
for stage, (name, per_parameter) in enumerate(zero.items()):
    computed, total = 7.5 * per_parameter, by_stage[stage]["total"] / GB
    print(f"{name:12} computed {computed:6.1f} GB per device, planned {total:6.1f} GB")
    assert abs(computed - published[name]) < 0.06
    assert abs(computed - total) < 0.01
parts_of_memory = ("weights", "gradients", "optimizer")
bars = [
    {"label": name} | {part: by_stage[stage][part] for part in parts_of_memory}
    for stage, name in enumerate(zero)
]
show(mf.diagram("memory", bars=bars, capacity=80 * GB))

# %% [markdown]
# Stages 1 and 2 send as much as plain data parallelism: a reduce-scatter of the gradients and an all-gather
# of the weights are one all-reduce. Stage 3 gathers the weights in both passes, which is half as much again
# (ZeRO, section 7). With JAX, stage 1 is a spec with "data" for the optimizer's states, and stage 3 is one
# for the weights.

# %% [markdown]
# ## Pipelines
#
# Pipeline parallelism splits the *layers*. "GPU 0 has layers 0 to 2, GPU 1 has layers 3 to 5" is a pipeline,
# although some texts call it tensor parallelism. A stage works while others wait, so the batch flows in
# micro-batches:

# %%
show(mf.diagram("pipeline", schedule="gpipe", stages=4, micro_batches=8))

# %% [markdown]
# A spec cannot express a pipeline, but a short program can. Each of four devices has one layer. In every tick
# a device applies its layer, and passes the result to the next device:

# %%
STAGES, MICRO_BATCHES = 4, 8
layers = (rng.normal(size=(STAGES, 16, 16)) / 4).astype(np.float32)
batch = rng.normal(size=(MICRO_BATCHES, 32, 16)).astype(np.float32)
ticks = MICRO_BATCHES + STAGES - 1


def pipeline(layer, batch):
    stage = jax.lax.axis_index("pipe")
    forward = [(i, i + 1) for i in range(STAGES - 1)]

    def tick(held, t):
        fresh = batch[jnp.minimum(t, MICRO_BATCHES - 1)]
        taken = jnp.where(stage == 0, fresh, held)
        result = jnp.tanh(taken @ layer[0])
        return jax.lax.ppermute(result, "pipe", forward), result

    start = jax.lax.pcast(jnp.zeros_like(batch[0]), ("pipe",), to="varying")
    _, results = jax.lax.scan(tick, start, jnp.arange(ticks))
    return results[-MICRO_BATCHES:][None]  # right in the last stage, which was idle before


pipe = Mesh(devices[:STAGES], ("pipe",))
specs = {"in_specs": (P("pipe"), P()), "out_specs": P("pipe")}
program = jax.jit(jax.shard_map(pipeline, mesh=pipe, **specs))
expected = batch
for layer in layers:
    expected = np.tanh(expected @ layer)
assert np.allclose(program(layers, batch)[-1], expected, atol=1e-5)
idle = 1 - MICRO_BATCHES / ticks
print(f"{MICRO_BATCHES} micro-batches in {ticks} ticks, a stage is idle for {idle:.1%}")
assert ticks == 11
assert abs(idle - 3 / 11) < 1e-12

# %% [markdown]
# The result equals running the layers one after the other. It took m + p - 1 ticks for m micro-batches and p
# stages. So the efficiency is m / (m + p - 1), and the idle share, the bubble, is (p - 1) / (m + p - 1).
# GPipe's authors state it as an order, O((K - 1) / (M + K - 1)) for K stages and M micro-batches
# [[GPipe](https://arxiv.org/abs/1811.06965), section 2.3]. Megatron's (p - 1) / m divides the same idle time
# by the *ideal* time [[Megatron-LM, 2021](https://arxiv.org/abs/2104.04473), section 2.2.1]. So one minus
# that is not an efficiency, though texts print it as (m - p + 1) / m:

# %%
print("stages  micro-batches  efficiency  idle, drawn  (m - p + 1) / m")
for p, m in ((4, 8), (16, 24), (6, 3), (8, 4), (16, 192)):
    drawn = mf.diagram("pipeline", schedule="1f1b", stages=p, micro_batches=m)
    idle = float(re.search(r"idle for ([\d.]+) %", str(drawn))[1])
    efficiency, wrong = m / (m + p - 1), (m - p + 1) / m
    print(f"{p:6}{m:15}{efficiency:12.3f}{idle:11.1f} %{wrong:17.3f}")
    assert abs(100 * (p - 1) / (m + p - 1) - idle) < 0.06
assert all((p - 1) / (4 * p + p - 1) < 1 / 5 for p in range(2, 100))  # m = 4 p

# %% [markdown]
# With four times as many micro-batches as stages, the bubble is less than a fifth; GPipe's authors found it
# negligible from there on. But a stage keeps the activations of each micro-batch until its backward pass.
# Schedules order the work so that these are fewer, or the bubble is smaller. In "1f1b", one forward and one
# backward pass alternate. In "zero-bubble", the gradients of the weights are a third kind of work, and fill
# gaps; it is the schedule ZB-H1 [[Zero Bubble](https://arxiv.org/abs/2401.10241), section 2.1]. If each kind
# takes one tick, a stage is idle for p - 1 of 3 m + p - 1 ticks:

# %%
kept, bubble = {}, {}
for schedule in ("gpipe", "1f1b", "zero-bubble"):
    drawn = mf.diagram("pipeline", schedule=schedule, stages=4, micro_batches=8)
    kept[schedule] = int(re.search(r"stage 0 .* (\d+)", str(drawn))[1])
    bubble[schedule] = float(re.search(r"idle for ([\d.]+) %", str(drawn))[1])
    print(f"{schedule:12} idle {bubble[schedule]:4} %, stage 0 keeps", kept[schedule])
show(drawn)
assert kept == {"gpipe": 8, "1f1b": 4, "zero-bubble": 4}
assert bubble["1f1b"] == bubble["gpipe"] == 27.3
assert bubble["zero-bubble"] == round(100 * 3 / (3 * 8 + 3), 1) == 11.1

# %% [markdown]
# ## Three axes
#
# Large jobs combine all three. The order of the axes decides which devices are neighbors. The last axis of
# the mesh changes fastest, so tensor parallelism, which sends most, comes last:

# %%
show(mf.draw({"pipe": 2, "data": 2, "tensor": 2}))

# %% [markdown]
# What does a device hold of the weights? An axis that splits them divides them, and "data" does not. So it is
# 1 / (tensor × pipe), and not one in eight, as texts have it. Only FSDP divides by the data axis, too.

# %% [markdown]
# ## Side by side
#
# The patterns as specs of one small model: eight layers, each a pair of matrices. `mf.memory` computes what a
# device holds, with the states of AdamW.

# %%
LAYERS, WIDTH, BATCH = 8, 256, 64
model = {
    "a": jax.ShapeDtypeStruct((LAYERS, WIDTH, 4 * WIDTH), jnp.float32),
    "b": jax.ShapeDtypeStruct((LAYERS, 4 * WIDTH, WIDTH), jnp.float32),
}
tensor_specs = {"a": P(None, None, "tensor"), "b": P(None, "tensor", None)}
fsdp_specs = {"a": P(None, "fsdp", "tensor"), "b": P(None, "tensor", "fsdp")}
pipe_specs = {"a": P("pipe", None, "tensor"), "b": P("pipe", "tensor", None)}
PATTERNS = {  # axes, specs of the model, spec of the batch, what a step sends
    "replicated": ({"x": 8}, P(), P(), "nothing"),
    "data": ({"data": 8}, P(), P("data"), "gradients, once per step"),
    "fsdp": ({"fsdp": 8}, P(None, "fsdp"), P("fsdp"), "weights twice, gradients once"),
    "tensor": ({"tensor": 8}, tensor_specs, P(), "activations, in every layer"),
    "pipe": ({"pipe": 8}, P("pipe"), P(), "activations, between stages"),
    "data, tensor": ({"data": 4, "tensor": 2}, tensor_specs, P("data"), "both"),
    "fsdp, tensor": ({"fsdp": 4, "tensor": 2}, fsdp_specs, P("fsdp"), "both"),
    "data, tensor, pipe": ({"pipe": 2, "data": 2, "tensor": 2}, pipe_specs, P("data"), "all"),
}
share = {}
print("pattern             of the model  rows of 64    with AdamW  sends")
for name, (axes, specs, split, sends) in PATTERNS.items():
    auto = (AxisType.Auto,) * len(axes)
    abstract = AbstractMesh(tuple(axes.values()), tuple(axes), axis_types=auto)
    batch = {"rows": array(abstract, (BATCH, WIDTH), *split)}
    used = mf.memory(model, specs, mesh=axes, optimizer="adamw", batch=batch)
    weights = used.totals["parameter_bytes"]
    share[name] = sum(leaf.global_bytes for leaf in used.arrays.values()) // weights
    states = weights + used.totals["gradient_bytes"] + used.totals["optimizer_bytes"]
    held = used.batch["rows"].shard_shape[0]
    print(f"{name:20}{f'1/{share[name]}':>12}{held:12}{states / 2**20:10.1f} MiB  {sends}")
assert [share[name] for name in ("replicated", "data")] == [1, 1]
assert [share[name] for name in ("fsdp", "tensor", "pipe", "fsdp, tensor")] == [8] * 4
assert (share["data, tensor"], share["data, tensor, pipe"]) == (2, 4)

# %% [markdown]
# Replication alone sends nothing. It is the pattern of small arrays, such as the scales of a normalization.
# In the patterns with "tensor" or "pipe" alone, all devices work on the same 64 rows.

# %% [markdown]
# ## Memory
#
# Training needs memory for four things. Three of them follow from the number of parameters. In the usual
# mixed precision, a weight and a gradient take 2 bytes each, and AdamW keeps a copy of the weight and two
# moments in 32 bits. That is 2 + 2 + 12 = 16 bytes [[ZeRO](https://arxiv.org/abs/1910.02054), section 3.1]:

# %%
billion = mf.advise(
    mf.strategy.parameters(10**9),
    mf.strategy.training(batch=32),
    mf.strategy.cluster(devices=1, memory_bytes=24 * GB),
)
memory = billion.best.memory
totals = {part: memory[part] // GB for part in (*parts_of_memory, "total")}
print("GB:", totals)
assert totals == {"weights": 2, "gradients": 2, "optimizer": 12, "total": 16}
print("80 GB hold the states of", 80 * GB / 16 / GB, "billion parameters")

# %% [markdown]
# The fourth are activations. They depend on the batch b, the sequence s, the width h, the number of heads a
# and of layers. Without recomputation, a layer of a transformer keeps s·b·h·(34 + 5·a·s/h) bytes, and its
# input, 2·s·b·h bytes, if it computes everything again [[Korthikanti et
# al.](https://arxiv.org/abs/2205.05198), equation 1 and table 2]. For 24 layers of
# width 2,048 with 16 heads, which have 1.2 billion parameters, and a batch of 32:


# %%
def activations(s, b, h, a, layers):
    return layers * s * b * h * (34 + 5 * a * s / h)


sizes = []
for s in (128, 512, 2048):
    sizes.append(activations(s, b=32, h=2048, a=16, layers=24) / GB)
    recomputed = 24 * 2 * s * 32 * 2048 / GB
    print(f"sequence {s:4}: {sizes[-1]:5.1f} GB, with recomputation {recomputed:3.1f} GB")
assert round(12 * 24 * 2048**2 / GB, 1) == 1.2  # a layer has 12 h² weights
assert [round(size) for size in sizes] == [8, 43, 367]

# %% [markdown]
# "Activations: 4 GB" without a sequence says nothing. `mf.memory(params, loss=…)` computes an interval for a
# model of your own, from its jaxpr: [How to split a model](strategy.py#activations) says how.

# %% [markdown]
# ## Which pattern?
#
# Rules such as "up to eight times the memory of a device: one axis" compare the weights with the memory. But
# the states are eight times the weights, and an axis that replicates adds no memory. So compare the states
# and the activations with nine tenths of the memory, for each split. `mf.advise` does that for all splits,
# and orders them by time.

# %%
questions = (
    ("gpt2-xl", 512, 8),
    ("llama3-8b", 128, 8),
    ("llama3-70b", 512, 64),
    ("gpt3-175b", 1536, 1024),
)
chosen = {}
for name, examples, count in questions:
    cluster = mf.strategy.cluster("h100-80", devices=count)
    best = mf.advise(name, mf.strategy.training(batch=examples), cluster).best
    chosen[name] = set(best.mesh)
    held, step = best.memory["total"] / GB, best.time["step"] / 10**9
    axes = ", ".join(f"{axis} {size}" for axis, size in best.mesh.items())
    print(f"{name:10} on {count:4}: {axes:27} ZeRO {best.zero}, {held:.1f} GB, {step:4.1f} s")
assert chosen["gpt2-xl"] == chosen["llama3-8b"] == {"data"}
assert chosen["llama3-70b"] == {"fsdp", "tensor"}
assert chosen["gpt3-175b"] == {"pipe", "data", "tensor"}

# %% [markdown]
# The usual order is data parallelism while the states fit, then ZeRO or FSDP, then tensor parallelism
# inside a node, then a pipeline. The four models take these steps one after the other. GPT-2 and Llama 3 8B
# replicate their weights, with stages 1 and 2 of ZeRO. Llama 3 70B needs FSDP and tensor parallelism. GPT-3
# needs a pipeline, because FSDP over 1,024 devices waits for its links. The weights of Llama 3 8B, 16 GB, fit
# on one device of 80 GB. Its states do not:

# %%
one = mf.strategy.cluster("h100-80", devices=1)
llama = mf.advise("llama3-8b", mf.strategy.training(batch=8), one)
parameters = llama.report["model"]["parameters"]
print(f"{2 * parameters / GB:.0f} GB of weights, {16 * parameters / GB:.0f} GB of states")
print("one device suffices:", llama.fits)
assert 2 * parameters < 80 * GB < 16 * parameters
assert not llama.fits

# %% [markdown]
# ## Three models
#
# Three examples that texts often use, computed.
#
# *ResNet-50* on 8 devices. The weights take 102 MB in 32 bits. An image takes 4.1 billion multiply-adds, and
# its convolutions have 11.1 million outputs. Data parallelism is enough, even if a framework keeps twice as
# many activations.

# %%
resnet = mf.advise(
    mf.strategy.parameters(
        25_557_032,
        activation_bytes_per_example=4 * 11_113_984,
        flops_per_example=2 * 4_089_000_000,
        inputs={"image": ("uint8", (224, 224, 3)), "label": ("int32", ())},
    ),
    mf.strategy.training(
        batch=1024,
        optimizer="momentum",
        precision={"weights": "float32", "gradients": "float32", "master": None},
    ),
    mf.strategy.cluster("a100-40", devices=8),
)
held = {part: size / 10**6 for part, size in resnet.best.memory.items()}
print(resnet.best.mesh, f"{held['weights']:.0f} MB of weights, {held['total']:,.0f} MB in all")
assert resnet.best.mesh == {"data": 8}
assert round(held["weights"]) == 102
assert held["total"] + held["activations"] < 40_000
show(mf.draw(resnet.layout))

# %% [markdown]
# *GPT-2 1.5B* on 4 devices. The weights take 3.1 GB in 16 bits (6 GB would be 32 bits), the states 25 GB.
# With tensor parallelism on 4 devices, every device would see all 64 examples. It is not even possible: 4
# devices cannot share the 25 heads of attention. 16 examples per device are data parallelism:

# %%
cluster = mf.strategy.cluster("a100-40", devices=4)
gpt2 = mf.advise("gpt2-xl", mf.strategy.training(batch=64), cluster)
parameters = gpt2.report["model"]["parameters"]
print(f"{2 * parameters / GB:.1f} GB of weights, {16 * parameters / GB:.0f} GB of states")
print(gpt2.best)
by_tensor = mf.advise(
    "gpt2-xl", mf.strategy.training(batch=64), cluster, search={"axes": {"tensor": 4}}
)
print(str(by_tensor).splitlines()[2])
assert "tensor must divide the 25 heads" in str(by_tensor)
rows = gpt2.layout.report()["arrays"]["tokens"]["shard_shape"][0]
print("examples per device:", rows)
assert (gpt2.best.mesh, rows) == ({"data": 4}, 16)

# %% [markdown]
# *GPT-3 175B*, with 8 devices for "tensor" and 16 for "pipe". [Megatron's
# script](https://github.com/NVIDIA/Megatron-LM/blob/090e141cc47ddf3317464bf9af7561b932c131c1/examples/pretrain_gpt3_175B.sh)
# is for 1,024 devices, which are 8 replicas, with a batch of 1,536 and micro-batches of 1. Here is that, and
# the same batch on 64 replicas, which are 8,192 devices:


# %%
training = mf.strategy.training(
    batch=1536, micro_batch=1, recomputation="full", attention="plain", schedule="1f1b"
)


def gpt3(replicas):
    cluster = mf.strategy.cluster("a100-80", devices=128 * replicas)
    axes = {"pipe": 16, "data": replicas, "tensor": 8}
    return mf.advise("gpt3-175b", training, cluster, search={"axes": axes}).best


for replicas in (8, 64):
    best = gpt3(replicas)
    m = best.micro_batches
    print(f"{128 * replicas} devices: {m} micro-batches, efficiency {m / (m + 15):.1%}")
    weights, step = best.memory["weights"] / GB, best.time["step"] / 10**9
    print(f"  {weights:.2f} GB of weights per device, a step of {step:.1f} s")
    assert m == 1536 // replicas
assert f"{192 / (192 + 15):.1%}" == "92.8%"
assert f"{24 / (24 + 15):.1%}" == "61.5%"
assert gpt3(8).memory["weights"] == gpt3(64).memory["weights"]
width, vocabulary, positions = 12288, 50257, 2048
blocks = 96 * (12 * width**2 + 13 * width) / 128  # a device's share, with biases and normalizations
first_stage = 2 * (blocks + vocabulary * width / 8 + positions * width)  # and the embeddings
assert abs(gpt3(8).memory["weights"] / first_stage - 1) < 0.001
speedup = gpt3(8).time["step"] / gpt3(64).time["step"]
print(f"8 times the devices are {speedup:.1f} times as fast")
assert 5 < speedup < 5.5

# %% [markdown]
# In the second run the replicas have too few micro-batches for 16 stages. The weights on a device are the
# same in both, because "data" replicates. They are a little more than 350 GB / 128 = 2.73 GB, because the
# first stage also has the embeddings.

# %% [markdown]
# ## Advice
#
# - **Move less.** Put the axis that sends most on the fastest links: "tensor" last, inside a node.
# - **Overlap.** XLA can run collectives of "data" and "fsdp" during computation. Batches overlap too: a
#   loader reads ahead, and on GPUs and TPUs sends the next batch to its devices during a step
#   (`device_prefetch=`).
# - **Accumulate gradients.** The global batch is micro-batches × examples × replicas. More micro-batches need
#   no more memory, and send gradients once: `mf.Loader(ds, mesh, P(None, "data"), batch_size=(8, 64))`
#   delivers 8 micro-batches of 64 rows.
# - **Prefer a reduce-scatter only if the consumer is split.** An all-reduce is a reduce-scatter and an
#   all-gather. Leaving out the second half helps if each device updates only its part, as in ZeRO. If each
#   device needs the whole sum, nothing is saved.

# %% [markdown]
# The tuple in the third item, run. The spec has an entry for each of the two dimensions:

# %%
numbers = mf.from_arrays({"row": np.arange(1024, dtype=np.int32)})
line = Mesh(devices, ("data",))
with mf.Loader(numbers, line, P(None, "data"), batch_size=(8, 64)) as loader:
    batch = loader.peek()["row"]
print(batch.shape, "on a device", batch.addressable_shards[0].data.shape)
assert batch.addressable_shards[0].data.shape == (8, 8)

# %% [markdown]
# ## Debugging
#
# A live array answers three questions: what is its sharding, which devices is it on, and what does each of
# them hold? `mf.draw` draws the answers. It also takes a sharding or a tree of parameters, and arrays of any
# rank. `jax.debug.visualize_array_sharding` draws one or two dimensions, and needs the package rich;
# `style="jax"` draws the same table without rich. JAX makes the table as wide and flat as the array. For `y`,
# which is 16 times as wide as high, no height is left for the names of devices.

# %%
print(y.sharding)
print(sorted(device.id for device in y.devices()))
for shard in y.addressable_shards[:2]:
    print(shard.device, shard.index, shard.data.shape)
assert len(y.devices()) == 8
show(mf.draw(y))
show(mf.draw({"x": x, "w": w, "y": y}))
as_jax = str(mf.draw(mf.put(np.ones((8, 4)), mesh, P("data", "model")), style="jax"))
print(as_jax)
assert "CPU 7" in as_jax
assert "CPU" not in str(mf.draw(y, style="jax"))

# %% [markdown]
# In the table, *copies* says that four devices hold the same part of `w`. Whether their copies are equal is
# one more question, which JAX does not ask: see [JAX's page, all of it](jax_page.py#replicas-that-differ).

# %% [markdown]
# ## Tuning
#
# Measure before you change a pattern. After a loop, the loader reports what limited it:

# %%
ones = mf.from_arrays({"x": np.ones((2048, 256), np.float32)})
small = jax.device_put(w_host[:256, :256], NamedSharding(mesh, P(None, "model")))
with mf.Loader(ones, mesh, P("data"), batch_size=128, epochs=-1) as loader:
    step = jax.jit(lambda batch: (batch["x"] @ small).sum())
    for _, batch in zip(range(20), loader, strict=False):
        step(batch).block_until_ready()
    report = loader.report()
show(report)
assert report.batches > 0

# %% [markdown]
# | what may be slow | where you see it |
# | --- | --- |
# | the loop | `mf.benchmark(loader, step)` times the wait for a batch and the step, over meshes and batch sizes, too |
# | the input | `loader.report()`: the share of the time that the loop waited, what limits it, what to change |
# | communication | the collectives in a trace, as below; `mf.advise` computes how long they should take |
# | one device | its row in the trace; `mf.advise` reports unequal stages of a pipeline |
# | one process | `loader.report(all_processes=True)`; the log names processes that come late (`late_after=`) |
# | the network | the bytes of a collective over its time in the trace, against the bandwidth of the link |
#
# [Tuning](tuning.py#the-report) explains the report. A trace of `jax.profiler` has every operation of every
# device. So it says how long a device computes, and how long it is in collectives. It also says whether all
# devices have as much to do, and how many bytes a second a collective moves. Here are ten steps of the pair
# of matrices from [tensor parallelism](#tensor-parallelism), on four by two devices:

# %%
halves = jax.device_put(w_host[:512, :1024], NamedSharding(mesh, P(None, "model")))
back = jax.device_put(w_host[:1024, :512], NamedSharding(mesh, P("model", None)))
tokens = jax.device_put(x_host[:, :512], NamedSharding(mesh, P("data")))
feed_forward = jax.jit(pair, out_shardings=NamedSharding(mesh, P("data")))
feed_forward(halves, back, tokens).block_until_ready()
with tempfile.TemporaryDirectory() as folder:
    with jax.profiler.trace(folder):
        for _ in range(10):
            feed_forward(halves, back, tokens).block_until_ready()
    (path,) = Path(folder).rglob("*.xplane.pb")
    trace = jax.profiler.ProfileData.from_file(str(path))

spent = {device.id: {"computes": 0, "communicates": 0} for device in jax.devices()}
reductions = 0
for plane in trace.planes:
    for event in (event for line in plane.lines for event in line.events):
        stats = dict(event.stats)
        if "hlo_op" in stats:
            reduces = stats["hlo_op"].startswith("all-reduce")
            kind = "communicates" if reduces else "computes"
            spent[stats["device_ordinal"]][kind] += event.duration_ns / 10**6
            reductions += reduces

for device, times in spent.items():
    print(f"device {device}:", *(f"{kind} {ms:6.2f} ms" for kind, ms in times.items()))
work = [times["computes"] for times in spent.values()]
waits = sum(times["communicates"] for times in spent.values()) / reductions
part = tokens.addressable_shards[0].data.nbytes  # a ring of two sends this once: 2 (n - 1) / n
print(f"load: the busiest device has {max(work) / np.mean(work):.2f} times the mean")
print(f"link: {part:,} bytes in {waits:.3f} ms are {part / waits / 10**6:.2f} GB/s")
assert reductions == 10 * 8
assert part == 32 * 512 * 4

# %% [markdown]
# A device that waits for another is inside the collective, so unequal work shows as communication of the
# devices that have less. That is why both columns belong together. On virtual devices most of the time in a
# collective is such waiting, since eight devices share a few cores. On a GPU or TPU the same events are on a
# line for each device.

# %% [markdown]
# ## What the usual tables get wrong
#
# These statements are in introductions to the subject, some of them in many. The sections above and the cell
# below the table compute the numbers of the middle column.
#
# | statement | right | why |
# | --- | --- | --- |
# | The efficiency of a pipeline is (m - p + 1) / m. | m / (m + p - 1) | With p = 8 and m = 4 the first is -0.75. It is 1 minus idle over *ideal* time. |
# | A 4 × 2 mesh has two data parts. | 4 | One for each row of the mesh. |
# | The output of (128, 4096) × (4096, 2048) on it is (32, 2048) on a device. | (32, 1024) | The spec splits both dimensions. 2048 is the global width. |
# | Tensor parallelism puts layers 0 to 2 on GPU 0. | a pipeline does | Tensor parallelism splits each layer. |
# | It gathers after each layer. | 1 all-reduce per pair of matrices and pass | By columns, then by rows, only the sums are missing. |
# | Replicated arrays need an all-reduce. | 0 collectives | The all-reduce belongs to the gradients of data parallelism. |
# | 2-D: a device has 1/N of the model. | 1/2 on a 4 × 2 mesh | The data axis replicates. |
# | 3-D: 1/(data × tensor × pipe). | 1/4 on 2 × 2 × 2 | Only FSDP or ZeRO divide by the data axis. |
# | AdamW takes 4 bytes per parameter, training 12. | 12 and 16 | There are two moments, and a copy of the weight in 32 bits. |
# | 80 GB train 10 billion parameters in 16 bits. | 5 billion | 40 billion as weights alone. 10 billion need 8 bytes per parameter: moments in 16 bits and no copy. |
# | 8 billion parameters do not fit on 80 GB. | their weights, 16 GB, do | The states of training, 128 GB, do not. |
# | Activations take 4 GB at batch 32. | 8, 43 or 367 GB | At sequences of 128, 512 and 2,048. |
# | GPT-2 1.5B takes 6 GB in 16 bits. | 3 GB | 6 GB are 32 bits. |
# | Model parallelism on 4 devices, batch 64, 16 per device. | 64 per device | All devices of a tensor group see the same rows. |
# | GPT-3: 64 replicas, 16 stages, batch 1,536. | efficiency 61.5 % | 24 micro-batches are too few for 16 stages. Megatron takes 8 replicas: 92.8 %. |
# | Prefer a reduce-scatter to an all-reduce. | half of the bytes, if half is enough | An all-reduce is a reduce-scatter and an all-gather. |
# | An all-reduce adds up on one device and broadcasts. | 2 (n - 1) / n arrays per device | A ring shares the work. The root of the drawing would send n - 1 arrays. |
# | Up to 8 times the memory: 1-D; up to 64 times: 2-D; above: 3-D. | compare states and activations | Weights are an eighth of the states, and a replicating axis adds no memory. |
# | `Mesh(shape=(4, 2))` | the text below | This is how JAX prints a mesh. |
# | `visualize_array_sharding` prints 0 to 7. | `CPU 0` to `CPU 7` | [Debugging](#debugging) shows the table. |

# %%
print(mesh)
assert (8 / 4, 4 / (4 + 8 - 1), (4 - 8 + 1) / 4) == (2, 4 / 11, -0.75)
assert len(holders(P("data"))) == 4
assert y.addressable_shards[0].data.shape == (32, 1024)
assert (share["data, tensor"], share["data, tensor, pipe"]) == (2, 4)
assert (memory["optimizer"], memory["total"]) == (12 * GB, 16 * GB)
assert (80 // 16, 80 // 2, 80 // 8, 8 * 2, 8 * 16) == (5, 40, 10, 16, 128)
assert (1.5 * 2, 1.5 * 4) == (3, 6)
by_tensor = mf.layout({"tensor": 4}, P(), {"tokens": ("int32", (1024,))}, batch_size=64)
assert by_tensor.report()["arrays"]["tokens"]["shard_shape"][0] == 64

# %% [markdown]
# ResNet-50's 102 MB, 1 + 2 + 3 + 4 = 10 and the 350 GB of GPT-3's weights are right in these texts.
#
# [How to split a model](strategy.py) goes on from here: experts, long sequences, the input of a model, and
# how well the planner's times agree with published runs.
