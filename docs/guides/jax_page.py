# ruff: noqa: E501, RUF003, SIM115

# %% [markdown]
# # JAX's page on distributed data loading, all of it
#
# You can plan, load and check an array over many processes, whatever its sharding is.
#
# | level | before you begin | running time | memory |
# | --- | --- | --- | --- |
# | intermediate | [From one process to many](distributed.py) or a little `jax.distributed`; `pip install '.[jax,arrow]'` | 8 s | 400 MB |
#
# JAX's documentation has a page on [distributed data
# loading](https://docs.jax.dev/en/latest/distributed_data_loading.html). It explains which data a process
# must load, and why that is easy to get wrong. This guide follows that page from the first to the last
# figure. Everything that the page draws, this guide computes and runs, including the case without code on
# the page. The last section corrects small slips of the page, as it was in 2026.
#
# - [A wrong shard computes](#a-wrong-shard-computes) · [What a process needs](#what-a-process-needs)
# - [One array, three shardings](#one-array-three-shardings) · [Four ways to load](#four-ways-to-load)
# - [Three replications](#three-replications) · [Four real processes](#four-real-processes)
# - [Data parallelism](#data-parallelism) · [A model inside a process](#a-model-inside-a-process)
# - [A model across processes](#a-model-across-processes) · [Replicas that differ](#replicas-that-differ)
# - [What notices](#what-notices) · [Batches of other loaders](#batches-of-other-loaders)
# - [Weights from a checkpoint](#weights-from-a-checkpoint)
# - [Slips of the page](#slips-of-the-page)

# %% [markdown]
# ## A wrong shard computes
#
# A `jax.Array` consists of shards, and each device holds one. The sharding says which part of the array a
# device holds. Your program provides the contents. If a device gets the contents of another device, every
# shape is right, and the computation runs.
#
# Here are eight rows on eight devices, with labels that are twice the rows. A perfect model multiplies by
# two, so its loss is 0. In the second array, two devices got each other's row.

# %%
import builtins
import inspect
import json
import logging
import os
import socket
import subprocess
import sys
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor, as_completed

import jax
import numpy as np
import pyarrow as pa
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 8)


def show(picture):
    """Shows a drawing: as a picture in a notebook, as text elsewhere."""
    getattr(builtins, "display", print)(picture)


def wrap(text):
    """Prints a text in lines of at most 96 columns."""
    print(textwrap.fill(text, 96, subsequent_indent="  "))


devices = jax.devices()
by_rows = NamedSharding(Mesh(np.array(devices), ("data",)), P("data"))


def array_of(rows):
    """Builds an array of eight rows, one for each device."""
    parts = [jax.device_put(rows[i : i + 1], device) for i, device in enumerate(devices)]
    return jax.make_array_from_single_device_arrays((8,), by_rows, parts)


@jax.jit
def loss(rows, labels):
    return ((2 * rows - labels) ** 2).mean()


rows = np.arange(8, dtype=np.float32)
labels = array_of(2 * rows)
right, wrong = array_of(rows), array_of(rows[[1, 0, 2, 3, 4, 5, 6, 7]])
print("right:", loss(right, labels), " wrong:", loss(wrong, labels))
assert (loss(right, labels), loss(wrong, labels)) == (0, 1)

# %% [markdown]
# No error, no warning, and a loss that could belong to a model that still learns. The rest of this guide
# answers two questions. Which data must a process load? And what notices if it loaded something else?

# %% [markdown]
# ## What a process needs
#
# JAX answers the first question for the devices of the running process: `sharding.addressable_devices`, and
# for each of them an index, `sharding.addressable_devices_indices_map(shape)`. In one process, these are all
# devices.

# %%
for device, index in by_rows.addressable_devices_indices_map((8,)).items():
    print(device.id, index)

# %% [markdown]
# You want that answer before the job runs, for every process, on a laptop. `mf.layout` computes it from the
# mesh, the spec and the shape. It needs no devices and no data. The running example of the page is an array
# of shape (64, 128) on four processes with two devices each. Its first figure splits the second dimension:

# %%
ROW = {"x": ("float32", (128,))}  # the array x has rows of 128 numbers


def plan(axes, spec, **options):
    """Plans a batch of 64 rows on eight devices of four processes."""
    return mf.layout(axes, spec, ROW, batch_size=64, **{"processes": 4} | options)


columns = plan({"x": 8}, P(None, "x"))
show(columns)

# %% [markdown]
# The arrow says that the second dimension, number 1, runs downwards. The colors, or `p0` to `p3` in text, are
# the processes. Each device holds (64, 16), and process 0 needs the columns 0 to 32. The last lines say that
# all processes read the same rows. That is right here, because they read other columns of them.
#
# The same as data. The function lists what the devices of a process need, and JAX's own answer confirms it:


