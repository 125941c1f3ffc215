# ruff: noqa: E501, SIM115

# %% [markdown]
# # From one process to many
#
# You can run one training program on one device and in many processes, say what each process reads, and
# continue a killed job with fewer processes.
#
# | level | before you begin | running time | memory |
# | --- | --- | --- | --- |
# | intermediate | [Quick reference](quick_reference.py); `pip install '.[jax,arrow]'` | 20 s | 400 MB |
#
# The three lines that load data never change. All of it runs on a laptop, on CPU devices. The guide starts
# several processes itself, shows a bug that JAX cannot notice, and what notices it.
#
# - [The data](#the-data) · [One process](#one-process) · [A plan for four](#a-plan-for-four-processes)
# - [Four real processes](#four-real-processes) · [The bug that JAX cannot notice](#the-bug-that-jax-cannot-notice)
# - [How it is noticed](#how-it-is-noticed) · [What each process reads](#what-each-process-reads)
# - [Killed, and continued](#killed-and-continued) · [Coming from another loader](coming_from.py)

# %% [markdown]
# ## The data
#
# 96 records in three Arrow files. Every value of record 17 is 17, so a printed batch shows where its rows
# come from.

# %%
import builtins
import inspect
import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from itertools import zip_longest

import jax
import numpy as np
import pyarrow as pa
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf

jax.config.update("jax_num_cpu_devices", 8)


def show(layout):
    """Draws a layout, as a picture in a notebook and as text elsewhere."""
    getattr(builtins, "display", print)(layout)


folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)

for i in range(3):
    values = np.repeat(np.arange(32 * i, 32 * i + 32, dtype=np.int32), 8)
    table = pa.table({"tokens": pa.FixedSizeListArray.from_arrays(values, 8)})
    with pa.ipc.new_file(f"train-{i}.arrow", table.schema) as writer:
        writer.write_table(table)

ds = mf.open("train-*.arrow")
print(ds)

# %% [markdown]
# ## One process
#
# One device. The mesh has one axis, and the spec says that rows are split over it.

# %%
mesh = Mesh(np.array(jax.devices()[:1]), ("data",))
with mf.Loader(ds, mesh, P("data"), batch_size=16) as loader:
    batch = loader.peek()
    print(batch["tokens"].shape, np.asarray(batch["tokens"])[:, 0])

# %% [markdown]
# `peek` returns the next batch without taking it. `next(iter(loader))` would take it.
#
# Eight devices: only the mesh changes. `loader.layout` draws which device holds which rows, and what each
# process reads.

# %%
mesh = Mesh(np.array(jax.devices()), ("data",))
with mf.Loader(ds, mesh, P("data"), batch_size=16) as loader:
    show(loader.layout)

# %% [markdown]
# A second axis is for a model that is split over pairs of devices. The spec does not name it, so both devices
# of a pair hold the same rows. The rows are read once, and both devices get the same memory.

# %%
mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
with mf.Loader(ds, mesh, P("data"), batch_size=16) as loader:
    show(loader.layout)

# %% [markdown]
# ## A plan for four processes
#
# A layout needs no devices, so you can look at the plan of a large job before it runs. Here are four
# processes with two devices each. First the simple case: every process has its own quarter of the batch.

# %%
show(mf.layout({"data": 4, "model": 2}, P("data"), ds, batch_size=16, processes=4))

# %% [markdown]
# If the model does not fit into one host, the axes change places. One copy of the model is on processes 0 and
# 1, the other on 2 and 3. Devices that differ only along "model" need the same rows, and now they are in
# *different* processes: 0 and 2 must read the same half of the batch, 1 and 3 the other. A process's rank
# does not show this. Only the mesh does.

# %%
across = mf.layout({"model": 2, "data": 4}, P("data"), ds, batch_size=16, processes=4)
show(across)

# %% [markdown]
# The spec may also split the inside of a row. Then processes 0 and 2 read the same rows but different
# columns, and nothing is read twice.

# %%
show(mf.layout({"model": 2, "data": 4}, P("data", "model"), ds, batch_size=16, processes=4))

# %% [markdown]
# The same facts as data, for a test of your own configuration:

# %%
for process in across.report()["processes"]:
    print(process["process"], process["rows"], "the same as", process["same_rows_as"])
assert not [problem for problem in across.check() if problem.severity == "error"]

