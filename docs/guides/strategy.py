# ruff: noqa: E501, RUF003

# %% [markdown]
# # How to split a model
#
# After this guide you can split a model over devices, and you know what moves between them, what each of them
# holds, and how long a step takes.
#
# | level | before you begin | running time | memory |
# | --- | --- | --- | --- |
# | intermediate | matrix products, a little JAX; `pip install '.[jax]'` | 3 s | 450 MB |
#
# This guide begins with one matrix product on eight devices, and ends with 175 billion parameters on
# thousands. Each step shows what moves between devices, what a device holds, and how long it takes. Only one
# cell computes on devices.
#
# - [One product](#one-product) · [Data parallelism](#data-parallelism) · [What training
#   takes](#what-training-takes) · [Dividing the states](#dividing-the-states) · [Activations](#activations) ·
#   [Does it fit?](#does-it-fit) · [Which axis?](#which-axis) · [Tensor parallelism](#tensor-parallelism)
# - [Pipelines](#pipelines) · [Three axes](#three-axes) · [Experts](#experts) · [The input](#the-input) ·
#   [Slower than planned](#slower-than-planned) · [What common texts say](#what-common-texts-say) · [How far
#   to trust it](#how-far-to-trust-it)
#
# Your own question is one line, `meshfeed advise llama3-8b --devices 8 --device h100-80`, or a call of
# `mf.advise`, or a JSON document. Below, `plan` asks the questions of the eight documents in
# [docs/strategies](../strategies), and shows a link that opens the question in the browser. For links in a
# notebook, write the page beside it: `meshfeed page > layout.html`.

# %%
import base64
import builtins
import re
import zlib

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf

jax.config.update("jax_num_cpu_devices", 8)


def show(picture):
    """Shows a picture in a notebook and on the site, and its text elsewhere."""
    getattr(builtins, "display", print)(picture)


class Link(str):
    """An address, which a notebook shows as a link."""

    def _repr_html_(self):
        return f'<a href="{self}">Open this question in the browser</a>'


def plan(*parts, **options):
    """Asks the planner, and shows a link with the question."""
    advice = mf.advise(*parts, **options)
    packed = zlib.compress(advice.to_json().encode(), level=9, wbits=-15)
    fragment = base64.urlsafe_b64encode(packed).decode().rstrip("=")
    show(Link(f"layout.html#strategy.v1={fragment}"))
    return advice


def paragraph(report, start):
    """Returns the paragraph of a report with a line that begins with a text."""
    paragraphs = str(report).split("\n\n")
    (found,) = [
        p for p in paragraphs if re.search(f"^(error: )?{re.escape(start)}", p, re.MULTILINE)
    ]
    return found[found.index(start) :].rstrip()


def ranking(advice, keep=9):
    """Prints the table of the best candidates of a report."""
    _, *lines = paragraph(advice, "GB (10^9 bytes)").splitlines()
    later = [i for i, line in enumerate(lines) if line[:2].strip().isdigit()]
    print("\n".join(lines[: later[keep] if keep < len(later) else None]))


# %% [markdown]
# ## One product
#
# A mesh names the devices. A spec says which axis of the mesh splits which dimension of an array.

# %%
mesh = {"data": 4, "model": 2}
show(
    mf.diagram(
        "matmul",
        mesh=mesh,
        x={"shape": (128, 4096), "spec": P("data", None)},
        w={"shape": (4096, 2048), "spec": P(None, "model")},
    )
)

# %% [markdown]
# The same in JAX, on eight devices of the CPU:

# %%
devices = jax.make_mesh((4, 2), ("data", "model"))
x = jax.device_put(np.ones((128, 4096), np.float32), NamedSharding(devices, P("data", None)))
w = jax.device_put(np.ones((4096, 2048), np.float32), NamedSharding(devices, P(None, "model")))
y = jax.jit(jax.numpy.matmul)(x, w)
print(y.shape, y.addressable_shards[0].data.shape)
assert (y.shape, y.addressable_shards[0].data.shape) == ((128, 2048), (32, 1024))