# %%
def needs(plan, process):
    """Returns the part of x that each device of a process needs."""
    parts = plan.report()["arrays"]["x"]["devices"]
    return {part["id"]: part["index"] for part in parts if part["process"] == process}


print("process 2 needs", needs(columns, 2))
assert needs(columns, 2) == {4: [[0, 64], [64, 80]], 5: [[0, 64], [80, 96]]}

x = np.arange(64 * 128, dtype=np.float32).reshape(64, 128)
sharding = NamedSharding(Mesh(np.array(devices), ("x",)), P(None, "x"))
for device, index in sharding.devices_indices_map((64, 128)).items():
    part = [slice(*part) for part in needs(columns, device.id // 2)[device.id]]
    assert (x[tuple(part)] == x[index]).all()

# %% [markdown]
# ## One array, three shardings
#
# The page's second figure distributes the same shards to other devices. The order of the devices is part of a
# mesh. `jax.make_mesh` chooses it for fast links, so it may differ from the order of the processes, as [on
# TPUs](layouts.py#a-tpu-slice-with-scattered-hosts). Here every process needs two parts that do not touch:

# %%
order = [(process, 2 * process + local) for local in (0, 1) for process in range(4)]
print("(process, device) in mesh order:", order)
scattered = plan({"x": 8}, P(None, "x"), devices=order)
show(scattered)
assert needs(scattered, 0) == {0: [[0, 64], [0, 16]], 1: [[0, 64], [64, 80]]}

# %% [markdown]
# "Process p loads part p" is wrong here. The third figure splits both dimensions. Now two processes need the
# same rows, but other columns:

# %%
tiles = plan({"y": 2, "x": 4}, P("y", "x"))
show(tiles)
same = [part["same_rows_as"] for part in tiles.report()["processes"]]
assert same == [[1], [0], [3], [2]]

# %% [markdown]
# ## Four ways to load
#
# The page names four ways to bring the parts to the devices, its options 1 to 4, and before them two
# alternatives. Alternative 2 is the same as option 1. One picture compares the four. A bar is what one
# process does for one batch. It is a plan, so it also shows what you have not chosen.

# %%
show(mf.diagram("loading", layout=tiles))

# %% [markdown]
# | page | here | which process loads what |
# | --- | --- | --- |
# | option 1 | `loading="global"` | Every process reads the whole array, and throws away what its devices do not need. |
# | option 2 | `loading="device"` | Every device has a pipeline of its own. |
# | option 3 | `loading="process"`, the default | Every process reads once what its devices need. |
# | option 4 | `loading="reshard"` | Every process reads some equal part, and the parts move between devices. |
# | alternative 1 | none | One process reads everything, and sends the parts to the others. |
#
# Without replicas, options 2 and 3 read the same bytes. They differ when devices of one process share rows,
# as the two devices of a model replica do:

# %%
shared = plan({"data": 4, "model": 2}, P("data"))
show(mf.diagram("loading", layout=shared))

# %% [markdown]
# The numbers side by side, for one batch of 32 KiB. The columns are:
#
# - *read*: bytes that all processes read, from files or from a shared file system.
# - *host*: memory of the process that needs most, for a batch and two that are read ahead. Option 1 needs the
#   whole batch only while it reads, and then keeps its part: 32 + 3 × 8 = 56 in the first table.
# - *links*: bytes that have to move between devices.
# - *network*: bytes that have to move between processes. In option 4, they are a part of the links. The
#   collectives that XLA chooses may move more than these two.
#
# meshfeed does not offer alternative 1, so the function computes it. Process 0 reads the batch and keeps its
# part, as in option 1, and sends to every other process what that one needs.


# %%
def costs(axes, spec):
    """Returns KiB for one batch: read, host, links, network, for each way to load."""
    table = {}
    for number, way in enumerate(("global", "device", "process", "reshard"), start=1):
        totals = plan(axes, spec, loading=way).report()["totals"]
        names = ("read_bytes", "host_bytes", "interconnect_bytes", "network_bytes")
        table[f"option {number}, {way}"] = [totals[name] // 1024 for name in names]
    report = plan(axes, spec).report()
    batch = report["totals"]["batch_bytes"] // 1024
    sent = sum(process["bytes_per_step"] for process in report["processes"][1:]) // 1024
    table["one process sends"] = [batch, table["option 1, global"][1], 0, sent]
    return table


tables = {
    "(64, 128) in tiles": costs({"y": 2, "x": 4}, P("y", "x")),
    "replicas in a process": costs({"data": 4, "model": 2}, P("data")),
    "replicas across processes": costs({"model": 2, "data": 4}, P("data")),
}
for title, table in tables.items():
    print(f"{title:26}{'read':>8}{'host':>8}{'links':>8}{'network':>8}  KiB")
    for way, numbers in table.items():
        print(f"  {way:24}" + "".join(f"{number:8}" for number in numbers))

assert tables["(64, 128) in tiles"]["option 3, process"] == [32, 24, 0, 0]
assert tables["(64, 128) in tiles"]["one process sends"] == [32, 56, 0, 24]
assert tables["replicas in a process"]["option 2, device"][0] == 64
assert tables["replicas across processes"]["option 3, process"][0] == 64

# %% [markdown]
# - **Option 3 is the default, and nearly always right.** It reads what devices need, and nothing moves. The
#   page calls it the most complex, because the program must know what each device needs. Here the mesh knows.
# - **Option 1** is for small data, and for a comparison. With 1,000 processes, 1,000 processes read
#   everything.
# - **Option 2** reads what the devices of a process share once per device. It never costs less than option 3,
#   and many loaders in one process compete for its cores. By hand it is simpler, since a device needs only
#   one part.
# - **Option 4** reads every row of a batch once in the whole job. It pays when replicas are on many hosts and
#   storage is slow: in the last table it reads half of what option 3 reads. The price is traffic between
#   devices in every step.
# - **Alternative 1** reads least, but one process reads and sends for all of them. Its host and its network
#   link bound the job, and the rate does not grow with the number of hosts.
#
# In option 4, "some equal part" is rows for `loading="reshard"`. The page's figure loads a column per
# process. That is a spec. Load with the spec that is convenient, and constrain the array to the other
# sharding in the step:

# %%
convenient = sharding  # a column per process
grid = Mesh(np.array(devices).reshape(2, 4), ("y", "x"))
wanted = NamedSharding(grid, P("y", "x"))


@jax.jit
def step(x):
    return jax.lax.with_sharding_constraint(x, wanted) * 1


with mf.Loader(mf.from_arrays({"x": x}), specs=convenient, batch_size=64) as loader:
    loaded = next(iter(loader))["x"]
tiled = step(loaded)
show(mf.draw(loaded))
show(mf.draw(tiled))
assert (np.asarray(tiled) == x).all()
program = step.lower(loaded).compile().as_text()
kinds = ("all-gather", "all-to-all", "collective-permute")
used = [kind for kind in kinds if kind in program]
print("collectives:", *used)
assert used

# %% [markdown]
# XLA inserted the collectives. That is all of option 4: one more sharding, and traffic on the links. The
# meshes of this guide have Auto axes. On [Explicit axes](../guide.md#explicit-and-auto-axes), the function is
# `jax.sharding.reshard`:

# %%
explicit = mf.make_mesh({"y": 2, "x": 4}, axis_types=AxisType.Explicit)
wanted = NamedSharding(explicit, P("y", "x"))
loaded = mf.put(x, explicit, P(None, ("y", "x")))
tiled = jax.jit(lambda x: jax.sharding.reshard(x, wanted))(loaded)
print(loaded.sharding.spec, "became", tiled.sharding.spec)
assert (np.asarray(tiled) == x).all()

# %% [markdown]
# ## Three replications
#
# Devices that hold the same part are replicas. All four ways still work, but processes may have to read the
# same data. *Full replication*: the spec names no axis, so there are eight copies. meshfeed asks if that is
# meant. It is in pure model parallelism: all devices share one copy of the model, and need the whole batch.

# %%
full = plan({"x": 8}, P())
show(full)
assert [problem.code for problem in full.check()] == ["replicated", "same-rows"]

# %% [markdown]
# *Partial replication inside a process*: each copy is split over the two devices of one process. There are
# four copies, and every process reads everything.

# %%
inside = plan({"copy": 4, "x": 2}, P(None, "x"))
show(inside)

# %% [markdown]
# *Partial replication across processes*: each copy is split over two processes. There are again four copies
# of each half, but a process reads only one half. The page splits rows; processes 0 and 1 need the first half
# of the rows, 2 and 3 the second.

# %%
halves = plan({"y": 2, "copy": 4}, P("y"))
show(halves)

# %% [markdown]
# What each process reads, side by side:

# %%
replications = {"full": full, "inside a process": inside, "across processes": halves}
read = {}
for name, layout in replications.items():
    report = layout.report()
    read[name] = report["totals"]["read_bytes"] // 1024
    print(f"{name}: all processes read {read[name]} KiB")
    for part in report["processes"]:
        size = f"{part['bytes_per_step'] // 1024} KiB"
        print("  process", part["process"], "reads rows", part["rows"], size, end=", ")
        print("the same rows as", part["same_rows_as"])
assert read == {"full": 128, "inside a process": 128, "across processes": 64}

# %% [markdown]
# ## Four real processes
#
# The programs below run in four processes with two devices each. They join one `jax.distributed` job, as on a
# cluster. Each process waits for programs, runs them, and prints. `run` sends the source of functions to it,
# so use a notebook or a file: at its plain prompt, Python keeps no source. This is all a process does:

# %%
PROCESS = """
import json, logging, os, sys, traceback
import jax, numpy as np
import meshfeed as mf
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

port, rank = sys.argv[1:]
sys.stdout = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # output of C++ libraries goes to stderr
jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=4, process_id=int(rank),
                           cluster_detection_method="deactivate")
for program in sys.stdin:
    try:
        exec(json.loads(program))
    except BaseException:
        traceback.print_exc()
        os._exit(1)  # at once: an ordinary exit waits for the other processes
    print("done")
jax.distributed.shutdown()
"""


class Job:
    """Four processes that run the same programs."""

    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        env = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "2"}
        env["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        command = [sys.executable, "-c", PROCESS, port]
        self.processes = [
            subprocess.Popen([*command, str(rank)], env=env, **pipes) for rank in range(4)
        ]

    def run(self, function, *helpers, quiet=False):
        """Runs a function in all processes, and prints their lines, equal ones once."""
        source = "\n".join(map(inspect.getsource, (*helpers, function)))
        source = json.dumps(f"{source}\n{function.__name__}()")
        for process in self.processes:
            process.stdin.write(source + "\n")
            process.stdin.flush()
        with ThreadPoolExecutor(4) as threads:
            readers = [threads.submit(self._read, p) for p in self.processes]
            for reader in as_completed(readers):
                if reader.result() is None:
                    self.kill()  # otherwise the others wait for it in a collective
        printed = [reader.result() for reader in readers]
        if None in printed:
            sys.exit("a process failed; its error is above")
        for lines in [] if quiet else zip(*printed, strict=True):
            for line in dict.fromkeys(lines):
                ranks = [str(rank) for rank in range(4) if lines[rank] == line]
                noun = "process" if len(ranks) == 1 else "processes"
                wrap(f"{noun} {', '.join(ranks)}: {line}")
        return printed

    def _read(self, process):
        lines = []
        for line in process.stdout:
            if line == "done\n":
                return lines
            lines.append(line.rstrip("\n"))
        return None  # the process has ended

    def kill(self):
        for process in reversed(self.processes):
            process.kill()

    def close(self):
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            process.wait()
            process.stdout.close()


folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
job = Job()

# %% [markdown]
# First, the plan and the job are compared. The plans of all processes go into a file. Each process asks JAX
# for the parts of its devices, for the shardings above, and compares.

# %%
plans = {"columns": columns, "scattered": scattered, "tiles": tiles}
plans |= {"full": full, "inside": inside, "halves": halves}
parts = {}
for name, layout in plans.items():
    parts[name] = [list(needs(layout, rank).values()) for rank in range(4)]
with open("plans.json", "w") as file:
    json.dump(parts, file)


def compare():
    devices = np.array(jax.devices())
    shardings = {
        "columns": (devices, ("x",), P(None, "x")),
        "scattered": (devices.reshape(4, 2).T.ravel(), ("x",), P(None, "x")),
        "tiles": (devices.reshape(2, 4), ("y", "x"), P("y", "x")),
        "full": (devices, ("x",), P()),
        "inside": (devices.reshape(4, 2), ("copy", "x"), P(None, "x")),
        "halves": (devices.reshape(2, 4), ("y", "copy"), P("y")),
    }
    plans = json.load(open("plans.json"))
    for name, (mesh, axes, spec) in shardings.items():
        sharding = NamedSharding(Mesh(mesh, axes), spec)
        found = [
            [list(rows.indices(64)[:2]), list(columns.indices(128)[:2])]
            for rows, columns in sharding.addressable_devices_indices_map((64, 128)).values()
        ]
        assert found == plans[name][jax.process_index()], name
    print("needs what the plans said, for", ", ".join(shardings))


printed = job.run(compare)

# %% [markdown]
# ## Data parallelism
#
# In pure data parallelism every device has the whole model and its own part of the batch. The page asks how
# process 0 knows which rows are the first quarter, and then avoids the question. Here the question has an
# answer: the global batch of step k is fixed by the data set, the seed and k. Every process delivers the rows
# that its devices hold.
#
# The data has 256 records. The first number of record i is i.

# %%
records = np.random.default_rng(0).normal(size=(256, 16)).astype(np.float32)
records[:, 0] = np.arange(256)
table = pa.table({"x": pa.FixedSizeListArray.from_arrays(records.ravel(), 16)})
with pa.ipc.new_file("train.arrow", table.schema) as writer:
    writer.write_table(table)


def held(x):
    """Returns the record numbers that the devices of this process hold."""
    return [int(row[0]) for shard in x.addressable_shards for row in np.asarray(shard.data)]


def data_parallel():
    mesh = Mesh(np.array(jax.devices()), ("data",))
    with mf.Loader(mf.open("train.arrow"), mesh, P("data"), batch_size=16) as loader:
        x = next(iter(loader))["x"]
    print("rows", held(x))
    print("sum of the global batch", int(jax.jit(jax.numpy.sum)(x[:, 0])))


printed = job.run(data_parallel, held)
assert printed[1] == ["rows [4, 5, 6, 7]", "sum of the global batch 120"]

# %% [markdown]
# Three lines load, and no process chose its rows. Equal lines of several processes print once, so the second
# line shows that all processes computed the same sum.

# %% [markdown]
# ## A model inside a process
#
# Now each copy of the model is split over two devices, which need the same rows. If both devices are in one
# process, that process reads its rows once. The page's example has two processes with four devices each:

# %%
show(mf.layout({"data": 4, "model": 2}, P("data"), ROW, batch_size=64, processes=2))

# %% [markdown]
# The program below works on it, and on the four processes here. It has a model: the matrix `w` has its
# columns split over "model". The step returns the loss and the gradient, and every process compares both with
# NumPy.


# %%
def train_step(mesh, x):
    w = np.random.default_rng(1).normal(size=(16, 8)).astype(np.float32)
    split = NamedSharding(mesh, P(None, "model"))
    weights = jax.make_array_from_callback(w.shape, split, lambda index: w[index])

    def loss(weights, x):
        return ((x @ weights) ** 2).mean()

    outputs = NamedSharding(mesh, P()), split
    step = jax.jit(jax.value_and_grad(loss), out_shardings=outputs)
    value, gradient = step(weights, x)
    return float(value), gradient


def same_as_numpy(x, value, gradient):
    """Compares with one process that computes everything."""
    w = np.random.default_rng(1).normal(size=(16, 8)).astype(np.float32)
    product = x @ w
    assert np.isclose(value, (product**2).mean(), rtol=1e-4)
    whole = 2 * x.T @ product / product.size
    for shard in gradient.addressable_shards:
        assert np.allclose(shard.data, whole[shard.index], rtol=1e-3)


def inside_a_process():
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
    with mf.Loader(mf.open("train.arrow"), mesh, P("data"), batch_size=16) as loader:
        x = next(iter(loader))["x"]
    value, gradient = train_step(mesh, x)
    with mf.Loader(mf.open("train.arrow"), batch_size=16) as whole:  # NumPy, without a mesh
        same_as_numpy(next(iter(whole))["x"], value, gradient)
    print("rows of both devices", held(x))
    print(f"loss {value:.3f}, as NumPy")


printed = job.run(inside_a_process, held, train_step, same_as_numpy)
assert printed[3][0] == "rows of both devices [12, 13, 14, 15, 12, 13, 14, 15]"

# %% [markdown]
# The page writes some 20 lines for this case, and asserts that the devices of a replica are in one process.
# Here it is the program of the previous section with another mesh, and nothing depends on where the replica
# is.

# %% [markdown]
# ## A model across processes
#
# A copy of the model may not fit into one process, or the fastest links may be between processes. Then its
# two devices are in different processes. The page draws this case and warns about it, but has no code. The
# axes of the mesh change places:

# %%
across = plan({"model": 2, "data": 4}, P("data"))
show(across)
same = [part["same_rows_as"] for part in across.report()["processes"]]
assert same == [[2], [3], [0], [1]]

# %% [markdown]
# Processes 0 and 2 must load the same rows in the same order, and 1 and 3 the others. The program differs
# from the previous one in the mesh:


# %%
def across_processes():
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("model", "data"))
    with mf.Loader(mf.open("train.arrow"), mesh, P("data"), batch_size=16) as loader:
        x = next(iter(loader))["x"]
    value, gradient = train_step(mesh, x)
    with mf.Loader(mf.open("train.arrow"), batch_size=16) as whole:
        same_as_numpy(next(iter(whole))["x"], value, gradient)
    print("rows", held(x))
    print(f"loss {value:.3f}, as NumPy")


printed = job.run(across_processes, held, train_step, same_as_numpy)
assert [lines[0] for lines in printed[:2]] == [lines[0] for lines in printed[2:]]

# %% [markdown]
# The four processes agree on one loss, and each part of the gradient is NumPy's.

# %% [markdown]
# ## Replicas that differ
#
# The usual way to load by hand is by rank: process r takes the r-th quarter of the batch, and the function
# that the page's programs call makes the array. It is right for pure data parallelism. Here it runs with the
# model across processes. The page warns that JAX does not notice this.


# %%
def by_rank():
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("model", "data"))
    with mf.Loader(mf.open("train.arrow"), batch_size=16) as whole:
        batch = next(iter(whole))["x"]
    mine = np.split(batch, 4)[jax.process_index()]
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), mine)
    print("shape", x.shape, "rows", held(x))
    print(f"loss {train_step(mesh, x)[0]:.3f}")