# %% [markdown]
# ## Four real processes
#
# `launch` runs a function in new processes that join one `jax.distributed` job. On a cluster, your scheduler
# does this. When one process fails, `launch` ends the others, as a scheduler does. It prints the first line
# of each process, then the second line of each, and so on.

# %%
START = """
import os, signal, sys
import jax, numpy as np
import meshfeed as mf
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

sys.stdout = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # output of C++ libraries goes to the log of errors
jax.distributed.initialize("127.0.0.1:{port}", num_processes={processes}, process_id={rank},
                           cluster_detection_method="deactivate")
{source}
{name}()
jax.distributed.shutdown()
"""


def say(message):
    """Prints a message in lines of 100 characters."""
    print(textwrap.fill(message, 100, subsequent_indent="    "))


def launch(play, processes=4, devices=2, quiet=False):
    """Runs a function in new processes, and returns the lines that each printed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    source, name = inspect.getsource(play), play.__name__
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": str(devices)}
    env["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    job, logs = [], []
    for rank in range(processes):
        out, err = (tempfile.TemporaryFile("w+") for _ in range(2))
        logs.append((out, err))
        code = START.format(port=port, processes=processes, rank=rank, source=source, name=name)
        job.append(
            subprocess.Popen([sys.executable, "-u", "-c", code], env=env, stdout=out, stderr=err)
        )
    try:
        while None in (ended := [process.poll() for process in job]) and not any(ended):
            time.sleep(0.05)
    finally:
        for process in job:
            process.kill()
            process.wait()
    lines, errors = [], []
    for out, err in logs:
        with out, err:
            out.seek(0)
            err.seek(0)
            lines.append(out.read().splitlines())
            errors.append(err.read())
    if any(status not in (None, 0, -signal.SIGKILL) for status in ended):
        sys.exit("\n".join(errors))
    for turn in [] if quiet else zip_longest(*lines):
        for rank, line in enumerate(turn):
            if line is not None:
                say(f"process {rank}: {line}".rstrip())
    return lines


# %% [markdown]
# This is the program of every process: the same three lines, and no rank in them. For one mesh after the
# other, every process prints the rows and columns that its devices hold.


# %%
def scenes():
    devices = np.array(jax.devices())
    meshes = {
        "batch over all": (Mesh(devices, ("data",)), P("data")),
        "replicas in a process": (Mesh(devices.reshape(4, 2), ("data", "model")), P("data")),
        "replicas across": (Mesh(devices.reshape(2, 4), ("model", "data")), P("data")),
        "columns across": (Mesh(devices.reshape(2, 4), ("model", "data")), P("data", "model")),
        "all on every device": (Mesh(devices, ("data",)), P()),
        "devices permuted": (Mesh(devices[[5, 2, 7, 0, 3, 6, 1, 4]], ("data",)), P("data")),
        "processes 1 and 2 only": (Mesh(devices[2:6], ("data",)), P("data")),
    }
    for name, (mesh, spec) in meshes.items():
        ds = mf.open("train-*.arrow")
        with mf.Loader(ds, mesh, spec, batch_size=16) as loader:
            batch = next(iter(loader))["tokens"]
        held = {}
        for shard in batch.addressable_shards:
            rows, columns = (s.indices(n) for s, n in zip(shard.index, batch.shape, strict=True))
            assert (np.asarray(shard.data) == np.arange(rows[0], rows[1])[:, None]).all()
            held[f"[{rows[0]}:{rows[1]}, {columns[0]}:{columns[1]}]"] = True
        print(f"{name:23}", *held)


seen = launch(scenes)
rows = [process[2].split()[2:] for process in seen]  # of "replicas across"
assert rows[0] == rows[2] != rows[1] == rows[3]
columns = [process[3].split()[2:] for process in seen]  # of "columns across"
assert columns[0] != columns[2]

# %% [markdown]
# ## The bug that JAX cannot notice
#
# The usual way to load data by hand is by rank: process r of n takes the r-th part of the batch, and
# `jax.make_array_from_process_local_data` builds the global array. It is right for the first of the meshes
# above. Here it is on the third, where processes 0 and 2 must have the same rows.


# %%
def by_rank_and_by_mesh():
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("model", "data"))

    @jax.jit
    def step(tokens):
        return jax.lax.with_sharding_constraint(tokens.sum(), NamedSharding(mesh, P()))

    def tell(how, tokens):
        mine = np.concatenate([np.asarray(shard.data) for shard in tokens.addressable_shards])
        print(f"{how}, shape {tokens.shape}, sum {step(tokens):3}, my rows {mine}")

    batch = np.arange(16, dtype=np.int32)
    mine = np.split(batch, jax.process_count())[jax.process_index()]
    tell("by rank", jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), mine))

    with mf.Loader(mf.open("train-*.arrow"), mesh, P("data"), batch_size=16) as loader:
        tell("by mesh", next(iter(loader))["tokens"][:, 0])


seen = launch(by_rank_and_by_mesh)
sums = [[int(line.split("sum")[1].split(",")[0]) for line in process] for process in seen]
assert sums == [[28, 120], [28, 120], [92, 120], [92, 120]]

# %% [markdown]
# By rank, nothing fails. JAX was told that processes 0 and 2 hold the same rows, so the batch has shrunk
# from 16 rows to 8. They hold different rows: one global array has two contents, and one sum has two values.
# A real job trains on. Each copy of a weight sees other data, the loss looks plausible, and the copies drift
# apart.
#
# By mesh, your program does not choose rows. All processes have the same sum, of all 16 rows.
#
# The bug does not need many processes. Two replicas in one process may differ as well, and JAX accepts them:

# %%
pair = Mesh(np.array(jax.devices()[:2]), ("model",))
parts = [jax.device_put(1.0, jax.devices()[0]), jax.device_put(2.0, jax.devices()[1])]
wrong = jax.make_array_from_single_device_arrays((), NamedSharding(pair, P()), parts)
print("one replicated scalar:", [float(shard.data) for shard in wrong.addressable_shards])

# %% [markdown]
# ## How it is noticed
#
# No plan shows the remaining differences: another seed in one job script, another version of a file on one
# host, a disk that fails, a process that takes one batch more than the others. Four checks watch for them
# while the job runs. They use the key-value store of `jax.distributed` and never a collective, so they cannot
# interleave with the collectives of your program.
#
# 1. Before the first batch the processes *agree* on dataset, order, seed, position, batch and mesh.
# 2. In the first steps, the processes that hold the same part of a batch *compare digests* of the delivered
#    bytes (`verify_replicas="first"`; also "always", every k-th, "off"). That takes some two milliseconds of a
#    start.
# 3. At batch 8, and then about every three seconds, every process *stops* in `next` until its devices are idle,
#    for some ten milliseconds. If steps wait for each other in collectives, all processes come to the same
#    batch. If a process took one more, all processes raise an error. If steps have no collective, processes may
#    run apart, and nothing is reported.
# 4. A failure in one process is *posted to the others*: their next `next` raises it. So is an exception that
#    ends the program. If a process does not return to `next` within 30 s, because it waits for the lost one in
#    a collective, it ends with status 113 (`on_peer_error`).
#
# Two processes that hold the same rows try it, on a file of 4,096 records. First, process 1 has another seed.
# Then, record 7 of its copy has another value. The agreement compares every byte of up to 16 MiB of files; this
# file is larger, so it compares samples, which are equal. Finally, the file is cut during the run.

# %%
values = np.repeat(np.arange(4096, dtype=np.int32), 1024)
table = pa.table({"tokens": pa.FixedSizeListArray.from_arrays(values, 1024)})
os.mkdir("other")
with pa.ipc.new_file("long.arrow", table.schema) as writer:
    writer.write_table(table)
with open("long.arrow", "rb") as file:
    content = file.read()
with open("other/long.arrow", "wb") as file:
    file.write(content)
with open("other/edited.arrow", "wb") as file:
    file.write(content.replace(np.int32(7).tobytes() * 1024, np.int32(8).tobytes() * 1024))


def watched():
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("model", "data"))
    second = jax.process_index() == 1

    def run(name, file, cut=None, **options):
        loader = mf.Loader(
            mf.open(file), mesh, P("data"), batch_size=8, name=name, epochs=-1, **options
        )
        try:
            for _ in loader:
                if cut and loader.step == 3:
                    os.truncate(cut, 8192)
        except mf.Error as error:
            print(f"{type(error).__name__}: {error}")
        loader.close()

    run("seeds", "long.arrow", seed=7 if second else 0)
    run("copies", "other/edited.arrow" if second else "long.arrow")
    file = "other/long.arrow" if second else "long.arrow"
    run("cut", file, cut=file if second else None, prefetch=0)


seen = launch(watched, processes=2)
errors = [[line.split(":")[0] for line in process] for process in seen]
assert errors == [
    ["IncompatibleError", "PeerError", "PeerError"],
    ["IncompatibleError", "DataLossError", "DataLossError"],
]

# %% [markdown]
# Every process stops, and every message names the process, the array and the step. `on_peer_error="abort"`
# also ends a process that is stuck in a collective with the failed one. After `late_after=` seconds the log
# names a process that is only slow, with what it waits for; training never waits for that.

# %% [markdown]
# After an epoch there is proof. A certificate says what a process delivered, and every distinct block counts
# in the lowest process that holds it. The sum over all processes is complete if each of them delivered every
# position exactly once. Here this process plays all four processes of the plan above. Two of them hold only
# replicas, and are missed all the same.

# %%
certificates = []
for process in across.processes:
    with mf.Loader(ds, layout=across, process=process, shuffle=True) as loader:
        for _ in loader:
            pass
        certificates.append(loader.certificate())
whole = sum(certificates[1:], certificates[0])
print("complete:", whole.complete(epochs=1))
print(*str(whole).splitlines()[1:], sep="\n")  # the first line names order and dataset
for wrong in sum(certificates[:3]), whole + certificates[0]:
    try:
        wrong.check()
    except mf.DataLossError as error:
        say(f"{type(error).__name__}: {error}")
    else:
        raise AssertionError("an incomplete run passed")
assert whole.complete(epochs=1)

# %% [markdown]
# ## What each process reads
#
# JAX's guide to distributed data loading names four ways to load. They are one argument here, and all four
# deliver the same arrays, "reshard" after a call in your step. The plan says what each costs, before anything
# runs. Then this process plays process 0 and counts the bytes that it gathers. The numbers are bytes per step:
# of process 0, and, over the network, of the whole job. Two devices in every process share rows, and so do
# pairs of processes.

# %%
print(f"{'loading=':10}planned  gathered  sent over the network")
for loading in ("process", "global", "device", "reshard"):
    axes = {"copies": 2, "data": 2, "model": 2}
    plan = mf.layout(axes, P("data"), ds, batch_size=16, processes=4, loading=loading)
    report = plan.report()
    planned = report["processes"][0]["bytes_per_step"]
    with mf.Loader(ds, layout=plan, process=0) as loader:
        steps = len(list(loader))
        gathered = int(loader.stats()["gathered_bytes"]) // steps
    print(f"{loading:10}{planned:7}{gathered:10}{report['totals']['network_bytes']:23}")
    assert gathered == planned

# %% [markdown]
# "process" is the default, and nearly always right. "global" reads everything everywhere; it is for
# comparison, and for tiny data. "reshard" reads every row once in the whole job and moves the rest over the
# network: for replicas across many hosts with slow disks. Its batches come split by rows, and your step moves
# them, because programs of the loader would interleave with yours:

# %%
mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("model", "data"))
with mf.Loader(ds, mesh, P("data"), batch_size=16, loading="reshard") as loader:

    @jax.jit
    def step(batch):
        return loader.reshard(batch)["tokens"] + 0

    batch = loader.peek()
    print(batch["tokens"].sharding.spec, "->", step(batch).sharding.spec)

# %% [markdown]
# Shuffled data has one more cost: every process reads from random positions in all files. `order="local"`
# divides the data into as many equal parts as there are different groups of rows, here two, and shuffles each
# part by itself. Every process then reads from one contiguous part. The number of parts is in the name of the
# order, and the name is in the state, so a restored run has the same order on any mesh.

# %%
local = mf.layout({"model": 2, "data": 4}, P("data"), ds, batch_size=16, processes=4, order="local")
for process in local.processes:
    with mf.Loader(ds, layout=local, process=process) as loader:
        rows = np.concatenate([rows[:, 0] for _, rows in loader.peek()["tokens"]])
        print(f"{loader.state()['order']}, process {process} reads records {np.sort(rows)}")

# %% [markdown]
# A single array outside the batch loop, such as weights or an image that is split by columns, comes by the
# same rules:

# %%
image = mf.from_arrays({"image": np.arange(64 * 64, dtype=np.float32).reshape(1, 64, 64)})
tiles = NamedSharding(mesh, P("model", "data"))
array = mf.load_array(image, "image", tiles, record=0)
print(array.shape, "in tiles of", array.addressable_shards[0].data.shape)

# %% [markdown]
# ## Killed, and continued
#
# Four processes train on shuffled data. After every second step, each of them saves the state to the same path.
# They all have the same state, and a file is written atomically. Process 3 is killed in its fifth step. The
# others wait for it in a collective, and are ended.


# %%
def train():
    mesh = Mesh(np.array(jax.devices()), ("data",))
    state = "state.json" if os.path.exists("state.json") else None
    total = jax.jit(lambda x: x.sum(), out_shardings=NamedSharding(mesh, P()))
    options = {"batch_size": 16, "shuffle": True, "epochs": 1, "state": state}
    with mf.Loader(mf.open("train-*.arrow"), mesh, P("data"), **options) as loader:
        for batch in loader:
            if loader.step == 5 and jax.process_count() == 4 and jax.process_index() == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            for shard in batch["tokens"].addressable_shards:
                print(shard.index[0].start, *np.asarray(shard.data)[:, 0])
            if loader.step % 2 == 0:
                loader.save_state("state.json")
            total(batch["tokens"]).block_until_ready()  # all processes have come this far


first = launch(train, processes=4, devices=2, quiet=True)
with open("state.json") as file:
    state = file.read()
print(state)
assert '"records": 96' in state
assert '"position": 64' in state

# %% [markdown]
# That is the whole checkpoint of a loader: 96 records in this order, 64 of them delivered. It contains no
# process number. Now two processes with one device each continue, by the same program, and the records of all
# steps are put side by side. The last column compares them with one undisturbed process.

# %%
second = launch(train, processes=2, devices=1, quiet=True)


def delivered(lines):
    """Joins the records that the devices of all processes got, step by step."""
    steps = []
    for process in lines:
        step = -1
        shards = sorted({line.split()[0] for line in process}, key=int)
        for line in process:
            start, *records = line.split()
            step += start == shards[0]
            while len(steps) <= step:
                steps.append({})
            steps[step][int(start)] = [int(record) for record in records]
    return [[r for _, rows in sorted(step.items()) for r in rows] for step in steps]


before, after = delivered(first)[:4], delivered(second)
with mf.Loader(ds, batch_size=16, shuffle=True) as loader:
    undisturbed = [loader.records(epoch=0, position=16 * step).tolist() for step in range(6)]
for step, records in enumerate(before + after):
    job = "4 processes" if step < 4 else "2 processes"
    same = "as undisturbed" if records == undisturbed[step] else "DIFFERENT"
    print(f"step {step}  {job}  {' '.join(f'{record:2}' for record in records)}  {same}")
assert before + after == undisturbed

# %% [markdown]
# The fifth batch may have been delivered twice: to the job that died after its last save, and to the new one.
# The weights return to the save as well, so the run is the undisturbed one. Save both together: the state is a
# small dict (`loader.state()`), which fits into any checkpoint. `make drill` does the same with a model in
# training, and draws it.
#
# If JAX lets the survivors of a failure continue (`jax_enable_recoverability`), no restart is needed:
# `loader.remesh(mesh)` continues at the same position on the remaining devices. Here with eight, then four:

# %%
devices = np.array(jax.devices())
with mf.Loader(ds, Mesh(devices, ("data",)), P("data"), batch_size=16, shuffle=True) as loader:
    for step, batch in enumerate(loader):
        rows = np.asarray(batch["tokens"])[:, 0].tolist()
        print(step, len(batch["tokens"].sharding.device_set), "devices", rows == undisturbed[step])
        if step == 2:
            loader.remesh(Mesh(devices[:4], ("data",)))

# %% [markdown]
# A preemption notice is the simple case. JAX turns a SIGTERM to any process into one step where all agree to
# stop: [when a job is stopped](../jobs.md#when-a-job-is-stopped).

# %% [markdown]
# [Coming from another loader](coming_from.py) has tables and programs for PyTorch, TensorFlow, Grain, Hugging
# Face datasets, Datarax, Levanter and MaxText.

# %%
ds.close()
os.chdir("/")
folder.cleanup()
