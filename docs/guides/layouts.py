# ruff: noqa: E501, RUF001, RUF003

# %% [markdown]
# # Ten layouts to learn from
#
# After this guide you can read the picture of a layout, and you can check a mesh, its specs and a batch before
# you book a device.
#
# | level | before you begin | running time | memory |
# | --- | --- | --- | --- |
# | beginner | NumPy, a little JAX; `pip install .` | 2 s | 80 MB |
#
# A layout shows what a mesh, its partition specs and a batch mean. These ten range from one axis to 65,536
# devices. Each is a JSON document, the same for Python, Go, C, the command and the browser. Draw it, change it,
# draw it again. The files are in [docs/layouts](../layouts).
#
# - [Data parallel](#data-parallel) · [Replicas in a process](#replicas-in-a-process)
# - [Replicas across processes](#replicas-across-processes) · [Sequence sharding](#sequence-sharding)
# - [A batch over two axes](#a-batch-over-two-axes)
# - [A TPU slice with scattered hosts](#a-tpu-slice-with-scattered-hosts)
# - [An indivisible batch](#an-indivisible-batch) · [65,536 devices](#65536-devices) · [Video](#video)
# - [Token packing](#token-packing) · [Your own](#your-own)

# %% [markdown]
# ## Drawing a document
#
# `example` writes a document to a file, draws its layout, and shows a link. `run` runs the command `meshfeed` on
# such a file. In the browser the picture is interactive: point at a block, and every device that holds it is
# highlighted. The part of a link after the `#` is the whole layout, and never leaves the browser. For links in a
# notebook, write the page beside it: `meshfeed page > layout.html`.

# %%
import base64
import builtins
import json
import os
import shlex
import subprocess
import sys
import tempfile
import zlib

import meshfeed as mf

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)


def show(picture):
    """Shows a picture in a notebook and on the site, and its text elsewhere."""
    getattr(builtins, "display", print)(picture)


class Link(str):
    """An address, which a notebook shows as a link."""

    def _repr_html_(self):
        return f'<a href="{self}">Open this layout in the browser</a>'


def example(name, text):
    """Writes a document to a file, and draws its layout."""
    with open(f"{name}.json", "w") as file:
        file.write(text.strip() + "\n")
    layout = mf.Layout.from_json(text)
    show(layout)
    packed = zlib.compress(layout.to_json().encode(), level=9, wbits=-15)
    fragment = base64.urlsafe_b64encode(packed).decode().rstrip("=")
    show(Link(f"layout.html#v1={fragment}"))
    return layout


def changed(layout, **parts):
    """Returns a layout with other parts in its document."""
    return mf.Layout.from_json(json.dumps({**json.loads(layout.to_json()), **parts}))


def run(command):
    """Runs a line of the command `meshfeed`, and prints its output and its exit status."""
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)], capture_output=True, text=True
    )
    print(done.stdout + done.stderr, end="")
    print(f"exit status {done.returncode}" if done.returncode else "")


def reads(layout):
    """Returns the table below a picture: what each process reads."""
    return "process" + str(layout).partition("\nprocess")[2].partition("\n\n")[0]


# %% [markdown]
# **How to read a picture.** A box is a part of the array. Its color is the process, and its numbers are devices.
# Several numbers are devices that hold the same part. In a terminal, `p1 4` is device 4 of process 1, thick lines
# separate processes, and `0=1` are devices that hold the same part. The table below the picture lists the rows of
# the global batch that each process reads, and the bytes that it reads per step.
#
# ## Data parallel
#
# One axis, and only the batch is split. Images as they are stored, on eight devices of two processes.

# %%
data_parallel = example(
    "01-data-parallel",
    """
{"meshfeed": 1,
 "mesh": {"axes": [["data", 8]], "processes": 2},
 "arrays": {"image": {"shape": ["B", 224, 224, 3], "dtype": "uint8", "spec": ["data"]},
            "label": {"shape": ["B"], "dtype": "int32", "spec": ["data"]}},
 "batch": {"size": 1024},
 "dataset": {"records": 1281167}}
""",
)
assert "18.4 MiB per device" in str(data_parallel)
assert "221 MiB per process for 3 batches" in str(data_parallel)
assert "143 records left out" in str(data_parallel)

# %% [markdown]
# What to notice:
#
# - A process reads half of the rows, and every row is read once. No rank is involved: the rows of a process
#   follow from its devices.
# - *221 MiB per process for 3 batches*: the delivered batch, and `prefetch`, 2 by default, read ahead.
# - *143 records left out*: records that do not fill a batch are dropped. Padding keeps the shapes and adds a mask
#   instead:

# %%
padded = changed(data_parallel, batch={"size": 1024, "remainder": "pad"})
print(*str(padded).splitlines()[:3], sep="\n")
assert "the last one with 143 records" in str(padded)

# %% [markdown]
# ## Replicas in a process
#
# Two axes. Images are split over both, rows over `data` and columns over `model`; labels over `data` only.

# %%
within = example(
    "02-replicas-in-a-process",
    """
{"meshfeed": 1,
 "mesh": {"axes": [["data", 4], ["model", 2]], "processes": 4},
 "arrays": {"image": {"shape": ["B", 8, 8], "dtype": "float32", "spec": ["data", null, "model"]},
            "label": {"shape": ["B"], "dtype": "int32", "spec": ["data"]}},
 "batch": {"size": 256},
 "dataset": {"records": 1797},
 "budget": {"device_bytes": 17179869184, "host_bytes": 8589934592}}
""",
)
assert "label  int32 (256,)  P('data',)  shard (64,)  256 B  on 2 devices" in str(within)

# %% [markdown]
# What to notice:
#
# - The label is *on 2 devices*, both of one process: it is read once and delivered to both.
# - A process holds all columns of its rows, so it reads whole rows. With one device per process, each process
#   reads a part of a row, and two processes read each label:

# %%
single = changed(within, mesh={"axes": [["data", 4], ["model", 2]], "processes": 8})
print(str(single).splitlines()[2].strip())
print(reads(single))
assert "read 1.02 times" in str(single)

# %% [markdown]
# ## Replicas across processes
#
# Here an axis that does not split the batch spans several processes. Tensor-parallel training looks like this.

# %%
across = example(
    "03-replicas-across-processes",
    """
{"meshfeed": 1,
 "mesh": {"axes": [["data", 2], ["model", 8]], "processes": 4},
 "arrays": {"tokens": {"shape": ["B", 2048], "dtype": "int32", "spec": ["data"]}},
 "batch": {"size": 64},
 "dataset": {"records": 1000000}}
""",
)
assert "read 2 times" in str(across)

# %% [markdown]
# What to notice:
#
# - Processes 0 and 1 read the same rows, and so do 2 and 3. A loader that gives every rank its own rows would feed
#   two different batches to one model, without an error.
# - *read 2 times* is the cost. `"loading": "reshard"` reads every row once, and the devices exchange the rest. That
#   pays if storage is slower than the network:

# %%
resharded = changed(across, loading="reshard")
print(*str(resharded).splitlines()[2:5], sep="\n")
assert "at least 3.5 MiB move between devices" in str(resharded)

# %% [markdown]
# ## Sequence sharding
#
# Sequences too long for one device: each is split over eight devices, which belong to two processes.

# %%
sequences = example(
    "04-sequence-sharding",
    """
{"meshfeed": 1,
 "mesh": {"axes": [["data", 2], ["seq", 8]], "processes": 4},
 "arrays": {"tokens": {"shape": ["B", 32768], "dtype": "int32", "spec": ["data", "seq"]},
            "length": {"shape": ["B"], "dtype": "int32", "spec": ["data"]}},
 "batch": {"size": 32},
 "dataset": {"records": 250000}}
""",
)
assert "read just over once" in str(sequences)

# %% [markdown]
# What to notice:
#
# - Processes 0 and 1 have the same rows, but each reads only its half of every sequence: the tokens are read once.
#   The batch is read *just over once* because both processes need the lengths, 4 bytes a row.
# - Sequence sharding makes the batch fit. Without it every device holds whole sequences, and the batch is read
#   twice:

# %%
arrays = json.loads(sequences.to_json())["arrays"]
arrays["tokens"]["spec"] = ["data", None]
whole = changed(sequences, arrays=arrays)
print(str(whole).splitlines()[2])
assert "256 KiB per device" in str(sequences)
assert "read 2 times  2 MiB per device" in str(whole)

# %% [markdown]
# ## A batch over two axes
#
# Fully sharded data parallelism: the axes `data` and `fsdp` split the batch together, and weights too.

# %%
fsdp = example(
    "05-fsdp-batch-over-two-axes",
    """
{"meshfeed": 1,
 "mesh": {"axes": [["data", 2], ["fsdp", 8], ["model", 2]], "processes": 4},
 "arrays": {"tokens": {"shape": ["B", 4096], "dtype": "int32", "spec": [["data", "fsdp"]]},
            "embedding": {"shape": [32768, 4096], "dtype": "bfloat16", "spec": [["data", "fsdp"], "model"]}},
 "batch": {"size": 512},
 "dataset": {"records": 10000000},
 "budget": {"device_bytes": 17179869184}}
""",
)
assert "8.5 MiB of 16 GiB per device" in str(fsdp)