printed = job.run(by_rank, held, train_step)

# %% [markdown]
# Nothing fails. The shape is (8, 16): JAX was told that processes 0 and 2 hold the same rows, so 16 rows
# became 8. All processes agree on the loss, so a comparison of losses does not help. But it is not the loss
# of any batch. The left half of the weight matrix is on processes 0 and 1, and saw the records 0 to 7. The
# right half saw the records 8 to 15:

# %%
x, w = records[:16], np.random.default_rng(1).normal(size=(16, 8)).astype(np.float32)
left, right = x[:8] @ w[:, :4], x[8:] @ w[:, 4:]
print(f"loss {(np.hstack([left, right]) ** 2).mean():.3f}")
assert printed == [[line, "loss 32.857"] for line, _ in printed]
assert abs((np.hstack([left, right]) ** 2).mean() - 32.857) < 0.001

# %% [markdown]
# In training, both halves of a matrix would learn, each from other rows. If the model computed with `w`
# whole, the processes would disagree on the loss instead; [From one process to many](distributed.py) shows
# that.
#
# The page says that JAX raises an error if such replicas are in one process. It does not. This process has
# eight devices, and builds the array of the page's wrong figure. Two devices form a replica of the model, and
# must have the same row. In the second and the third replica, the second devices are swapped. Then `jit`
# computes a number from the array, which every device has:

# %%
pairs = Mesh(np.array(devices).reshape(4, 2), ("data", "model"))
rows = np.array([0, 0, 1, 2, 2, 1, 3, 3], dtype=np.float32)  # one for each device
parts = [jax.device_put(rows[i : i + 1], device) for i, device in enumerate(devices)]
by_data = NamedSharding(pairs, P("data"))
swapped = jax.make_array_from_single_device_arrays((4,), by_data, parts)
powers = np.array([1, 10, 100, 1000], dtype=np.float32)
result = jax.jit(jax.numpy.dot)(swapped, powers)
print("one number:", *(float(shard.data) for shard in result.addressable_shards))
assert {float(shard.data) for shard in result.addressable_shards} == {3210, 3120}

# %% [markdown]
# ## What notices
#
# `mf.check_replicas` compares the copies of any arrays: batches, weights, states of an optimizer. Every
# process hashes the parts on its devices, and the processes compare hashes. No array is sent, and no
# collective runs. First the array of the section before, in this process:

# %%
try:
    mf.check_replicas({"x": swapped})
except mf.DataLossError as error:
    found = str(error)
wrap(found)
assert "array 'x', index [1:2]: process 0 (device 2) differs from process 0 (device 3)" in found

# %% [markdown]
# Then four processes. They build the batch in four ways: right; by rank; with the two batches of process 2
# swapped, as in the page's last warning; and with one number of process 3 changed a little. In a job on CPUs,
# JAX numbers the devices of process p from 2048 p. So device 4096 is the first one of process 2.