# %% [markdown]
# - `data` splits the rows of `x`, and `model` splits the columns of `w`. The product is split both ways, and
#   no data moves.
# - The output is `(128, 2048)` globally and `(32, 1024)` on a device. A text that calls it `(32, 2048)` mixes
#   the two.
# - `mf.draw(x)` draws a live array, a sharding or a tree of parameters in this way, of any rank. JAX itself
#   has `x.sharding`, `x.devices()` and `x.addressable_shards`.
#
# If a spec splits the dimension that both matrices share, each device has only a part of each sum. A
# collective adds the parts. It runs in groups of devices that differ only in its axis. On 4 × 2 devices, an
# array that `data` splits has four parts, one for each row of the mesh. A collective over `data` runs in two
# groups of four, the columns:

# %%
product = mf.diagram(
    "matmul",
    mesh=mesh,
    x={"shape": (128, 4096), "spec": P(None, "model")},
    w={"shape": (4096, 2048), "spec": P("model", None)},
)
print(paragraph(product, "Each device multiplies").partition("\nThe numbers")[0])
print(*str(mf.draw(mesh)).splitlines()[-2:], sep="\n")
assert "2 groups over data: {0, 2, 4, 6} {1, 3, 5, 7}" in str(mf.draw(mesh))

# %% [markdown]
# ## Data parallelism
#
# Every device holds the whole model and a part of the batch. An all-reduce makes the gradients equal on all
# devices.

# %%
inputs = {"shape": (4096, 128), "spec": P(None, "data")}  # transposed: the gradient of a matrix
gradients = {"shape": (128, 2048), "spec": P("data")}
show(mf.diagram("matmul", mesh={"data": 2}, x=inputs, w=gradients))
for op in ("all-reduce", "reduce-scatter", "all-gather"):
    steps = mf.diagram("collective", op=op, devices=8, algorithm="ring")
    print(f"{op}: {str(steps).splitlines()[2]}")

# %% [markdown]
# Replication alone communicates nothing: the all-reduce belongs to the gradients. A ring makes it a
# reduce-scatter and an all-gather, and sends almost twice the array. A reduce-scatter alone is cheaper, but
# only if the consumer wants a part. `mf.diagram("collective", …)` shows the steps. With `bytes` and `device`,
# it also tells what each link carries, and the time over the links of such devices at their full rate:
#
# ```sh
# meshfeed draw collective all-reduce --bytes 1000000000 --device h100-80
# ```
#
# ## What training takes
#
# A model of 10^9 parameters in 16 bits takes 2.0 GB. Training it with AdamW takes eight times as much, before
# any activation:

# %%
for size in (12, 24):
    advice = plan(
        {"parameters": 10**9},
        {"batch": 32, "optimizer": "adamw"},
        {"devices": 1, "memory_bytes": size * 10**9},
    )
    ranking(advice)
    memory = advice.candidates[0].memory
    states = memory["weights"] + memory["gradients"] + memory["optimizer"]
    assert (states, memory["weights"], advice.fits) == (16 * 10**9, 2 * 10**9, size == 24)

# %% [markdown]
# Columns are GB (10^9 bytes) per device. *free* is what is left of the memory, after a margin of a tenth. A
# time is `?` if the document lacks a number that it needs. Weights and gradients take 2 bytes each. AdamW
# keeps a copy of the weights and two moments in 32 bits, which are 12 bytes. The sum is 16 bytes per
# parameter [[ZeRO](https://arxiv.org/abs/1910.02054), section 3.1]. With optax and weights in float32, the
# copy is unnecessary, and the sum is the same: 4 bytes of weights, 4 of gradients and 8 of moments. Texts
# that count 4 bytes for the optimizer forget a moment, the copy, or 32 bits. By the same count, a device of
# 80 GB can train 5 billion parameters without activations, and not the 10 billion that are often named.
#
# ## Dividing the states
#
# Data parallelism keeps the same states on every device. ZeRO divides them instead: stage 1 the optimizer,
# stage 2 also the gradients. Stage 3 divides everything. JAX users know it as fully sharded data parallelism,
# and it is the axis `fsdp` here.