# %% [markdown]
# What to notice:
#
# - `P(('data', 'fsdp'),)` splits one dimension 2 × 8 ways, the first axis slowest. `P('data', 'fsdp')` would split
#   two dimensions.
# - The embedding has no `"B"` in its shape, so it is a weight. It is drawn, and counts on the device (8 of the
#   *8.5 MiB*), but it is not read with a batch.
# - The batch must be a multiple of 16, the product of the axes. In CI, `meshfeed check` fails a pull request that
#   breaks a layout:

# %%
with open("05-small-batch.json", "w") as file:
    file.write(changed(fsdp, batch={"size": 8}).to_json())
run("meshfeed check 05-small-batch.json")

# %% [markdown]
# ## A TPU slice with scattered hosts
#
# A slice of 4 × 4 TPU v5e chips, on four hosts. `jax.make_mesh` follows the torus, so that neighbors in the mesh
# are neighbors on the network; a host is a square of the torus. `devices` lists JAX's mesh: [process, id] in mesh
# order.

# %%
scattered = example(
    "06-tpu-slice-with-scattered-hosts",
    """
{"meshfeed": 1,
 "mesh": {"axes": [["data", 16]],
          "devices": [[0, 0], [0, 1], [1, 4], [1, 5], [1, 7], [1, 6], [0, 3], [2, 9],
                      [3, 12], [3, 13], [3, 15], [3, 14], [2, 11], [2, 10], [2, 8], [0, 2]]},
 "arrays": {"tokens": {"shape": ["B", 8192], "dtype": "int32", "spec": ["data"]}},
 "batch": {"size": 128},
 "dataset": {"records": 4000000}}
""",
)
assert scattered.report()["processes"][0]["rows"] == [[0, 16], [48, 56], [120, 128]]

# %% [markdown]
# What to notice:
#
# - Process 0 reads three separate ranges of rows. Every rule by rank (`rows[rank * n:(rank + 1) * n]`) loads wrong
#   data here, without an error.
# - Nothing is read twice, and all processes read the same amount: scattered rows cost nothing extra.
#
# The same sixteen devices in plain order, the default without `devices`:

# %%
plain = changed(scattered, mesh={"axes": [["data", 16]], "processes": 4})
print(reads(plain))
assert plain.report()["processes"][0]["rows"] == [[0, 32]]

# %% [markdown]
# ## An indivisible batch
#
# JAX shards evenly or not at all. 100 rows cannot be split over 8 devices, and the check says so before the job
# runs.

# %%
indivisible = example(
    "07-indivisible-batch",
    """
{"meshfeed": 1,
 "mesh": {"axes": [["data", 8], ["model", 2]], "processes": 4},
 "arrays": {"image": {"shape": ["B", 32, 32, 3], "dtype": "uint8", "spec": ["data"]},
            "label": {"shape": ["B"], "dtype": "int32", "spec": ["data"]}},
 "batch": {"size": 100, "remainder": "pad"},
 "dataset": {"records": 50000}}
""",
)
problems = indivisible.check()
print(*problems, sep="\n")
assert {problem.code for problem in problems} == {"indivisible"}
assert len(problems) == 3

# %% [markdown]
# What to notice:
#
# - A problem has a code (`indivisible`), a path in the document, numbers, and a remedy. One cause is reported for
#   all three arrays, the mask of `"pad"` included.
# - `"pad"` does not help: it fills the last batch of the epoch, and the problem is the size of every
#   batch.
#
# There are three remedies: another batch size, the same devices with a shorter `data` axis, or, for a small array,
# a spec that leaves the batch whole. The checks that remain are remarks and warnings, not errors:

# %%
remedies = {
    "a batch of 104": changed(indivisible, batch={"size": 104, "remainder": "pad"}),
    "4 × 4 devices": changed(
        indivisible, mesh={"axes": [["data", 4], ["model", 4]], "processes": 4}
    ),
    "whole batches": changed(
        indivisible,
        arrays={
            name: {**array, "spec": []}
            for name, array in json.loads(indivisible.to_json())["arrays"].items()
        },
    ),
}
for remedy, layout in remedies.items():
    print(f"{remedy}:")
    for problem in layout.check():
        print(f"  {problem.severity} {problem.code}: {problem.message}")
    assert all(problem.severity != "error" for problem in layout.check())

# %% [markdown]
# ## 65,536 devices
#
# 8,192 hosts with eight devices each, three axes, 10¹² records. Planning takes milliseconds.