# %%
def four_batches():
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("model", "data"))
    with mf.Loader(mf.open("train.arrow"), batch_size=16) as whole:
        batch = next(iter(whole))["x"]
    rank = jax.process_index()
    right = np.split(batch, 2)[rank % 2]
    first, second = np.split(right, 2)
    changed = right.copy()
    changed[5, 1] += 0.001
    batches = {
        "right": right,
        "by rank": np.split(batch, 4)[rank],
        "swapped": np.concatenate([second, first]) if rank == 2 else right,
        "changed": changed if rank == 3 else right,
    }
    for name, rows in batches.items():
        x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
        try:
            print(mf.check_replicas({"x": x}, name=name))
        except mf.DataLossError as error:
            print(f"{name}: {error}")


printed = job.run(four_batches)
for lines in printed:
    assert lines[0].startswith("right: 1 of 1 arrays have replicas, all equal")
    assert lines[1].startswith("by rank: mf.check_replicas: array 'x', index [0:2, 0:16]")
    assert "[0:4, 0:16]: process 0 (device 0) differs from process 2 (device 4096)" in lines[2]
    assert "index [12:16, 0:16]: process 1" in lines[3]

# %% [markdown]
# Every process raises the error, and the text names the array, the part of it, and the processes and devices.
# Call it once after weights are restored. Where you look for a cause, call it after every step, with `step=`:
# then a process that left out a call is named, too. A `mf.Loader` needs no call: its processes compare what
# they deliver in the first steps (`verify_replicas=`, in [From one process to
# many](distributed.py#how-it-is-noticed)).