# %%
states = mf.advise(
    {"parameters": 7_500_000_000},
    {"batch": 64},
    {"devices": 64, "memory_bytes": 80 * 10**9},
    search={"axes": {"data": [1, 64], "fsdp": [1, 64]}},
)
ranking(states)
gpt2 = plan("gpt2-xl", {"batch": 64}, {"device": "a100-40", "devices": 4}, search={"keep": 8})
print(str(gpt2).splitlines()[0])
ranking(mf.advise("gpt2-xl", {"batch": 64}, {"device": "a100-40", "devices": 4}, {"keep": 2}))
# The first table of the paper: 120 GB without ZeRO, 31.4 GB, 16.6 GB and 1.9 GB for its stages.
printed = [candidate.memory for candidate in states.candidates]
sums = [m["weights"] + m["gradients"] + m["optimizer"] for m in printed]
assert [f"{total / 1e9:.3g}" for total in sums] == ["31.4", "16.6", "1.88", "120"]
assert f"{gpt2.best.memory['weights'] / 1e9:.1f}" == "3.1"

# %% [markdown]
# Per row, the sum of weights, gradients and optimizer agrees with the paper's first table. *step* is the
# expected time, and *range* the time in the best and in the worst case. If gradients are scattered once per
# step, stages 1 and 2 send as much as plain data parallelism. Stage 3 sends half as much again, because both
# passes gather the weights. Tensor and pipeline parallelism divide the states too. An axis that replicates
# divides nothing. The weights of GPT-2 take 3.1 GB; texts that say 6 GB count 32 bits.
#
# ## Activations
#
# Activations depend on the batch, the sequence, the width and the depth. A number without these four means
# nothing:

# %%
cluster = {"device": "h100-80", "devices": 8}
for sequence in (2048, 4096, 8192):
    model = mf.strategy.preset("llama3-8b", sequence=sequence)
    ranking(mf.advise(model, {"batch": 128}, cluster), keep=1)

# %% [markdown]
# *micro* is micro-batches × examples of one, *activ* are activations, and *bufs* are gathered weights and
# what a layer computes again. The gradients of micro-batches add up, so the global batch is micro-batches ×
# examples × replicas. A longer sequence takes more memory per example, so the planner splits the states
# further, takes smaller micro-batches, and recomputes if that is not enough.
#
# - Without recomputation, a layer keeps s·b·h·(34 + 5·a·s/h) bytes, for sequence s, micro-batch b, width h
#   and a heads [[Korthikanti et al.](https://arxiv.org/abs/2205.05198), equation 1]. Flash attention has no
#   term with s².
# - With full recomputation, a layer keeps its input, 2·s·b·h bytes, and the forward pass runs twice. In JAX,
#   this is `jax.checkpoint` around each layer.
# - With `dots`, a layer keeps the results of products with weights. In JAX, this is `jax.checkpoint` with the
#   policy `dots_with_no_batch_dims_saveable`. It computes the scores of attention again, which takes little.
# - The formula counts fused kernels. *max* is what JAX keeps, without recomputation more than twice the
#   formula.
#
# ## Does it fit?
#
# The weights of Llama 3 8B, 16.1 GB, fit into one device. Its training states, eight times as much, do not.

# %%
llama = plan("llama3-8b", {"tokens": 2**20}, cluster, search={"keep": 8})
show(llama)
assert (llama.best.mesh, llama.best.zero) == ({"data": 8}, 2)
assert f"{8_030_261_248 * 2 / 1e9:.1f}" == "16.1"
assert "8,030,261,248 parameters" in str(llama)

# %% [markdown]
# Every way of splitting the devices is evaluated, except the ways that the report lists under *Not
# evaluated*. The fastest that fits as JAX runs it wins, and one sentence says why each other one does not.
# Those that fit with fused kernels only come after it. Among equally fast ones, the simpler one is first. A
# candidate that misses by less than 10 % reads *near*. If nothing fits, the report names small changes that
# make something fit:

# %%
small = mf.advise("llama3-70b", {"tokens": 2**20}, {"device": "h100-80", "devices": 8})
print(paragraph(small, "no candidate fits: "))
assert not small.fits

# %% [markdown]
# ## Which axis?
#
# | axis | splits | memory of the weights | sends |
# | --- | --- | --- | --- |
# | `data` | the batch | whole, but ZeRO divides states | gradients, once per step |
# | `fsdp` | the batch, and every array | 1/fsdp | weights, twice per micro-batch, and gradients once |
# | `tensor` | heads, hidden units, the vocabulary | 1/tensor | activations, four times per layer and micro-batch |
# | `pipe` | the layers | 1/pipe | activations, between stages |
# | `context` | the sequence | whole, but ZeRO divides states | keys and values, in every layer; gradients, as `data` |
# | `expert` | the batch, and the experts | 1/expert of the experts | tokens, four times per layer with experts; other gradients, as `data` |
#
# Take `data` while the states fit, then divide them by ZeRO or `fsdp`. Both send during computation. `tensor`
# comes next, inside a node, because computation waits for it. `pipe` sends least, but its stages wait for
# each other. `context` is for long sequences.
#
# In JAX, an axis is a name in the specs of arrays. `P(("data", "fsdp"))` splits a batch, `P("fsdp",
# "tensor")` the first matrix of a pair, and `P("tensor", "fsdp")` the second. On axes of type Auto, `jax.jit`
# inserts the collectives. ZeRO stage 1 is `"data"` in the specs of the optimizer's states. `pipe` and
# `context` need programs of their own, in `jax.shard_map` with `jax.lax.ppermute`.
#
# ## Tensor parallelism
#
# Each device holds a part of every matrix. "GPU 0 has layers 0 to 2, GPU 1 layers 3 to 5" is a pipeline,
# although some texts call it tensor parallelism. The first matrix is split by columns, and the second by
# rows, so that only one all-reduce follows:

# %%
left, first = {"shape": (128, 4096)}, {"shape": (4096, 16384), "spec": P(None, "tensor")}
hidden, second = {"shape": (128, 16384)}, {"shape": (16384, 4096), "spec": P("tensor")}
show(mf.diagram("matmul", mesh={"tensor": 2}, x=left | {"spec": P()}, w=first))
show(mf.diagram("matmul", mesh={"tensor": 2}, x=hidden | {"spec": P(None, "tensor")}, w=second))

# %% [markdown]
# These all-reduces happen in every layer, and computation waits for them. So the axis stays inside a node,
# where links are fast. Llama 2 70B on 32 devices shows the price of leaving it:

# %%
wide = mf.advise(
    "llama2-70b",
    {"batch": 256, "micro_batch": 4, "recomputation": "full"},
    {"device": "h100-80", "devices": 32},
    search={"axes": {"tensor": [8, 16, 32], "fsdp": [1, 2, 4], "pipe": 1, "data": 1}},
)
ranking(wide)
print(paragraph(wide, "Why:"))
assert [c.mesh.get("tensor") for c in wide.candidates] == [8, 16, 32]
assert "takes 1.85 times as long" in str(wide)

# %% [markdown]
# All devices of a tensor group see the same examples. "Model parallelism on 4 devices, batch 64, 16 per
# device" describes data parallelism.
#
# ## Pipelines
#
# A pipeline splits the layers. The batch flows through it in micro-batches, and stages wait at the beginning
# and at the end.

# %%
show(mf.diagram("pipeline", schedule="1f1b", stages=4, micro_batches=8))

# %% [markdown]
# With p stages and m micro-batches, the idle share is (p-1)/(m+p-1)
# [[GPipe](https://arxiv.org/abs/1811.06965)]. Megatron's papers print (p-1)/m, which is the idle time over
# the *ideal* time. One minus that is not an efficiency, although texts print it as (m-p+1)/m. For 6 stages
# and 3 micro-batches it is negative.