# %%
huge = example(
    "08-65536-devices",
    """
{"meshfeed": 1,
 "mesh": {"axes": [["data", 256], ["fsdp", 64], ["model", 4]], "processes": 8192},
 "arrays": {"tokens": {"shape": ["B", 8192], "dtype": "int32", "spec": [["data", "fsdp"], "model"]}},
 "batch": {"size": 262144},
 "dataset": {"records": 1000000000000},
 "budget": {"device_bytes": 34359738368, "host_bytes": 137438953472}}
""",
)
assert "8 GiB per batch" in str(huge)
assert "p8191          8  262112:262144  ▕···············▒▏  1 MiB" in str(huge)

# %% [markdown]
# What to notice:
#
# - The picture shows the first and the last blocks; every number is exact.
# - 8 GiB a step are 1 MiB for each process: with enough hosts, reading is not the limit.
# - The report leaves out lists of more than 1,024 devices or processes, unless `--tables` asks for them:

# %%
run("meshfeed plan --json 08-65536-devices.json")

# %% [markdown]
# ## Video
#
# Five dimensions, three of them split: clips over `data`, frames over `time`, lines over `space`. Captions are
# split like the clips, and each row has a random key of its own.

# %%
video = example(
    "09-video",
    """
{"meshfeed": 1,
 "mesh": {"axes": [["data", 4], ["time", 2], ["space", 2]], "processes": 4},
 "arrays": {"video": {"shape": ["B", 16, 128, 128, 3], "dtype": "uint8", "spec": ["data", "time", "space"]},
            "caption": {"shape": ["B", 77], "dtype": "int32", "spec": ["data"]}},
 "batch": {"size": 64, "extras": ["key"]},
 "dataset": {"records": 800000},
 "prefetch": 1}
""",
)
assert "48 MiB per batch" in str(video)
assert "24 MiB per process for 2 batches" in str(video)

# %% [markdown]
# What to notice:
#
# - A batch has 48 MiB, and `"prefetch": 1` keeps two of them: 24 MiB in each of four processes.
# - The spec of `key` is the one that the arrays share. A row's key depends on seed, epoch and record, and not on
#   the mesh.
# - Two dimensions are drawn, and the third is in the boxes: `0|1` are different parts. `--dims` selects other
#   dimensions:

# %%
run("meshfeed plan 09-video.json --array video --dims 1,2")

# %% [markdown]
# ## Token packing
#
# Documents of all lengths, packed before training into rows of 4,096 tokens. Two more arrays have the number of
# the document and the position in it. A model builds its attention mask from them.

# %%
packed = example(
    "10-token-packing",
    """
{"meshfeed": 1,
 "mesh": {"axes": [["data", 16], ["model", 4]], "processes": 8},
 "arrays": {"tokens": {"shape": ["B", 4096], "dtype": "int32", "spec": ["data"]},
            "segments": {"shape": ["B", 4096], "dtype": "int16", "spec": ["data"]},
            "positions": {"shape": ["B", 4096], "dtype": "int16", "spec": ["data"]}},
 "batch": {"size": 256, "remainder": "pad"},
 "dataset": {"records": 12345678, "order": "shuffle.1", "seed": 7}}
""",
)
assert "the last one with 78 records" in str(packed)
assert "8 MiB per batch" in str(packed)
assert [problem.code for problem in packed.check()] == ["unused-axis"]

# %% [markdown]
# What to notice:
#
# - Arrays with one spec share one picture. `"pad"` added the mask `valid`: 78 rows of the last batch are real.
# - The remark `unused-axis` is intended here: a model axis that no array names holds copies. It would show a
#   mistake if the sequences were meant to be split.
# - `int16` is enough for numbers below 4,096. With 32 bits the batch grows by half:

# %%
arrays = json.loads(packed.to_json())["arrays"]
for name in ("segments", "positions"):
    arrays[name]["dtype"] = "int32"
print(str(changed(packed, arrays=arrays)).splitlines()[3])
assert "12 MiB per batch" in str(changed(packed, arrays=arrays))

# %% [markdown]
# ## Your own
#
# `print(layout.to_json())` prints the document of any `mf.layout(...)` or `loader.layout`.
# `layout.to_html("layout.html")` writes the browser page with the document inside, and `layout.serve()` shows it.
#
# JAX may order the devices of a mesh in its own way. Paste the output of `mesh.device_ids.tolist()` into the page,
# under the mesh, and the picture shows your mesh.
#
# A document has at most 8 MiB, 1,024 arrays, 32 axes, 2^20 devices and 131,072 processes, and a name has at most
# 1,024 bytes. These limits are the same in Go, Python, C, the command and the page. `meshfeed schema` prints them
# with the format.

# %%
os.chdir("/")
folder.cleanup()