# %% [markdown]
# ## Batches of other loaders
#
# The page's programs begin with a stream of batches in every process, from tf.data, and it adds that they
# work with "different data loaders as well". For that there is `mf.put`: it places a batch of NumPy, PyTorch,
# TensorFlow or Grain. With `rows="all"`, the default, each process has the whole batch, as in option 1. With
# `rows="local"`, each gives the rows that its devices hold. A generator stands for the other library here.
# Each stream has a part of the records, in an order of its own.

# %%
np.save("records.npy", records)


def stream(part, parts, rows):
    """Yields batches of every parts-th record, as a loader of another library does."""
    records = np.load("records.npy")
    order = np.random.default_rng(part).permutation(np.arange(part, len(records), parts))
    for start in range(0, len(order), rows):
        yield {"x": records[order[start : start + rows]]}


def one_stream_per_process():
    mesh = Mesh(np.array(jax.devices()), ("data",))
    for part in (jax.process_index(), (jax.process_index() + 1) % 4):
        host_batch = next(stream(part, parts=4, rows=4))
        x = mf.put(host_batch, mesh, P("data"), rows="local")["x"]
        mean = jax.jit(lambda x: (x**2).mean())(x)
        print("rows", held(x))
        print(x.shape, f"mean of squares {float(mean):.1f}")