# %%
def idle(schedule, stages, micro_batches, **more):
    """Returns the idle share of a schedule, and the activations that stage 0 keeps."""
    drawn = str(
        mf.diagram(
            "pipeline", schedule=schedule, stages=stages, micro_batches=micro_batches, **more
        )
    )
    share = re.search(r"idle for ([\d.]+ %)", drawn)[1]
    return (
        f"idle for {share} of the time, activations of stage 0: {drawn.split('▏ ')[1].split()[0]}"
    )


for stages, micro_batches in ((4, 8), (16, 24), (16, 192), (6, 3)):
    found = idle("1f1b", stages, micro_batches)
    print(f"{stages} stages, {micro_batches} micro-batches: {found}")
    share = (stages - 1) / (micro_batches + stages - 1)
    assert f"idle for {100 * share:.1f} %" in found
for schedule in ("gpipe", "1f1b", "interleaved", "zero-bubble"):
    chunks = {"chunks": 2} if schedule == "interleaved" else {}
    print(f"4 stages, 8 micro-batches, {schedule}: {idle(schedule, 4, 8, **chunks)}")

# %% [markdown]
# GPipe keeps the activations of all micro-batches, and 1F1B at most as many as there are stages. An
# interleaved stage has several chunks of layers: it is less idle, sends more messages, and keeps more (the
# count is in chunks). [Zero-bubble](https://arxiv.org/abs/2401.10241) runs the gradients of the weights
# later, where a stage would be idle.
#
# ## Three axes
#
# GPT-3 175B on 1,024 devices, as [Megatron's
# script](https://github.com/NVIDIA/Megatron-LM/blob/090e141cc47ddf3317464bf9af7561b932c131c1/examples/pretrain_gpt3_175B.sh)
# splits it: `tensor` 8 inside a node, 16 stages, 8 replicas. With the same batch of 1,536, 64 replicas are
# 8,192 devices:

# %%
for devices, data in ((1024, 8), (8192, 64)):
    gpt3 = plan(
        "gpt3-175b",
        {
            "batch": 1536,
            "micro_batch": 1,
            "recomputation": "full",
            "attention": "plain",
            "schedule": "1f1b",
        },
        {"device": "a100-80", "devices": devices},
        search={"axes": {"pipe": 16, "data": data, "tensor": 8}, "zero": [0, 1]},
    )
    print(str(gpt3).splitlines()[0])
    ranking(gpt3, keep=1)
    print(paragraph(gpt3, "A step of candidate 1:"))
bubble = gpt3.best.time["bubble"] / gpt3.best.time["step"]
print(f"bubble: {bubble:.3f} of the step")
assert (gpt3.best.micro_batches, bubble > 1 / 3) == (24, True)

# %% [markdown]
# In the second run, each replica has 24 micro-batches, fewer than twice the stages, and more than a third of
# the step is bubble. Eight times the devices are not eight times as fast. A device holds 1/(tensor × pipe) of
# the weights in both runs, because `data` replicates. Only the optimizer shrinks with it, by ZeRO.
#
# ## Experts
#
# A token uses a few of the experts, and memory holds all of them. The axis `expert` splits the experts. Two
# all-to-all per layer and pass move the tokens:

# %%
mixtral = plan(
    mf.strategy.transformer(
        layers=32,
        hidden=4096,
        heads=32,
        kv_heads=8,
        ffn=14336,
        gated=True,
        vocab=32000,
        sequence=4096,
        experts={"count": 8, "active": 2, "capacity": 1.25},
    ),
    {"tokens": 2**22},
    {"device": "h100-80", "devices": 64},
    search={"keep": 8},
)
ranking(mixtral, keep=3)
assert mixtral.best.mesh == {"fsdp": 64}