printed = job.run(one_stream_per_process, held, stream)
assert all(lines[1] == lines[3] == printed[0][1] for lines in printed)
assert printed[0][1].startswith("(16, 16)")
assert [lines[2] for lines in printed[:3]] == [lines[0] for lines in printed[1:]]

# %% [markdown]
# That is the page's first program: four rows from each process become a batch of 16. It rests on what the
# page calls a very important trick. Every replica of the model does the same, so any rows may come to any
# replica. The program shows it. In its second turn, each process takes the stream of its neighbor, and a
# mean over the batch stays the same. So each *group of replicas* can have a stream of its own.
#
# A group is not a process. With the model across processes, 0 and 2 are one group, and must read the same
# stream. The layout knows the groups, and `mf.put` logs them. On a mesh in another order, two processes may
# share only a part of their rows. Then groups do not exist, and the assertion fails.
#
# `mf.place_batches` places a whole stream, and reads ahead in a thread:


# %%
def group_of(mesh):
    """Returns the number of this process's group, and the number of groups."""
    plan = mf.layout(mesh, P("data"), {"x": ("float32", (16,))}, batch_size=16)
    rows = [process["rows"] for process in plan.report()["processes"]]
    groups = [ranges for rank, ranges in enumerate(rows) if ranges not in rows[:rank]]
    assert sum(stop - start for ranges in groups for start, stop in ranges) == 16, rows
    return groups.index(rows[jax.process_index()]), len(groups)


def one_stream_per_group():
    log, printer = logging.getLogger("meshfeed"), logging.StreamHandler(sys.stdout)
    log.addHandler(printer)
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("model", "data"))
    group, groups = group_of(mesh)
    host_batches = stream(group, groups, rows=16 // groups)
    with mf.place_batches(host_batches, mesh, P("data"), rows="local") as batches:
        for step, batch in enumerate(batches):
            if step == 0:
                print(f"group {group} of {groups}, rows", held(batch["x"]))
            mf.check_replicas(batch, step=step)
    print(step + 1, "batches, all replicas equal")
    log.removeHandler(printer)


printed = job.run(one_stream_per_group, held, stream, group_of)
assert printed[0] == printed[2] != printed[1] == printed[3]
assert "the same rows of array 'x': 0 and 2; 1 and 3" in printed[0][0]
assert printed[0][2] == "16 batches, all replicas equal"

# %% [markdown]
# What is lost? The order. Which records are in batch 0 depends on the number of groups, so on the mesh. Here
# are the records of the first batch of all processes, with streams and with `mf.Loader`, on both meshes:


# %%
def first_batches():
    devices = np.array(jax.devices())
    found = {}
    for axes, shape in {("data", "model"): (8, 1), ("model", "data"): (2, 4)}.items():
        mesh = Mesh(devices.reshape(shape), axes)
        group, groups = group_of(mesh)
        host_batch = next(stream(group, groups, rows=16 // groups))
        found[f"streams, {groups} groups"] = mf.put(host_batch, mesh, P("data"), rows="local")
        options = {"batch_size": 16, "shuffle": True, "seed": 1}
        with mf.Loader(mf.open("train.arrow"), mesh, P("data"), **options) as loader:
            found[f"mf.Loader, {groups} groups"] = next(iter(loader))
    print(json.dumps({name: held(batch["x"]) for name, batch in found.items()}))


printed = job.run(first_batches, held, stream, group_of, quiet=True)
found = [json.loads(lines[0]) for lines in printed]
first = {name: sorted({row for rows in found for row in rows[name]}) for name in found[0]}
for name, rows in sorted(first.items()):
    print(f"{name:20}", *rows)
assert first["mf.Loader, 4 groups"] == first["mf.Loader, 2 groups"]
assert first["streams, 4 groups"] != first["streams, 2 groups"]

# %% [markdown]
# That is fine for training on shuffled data, if the loss is a mean over the batch, and if a run never changes
# its mesh. It is not fine if you want to continue on another mesh, to compare runs on two meshes, or to know
# later which records were in a batch. Streams may also end at different times. Then some processes wait for
# the others in a collective.
#
# One reason for such streams is locality: a process reads from its own part. `order="local"` has this, and an
# exact order. Every group shuffles a contiguous part. The number of parts is in the name of the order, which
# is in the state. So a restored run has the same batches on any mesh:


# %%
def local_order():
    devices = np.array(jax.devices())
    data_parallel = Mesh(devices, ("data",))
    across = Mesh(devices.reshape(2, 4), ("model", "data"))
    options = {"batch_size": 16, "order": "local"}
    ds = mf.open("train.arrow")
    with mf.Loader(ds, across, P("data"), **options) as loader:
        batches = iter(loader)
        rows = [row for _ in range(4) for row in held(next(batches)["x"])]
        print("order", loader.state()["order"], "records", min(rows), "to", max(rows))
        state = loader.state()
        after = held(next(batches)["x"])
    with mf.Loader(ds, data_parallel, P("data"), state=state, **options) as loader:
        restored = held(next(iter(loader))["x"])
    print("continued:", *after)
    print("restored: ", *restored)


printed = job.run(local_order, held)
after, restored = ({row for lines in printed for row in lines[i].split()[1:]} for i in (1, 2))
assert after == restored
assert len(after) == 16

# %% [markdown]
# ## Weights from a checkpoint
#
# The page names two arrays that are not batches: the weights of a checkpoint, and a large image that is
# split by place. The question is the same: which part does each device need? `mf.open_arrays` opens a
# safetensors, .npy or .npz file, and `mf.load_arrays` loads its arrays with any shardings. Each process
# reads only the bytes that its devices hold.
#
# safetensors is a simple format: the length of a header, a header with type, shape and place of each array,
# and then their bytes. Here are a pair of matrices as in a feed-forward block, and an older version of them,
# as it may lie on one host:


# %%
def save_safetensors(path, arrays):
    header, data = {}, b""
    for name, array in arrays.items():
        place = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": place}
        data += array.tobytes()
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


pair = {
    "in": np.arange(64 * 256, dtype=np.float32).reshape(64, 256),
    "out": np.arange(256 * 64, dtype=np.float32).reshape(256, 64),
}
save_safetensors("weights.safetensors", pair)
save_safetensors("older.safetensors", pair | {"out": pair["out"] + 1})


def checkpoint():
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("model", "data"))
    specs = {"in": P(None, "model"), "out": P("model", None)}
    shardings = {name: NamedSharding(mesh, spec) for name, spec in specs.items()}

    def load(path):
        with mf.open_arrays(path) as stored:
            return mf.load_arrays(stored, shardings)

    weights = load("weights.safetensors")
    for line in str(mf.draw(weights)).splitlines()[2:5]:
        print(line)
    print(mf.check_replicas(weights, name="weights"))
    weights = load("older.safetensors" if jax.process_index() == 3 else "weights.safetensors")
    try:
        mf.check_replicas(weights, name="weights")
    except mf.DataLossError as error:
        print(error)


printed = job.run(checkpoint)
assert "weights: 2 of 2 arrays have replicas, all equal on 4 processes" in printed[0][3]
assert "array 'out', index [128:256, 0:64]" in printed[0][4]

# %% [markdown]
# Each half of a matrix is on four devices, and the older file of process 3 is found by the copies in process
# 2. An image is one more array, in tiles:

# %%
image = np.arange(512 * 512, dtype=np.float32).reshape(512, 512)
np.save("image.npy", image)


def spatial():
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("y", "x"))
    with mf.open_arrays("image.npy") as stored:
        tiles = mf.load_array(stored, "image", NamedSharding(mesh, P("y", "x")))
    image = np.load("image.npy", mmap_mode="r")
    for tile in tiles.addressable_shards:
        assert (np.asarray(tile.data) == image[tile.index]).all()
    rows, columns = tiles.addressable_shards[0].index
    print("a tile of", tile.data.shape, "from row", rows.start or 0, "column", columns.start or 0)


printed = job.run(spatial)
assert printed[3] == ["a tile of (256, 128) from row 256 column 256"]

# %% [markdown]
# ## Slips of the page
#
# The page is right in what matters. These points differ from what JAX does, or from what the page's own text
# means:
#
# | the page | what holds |
# | --- | --- |
# | JAX raises an error if replicas inside one process differ. | It does not. When shards become an array, JAX compares shapes, types and devices, never the contents. |
# | As of August 2023, JAX cannot detect replicas that differ across processes. | That still holds. It holds inside a process, too. |
# | Independent streams per process are "Option 2: Consolidated per-process". | Consolidated per process is option 3. |
# | "other options (such as 0, 1 and 3)" | There is no option 0. The others are 1, 2 and 4. |
# | The second program names the axes `model_replicas` and `data_parallelism`. | The second axis holds the devices of *one* replica. It is the model axis; the first is the data axis. |
# | The second program has `num_model_replicas_per_process = 2`. | It does not run with one device per process, because one device cannot hold two replicas. |
# | A model across processes: a drawing, no code. | [Above](#a-model-across-processes). |
#
# [Sharding patterns](sharding_patterns.py) goes on with the model: how it is split, and what that costs.

# %%
os.chdir("/")
job.close()
folder.cleanup()