# %% [markdown]
# Here `fsdp` alone is expected to be the fastest: its collectives run during computation, and computation
# waits for an all-to-all. In the worst case, without that overlap, the third candidate is faster.
#
# ## The input
#
# The best candidate ends in a layout for the loader, in the report's key `layout`. In Python,
# `mf.Loader(dataset, advice.best.make_mesh(), layout=advice.layout)` loads it on a JAX mesh with these axes.
# The report says what it asks of the input:

# %%
resnet = plan(
    {
        "parameters": 25557032,
        "activation_bytes_per_example": 44455936,
        "flops_per_example": 8178000000,
        "inputs": {
            "image": {"shape": ["B", 224, 224, 3], "dtype": "uint8"},
            "label": {"shape": ["B"], "dtype": "int32"},
        },
    },
    {
        "batch": 1024,
        "optimizer": "momentum",
        "precision": {
            "compute": "bfloat16",
            "weights": "float32",
            "master": None,
            "gradients": "float32",
            "moments": "float32",
        },
        "efficiency": [0.1, 0.25],
    },
    {"device": "a100-40", "devices": 8},
    search={"keep": 6},
)
print(paragraph(resnet, "Input of candidate 1:"))
print(paragraph(gpt3, "Input of candidate 1:"))

# %% [markdown]
# Axes that split neither batch nor sequence make processes read the same rows, and meshfeed's loaders deliver
# them equal. Give `"input": {"rows_per_second": …}`, the sum of all processes, and the report says whether
# the loaders keep up. `meshfeed bench --json LAYOUT.json FILE…` measures the rows per second of one process.
# In Python, `input=` takes that JSON, or `loader.stats()`, and computes the sum.
#
# ## Slower than planned
#
# Compare a measured step with the parts that the report lists under *A step of candidate 1*.
#
# | what is slow | how to see it | what to do |
# | --- | --- | --- |
# | the input | `loader.stats()` has `wait_seconds` | read with more processes, or from a faster disk |
# | computation | a trace of `jax.profiler`, without collectives | larger micro-batches; set `training.efficiency` to what you measure |
# | communication | the same trace: time of each collective | compare it with the report's; set `training.link_efficiency` |
# | one device | the trace of each device; the report's stages | divide layers, experts or rows evenly |
#
# With your numbers in the document, the ranking holds for your cluster.
#
# ## What common texts say
#
# [Sharding patterns](sharding_patterns.py#what-the-usual-tables-get-wrong) corrects twenty statements on
# meshes, pipelines, memory and collectives, with a computation for each number. Three more are about the
# states:
#
# | text | right, and why |
# | --- | --- |
# | Checkpoints keep 34·s·b·h bytes per layer. | That is selective recomputation. Full recomputation keeps 2·s·b·h. |
# | Tensor parallelism divides weights, but not gradients. | It divides weights, gradients and optimizer states alike. |
# | ZeRO stage 2 leaves 4 bytes per parameter undivided. | Only the 2 bytes of the weights. It divides gradients. |
#
# The same texts speak of the input:
#
# | text | right, and why |
# | --- | --- |
# | `P(None, None, None, "model")` splits images over the model axis. | Three channels do not divide by two. And it splits the input, not the model. |
# | `devices.reshape(2, 2)` makes a mesh of four or more devices. | It makes one of exactly four. `jax.make_mesh((n // 2, 2), …)` takes n. |
# | Time a loader by `device_put` of a batch. | The clock must start before the batch is asked for, or it measures only the copy. |
# | Pad the last batch to a multiple of the devices. | Pad it to the full batch, with a mask in every batch. Another shape or key compiles the step again. |
# | More devices need less memory for the batch. | Only at a fixed global batch. At a fixed batch per device it stays. |
# | `DistributedSampler` becomes a `PartitionSpec`. | A sampler chooses rows for processes; a spec places bytes on devices. The mesh decides both here. |
# | Shuffle on each device. | Shuffle globally, per epoch. Devices that shuffle alone repeat and miss rows. |
# | `with mesh:` frames the loop. | It is deprecated. Use `jax.set_mesh`. |
# | JAX raises an error if replicas differ. | It does not notice. [verify_replicas](distributed.py) does. |
#
# ## How far to trust it
#
# - **Memory of states** is exact: shapes, element types and the mesh determine it.
# - **Activations** are an interval around a published formula, because compilers fuse and recompute. Peaks
#   that
#   [torchtitan](https://github.com/pytorch/torchtitan/blob/main/benchmarks/llama3_h100_202412_torchtitan.md)
#   measured without pipeline and context axes lie inside. XLA for TPUs keeps the upper bound of a layer
#   without `jax.checkpoint`, what the report says with recomputation `dots`, and the layer's input with full
#   recomputation. On Auto axes, constrain them to the rows of the batch with
#   `jax.lax.with_sharding_constraint`. Otherwise XLA may split them as the weights are, and take more.
# - **Traffic** of `data`, `tensor`, `fsdp` and `expert` has the bytes of programs that XLA compiles for TPUs.
#   Only norms differ, which `fsdp` gathers.
# - **Models** are decoders with full or latent attention (`latent`, as in DeepSeek-V3; its module for a second
#   token does not count). Sliding windows have no key, and count as full attention. The scales of norms of
#   queries and keys do not count. Describe other models by `parameters` or `tree` (in Python,
#   `mf.strategy.tree(params)`).
# - **Training** updates all parameters, on the devices. LoRA, frozen parameters and states in the memory of
#   the host are not planned.
# - **Devices** are GPUs, or chips of TPUs: a slice `v5p-128` has 64. A TPU7x chip is two devices, as in JAX.
# - **The whole training** in days and device-hours follows from `training.total_tokens`.
# - **Time** is an interval: matrix products reach a share of the peak, links reach a share of their
#   bandwidth, and communication hides or does not. The table below holds it against 249 published runs.
# - **An answer** takes 5 to 8 ms of processor time per 10^4 candidates, and about ten times as long in a browser:
#   see the [benchmarks](../benchmarks.md#the-strategy-planner).
# - **Hardware** is one table with source and date for each number. An unknown number leaves a time out, and
#   the report says which.
# - **Assumptions** are listed in the report. `training.efficiency`, `training.link_efficiency` and
#   `training.overlap` change them. `meshfeed explain CODE` explains the code of an assumption, of a rule in
#   `pruned`, or of a problem.
#
# *Inside* counts the runs with a time in the interval. The ratio is the expected time over the published
# one.
#
# | runs: devices | inside | median ratio | ratios |
# | --- | --- | --- | --- |
# | Megatron, table 1; Korthikanti, table 5: A100 | 19 of 19 | 1.01 | 0.77 to 1.25 |
# | MPT: H100 | 22 of 25 | 0.75 | 0.50 to 1.09 |
# | NeMo, GPT-3 and Llama 3.1 70B: H100 | 11 of 11 | 1.15 | 1.14 to 1.16 |
# | MaxText, Llama 2 70B: H100 | 6 of 6 | 1.28 | 1.27 to 1.30 |
# | NeMo, GPT-3 and Llama 3.1 70B, 8 bits: H100 | 11 of 11 | 0.99 | 0.95 to 1.08 |
# | MaxText, Llama 2 70B, 8 bits: H100 | 6 of 6 | 1.07 | 1.04 to 1.22 |
# | NeMo 24.07, 8 bits: H100 | 8 of 8 | 1.04 | 0.71 to 1.16 |
# | MaxText: TPU v5e | 18 of 18 | 1.00 | 0.85 to 1.13 |
# | MaxText, Llama 2 70B and 3.1 405B: TPU v6e, v7 | 3 of 3 | 1.02 | 0.91 to 1.13 |
# | Megatron, table 2; MT-NLG; BLOOM; GPT-NeoX: A100 | 11 of 11 | 1.03 | 0.76 to 1.13 |
# | MPT: A100 | 50 of 56 | 0.93 | 0.60 to 1.31 |
# | Llama 3, table 4; AutoModel: H100 | 4 of 4 | 1.01 | 0.69 to 1.02 |
# | NeMo, Llama 3.1 405B and Nemotron-4: H100 | 16 of 16 | 1.20 | 1.16 to 1.28 |
# | NeMo, Llama 3.1 405B and Nemotron-4, 8 bits: H100 | 16 of 16 | 1.15 | 1.03 to 1.27 |
# | Megatron-Bridge, 8 bits: H100, B200 | 5 of 5 | 1.03 | 0.80 to 1.14 |
# | Megatron-Bridge, 8 bits: GB200, GB300 | 6 of 6 | 0.91 | 0.74 to 1.21 |
# | Megatron-Bridge, Llama 3.1 405B: GB200 | 2 of 2 | 0.96 | 0.95 to 0.96 |
# | MaxText, PaLM: TPU v5p, v4 | 7 of 7 | 0.91 | 0.87 to 1.13 |
# | MaxText, Llama 3.1 70B: TPU v7 | 3 of 3 | 1.08 | 0.98 to 1.08 |
# | Megatron, table 2, ZeRO stage 3: A100 | 3 of 4 | 0.95 | 0.49 to 0.99 |
# | Megatron-Bridge, AutoModel, 128 experts: H100, B200 | 3 of 3 | 0.49 | 0.38 to 1.42 |
# | Megatron-Bridge, narrow experts: H100, B200, GB200, GB300 | 7 of 7 | 0.87 | 0.67 to 1.37 |
# | MaxText, narrow experts: TPU v7 | 2 of 2 | 1.06 | 0.70 to 1.06 |
#
# The first nine rows chose the default efficiencies, with half of the runs on TPU v5p and v4 and half of the
# runs with narrow experts. The other runs test them: models and libraries that chose nothing. An efficiency
# is the interval of shares that make expected times equal published ones, rounded outward to 5 %. Runs
# without a published split, such as Llama 2, are left out. The pages of NeMo and Megatron-Bridge name no
# recomputation, so these runs count as without it. The runs on TPU v5p and v4 have `"overlap": {"tensor":
# true}`, as XLA overlaps there. Four warnings:
#
# - ZeRO stage 3 on 48 nodes and more took longer than its links allow. That row chose this rule: over more
#   than 32 nodes, computation waits for `fsdp`, and its links reach half of their share.
# - Experts narrower than 4096, such as the 128 of Qwen3 30B, reach less of the peak: 5 % with 8 bits
#   (Megatron-Bridge), 15 % to 55 % with 16 bits. The report warns, and its range is wide.
# - Models below a billion parameters take almost twice as long. Convolutions take longer, too: see
#   `efficiency` of ResNet-50.
# - Sequences of 32,768 tokens and more take up to twice as long on H100, because attention reaches less of
#   the peak than other products.
#
# Sources: [Megatron](https://arxiv.org/abs/2104.04473), [Korthikanti et
# al.](https://arxiv.org/abs/2205.05198),
# [MPT](https://github.com/mosaicml/llm-foundry/tree/main/scripts/train/benchmarking),
# [MaxText](https://github.com/AI-Hypercomputer/maxtext), [MT-NLG](https://arxiv.org/abs/2201.11990),
# [BLOOM](https://github.com/bigscience-workshop/bigscience/tree/master/train/tr11-176B-ml),
# [GPT-NeoX](https://arxiv.org/abs/2204.06745), [Llama 3](https://arxiv.org/abs/2407.21783),
# [Megatron-Bridge](https://docs.nvidia.com/nemo/megatron-bridge/latest/performance-summary.html),
# [AutoModel](https://docs.nvidia.com/nemo/automodel/latest/performance/performance-summary.md),
# [PaLM](https://arxiv.org/abs/2204.02311), [NeMo and MaxText on
# H100](https://github.com/NVIDIA/dgxc-benchmarking), [NeMo,
# July 2024](https://github.com/NVIDIA/NeMo/blob/main/docs/source/performance/performance_summary.md), [MaxText on
# TPU v6e and v7](https://github.com/AI-Hypercomputer/tpu-recipes).
