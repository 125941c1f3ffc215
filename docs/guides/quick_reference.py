# ruff: noqa: E501

# %% [markdown]
# # Quick reference
#
# You can load batches onto any number of devices, and check where every row is.
#
# | level | before you begin | running time | memory |
# | --- | --- | --- | --- |
# | beginner | NumPy, a little JAX; `pip install '.[jax]'` | 3 s | 400 MB |
#
# Reading takes five minutes. All of it is one program, `python docs/guides/quick_reference.py`, which
# needs no files and no network. This is what it builds:
#
# ```text
# records              loader                   batch                     your step
# NumPy arrays,  ───>  takes the rows of  ───>  global jax.Arrays:  ───>  jax.jit runs on
# Arrow files          a step, cuts them        each device holds         all devices at
#                      by mesh and specs        its own part              once
# ```

# %% [markdown]
# ## 1. Devices
#
# The program asks JAX for eight CPU devices, so that it runs on a laptop. On a machine with GPUs or
# TPUs, leave out the two lines with "cpu". The rest is the same for every kind of device. The sizes
# below divide over 1, 2, 4, 8 or 16 devices.
#
# To run it in pieces, paste its cells into a notebook or into IPython. Python's own prompt ends a function at
# an empty line.
#
# Each `assert` checks a statement of the text. If you change a size, some of them fail: that shows what
# depends on it.

# %%
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

import meshfeed as mf

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 8)

print(jax.device_count(), "devices:", *jax.devices())

# %% [markdown]
# A program needs no branch for a single device. One device is a mesh of size one, and
# [section 7](#7-one-device-or-eight) runs the same code on it.

# %% [markdown]
# ## 2. Data
#
# 1,024 images of 32 by 32 pixels with three channels, and a label for each. Every pixel of image 17
# has the value 17. So a value on a device says which image it belongs to.

# %%
number = np.arange(1024)
images = np.empty((1024, 32, 32, 3), np.float32)
images[:] = number[:, None, None, None]
labels = (number % 10).astype(np.int32)

ds = mf.from_arrays({"image": images, "label": labels})
print(ds)
assert len(ds) == 1024

# %% [markdown]
# A dataset is a number of *records*. Each record has a row in every *field*, here "image" and
# "label". If your data is in Arrow files, replace `mf.from_arrays(...)` by `mf.open("train-*.arrow")`.

# %% [markdown]
# ## 3. Mesh
#
# A *mesh* arranges devices along named axes. This one has a single axis, "data". -1 stands for as many
# devices as there are.

# %%
mesh = mf.make_mesh({"data": -1})
print(mesh)

# %% [markdown]
# ## 4. Specs
#
# A *spec* says, for each dimension of an array, which mesh axis splits it. `None` means that the
# dimension is not split. Here the batch is split, and each image stays whole:
#
# | field | dimensions | spec |
# | --- | --- | --- |
# | image | batch, height, width, channels | `P("data", None, None, None)` |
# | label | batch | `P("data")` |

# %%
specs = {"image": P("data", None, None, None), "label": P("data")}

# %% [markdown]
# The `None`s at the end may be left out. Then both fields have the spec `P("data")`, and instead of a
# dict you can give one spec for all fields:

# %%
spec = P("data")

# %% [markdown]
# ## 5. Two batches
#
# `batch_size` counts the rows of the global batch, over all devices. 64 rows for each of eight
# devices are 512 rows. So the 1,024 records are two batches.

# %%
batch_size = 64 * mesh.shape["data"]

with mf.Loader(ds, mesh, spec, batch_size=batch_size) as loader:
    layout = loader.layout
    for batch in loader:
        image, label = batch["image"], batch["label"]
        print(f"image {image.shape}, label {label.shape} {np.asarray(label)[:3]} ...")

# %% [markdown]
# A batch is a dict of `jax.Array`s. They are on their devices already, so pass them to your step as
# they are. `shuffle=True` puts the records into another order in every epoch. `loader.peek()` returns
# the next batch without taking it, for example to initialize a model.

# %% [markdown]
# ## 6. Verify the placement
#
# First the plan. The loader computes its layout before it reads anything: the shape and the bytes of
# each shard, and which rows of the batch each device holds. A notebook draws it in color.

# %%
print(layout)

# %% [markdown]
# Then the arrays themselves, by means of JAX alone. `sharding.spec` is the spec that you gave.
# `addressable_shards` lists the parts that this process holds. Each has a device, an index into the
# global array, and data. This was the second batch, so it begins with image 512.

# %%
print("image:", image.sharding.spec, " label:", label.sharding.spec)
for shard in image.addressable_shards:
    rows, values = shard.index[0], np.asarray(shard.data)
    print(f"{shard.device}: batch[{rows.start}:{rows.stop}],", end=" ")
    print(f"shape {values.shape}, images {values.min():.0f} to {values.max():.0f}")

# %% [markdown]
# The same as a test of your own program:

# %%
expected = np.arange(1024 - batch_size, 1024)
assert (np.asarray(label) == expected % 10).all()
for shard in image.addressable_shards:
    values = np.asarray(shard.data)
    assert values.shape == (64, 32, 32, 3)
    assert (values == expected[shard.index[0], None, None, None]).all()

# %% [markdown]
# A function under `jax.jit` sees the whole batch. Each device computes with its own rows, and JAX adds
# the communication that the result needs. Here this is a sum over all devices.

# %%
mean = jax.jit(jnp.mean)(image)
print("mean over the batch:", mean)
assert mean == expected.mean()

# %% [markdown]
# ## 7. One device, or eight
#
# Only the mesh changes. The batch has the same rows in the same order, and each device holds a smaller
# part of it.

# %%
for count in (n for n in (1, 2, 4, 8) if n <= jax.device_count()):
    mesh = mf.make_mesh({"data": -1}, devices=jax.devices()[:count])
    with mf.Loader(ds, mesh, P("data"), batch_size=512) as loader:
        batch = next(iter(loader))
    part = batch["image"].addressable_shards[0].data
    print(f"{count} devices, {len(part):3} images on each: {part.nbytes / 2**20:.2f} MiB")
    assert len(part) * count == 512
    assert (np.asarray(batch["label"]) == number[:512] % 10).all()

# %% [markdown]
# Memory per device shrinks here because the *global* batch is fixed. With a fixed batch *per device*,
# as in section 5, the memory per device stays the same, and the global batch grows.

# %% [markdown]
# ## 8. `jax.set_mesh`
#
# A program with one mesh can set it for all code that follows. Then specs need no mesh, neither in a
# loader nor in your step. (`with mesh:`, which older programs use, is deprecated.)


# %%
@jax.jit
def brightness(image):
    return jax.lax.with_sharding_constraint(image.mean(axis=(1, 2, 3)), P("data"))


mesh = mf.make_mesh({"data": -1})
with jax.set_mesh(mesh), mf.Loader(ds, specs=P("data"), batch_size=512) as loader:
    for batch in loader:
        result = brightness(batch["image"])
        print(result.shape, result.sharding.spec)

# %% [markdown]
# ## 9. Mesh patterns
#
# | pattern | use it if | mesh | spec of rows |
# | --- | --- | --- | --- |
# | data | the model fits on one device | `mf.make_mesh({"data": -1})` | `P("data")` |
# | model | it does not fit, and all devices work on the same rows | `mf.make_mesh({"model": -1})` | `P()` |
# | hybrid | two devices share a model, and each such pair has other rows | `mf.make_mesh({"data": -1, "model": 2})` | `P("data")` |
# | FSDP | rows and weights are split over the same devices | `mf.make_mesh({"data": -1, "fsdp": 4})` | `P(("data", "fsdp"))` |
# | sequence | a single row is too large for a device | `mf.make_mesh({"data": -1, "sequence": 4})` | `P("data", "sequence")` |
#
# The names of axes are yours. Two rules explain all five patterns. An axis in the spec splits a
# dimension. Along an axis that is not in the spec, all devices hold the same rows.
#
# Here are the five patterns with eight devices. `mf.layout` plans them, without devices and without
# reading:

# %%
patterns = {
    "data": ({"data": 8}, P("data")),
    "model": ({"model": 8}, P()),
    "hybrid": ({"data": 4, "model": 2}, P("data")),
    "FSDP": ({"data": 2, "fsdp": 4}, P(("data", "fsdp"))),
    "sequence": ({"data": 2, "sequence": 4}, P("data", "sequence")),
}
held = {}
print("pattern   part of the images   devices with the same part")
for name, (axes, spec) in patterns.items():
    layout = mf.layout(axes, {"image": spec}, ds, batch_size=512)
    image = layout.report()["arrays"]["image"]
    first, *others = [device["index"] for device in image["devices"]]
    same = 1 + others.count(first)
    held[name] = (*image["shard_shape"][:2], same)
    print(f"{name:10}{image['shard_shape']!s:21}{same}")

assert held == {
    "data": (64, 32, 1),
    "model": (512, 32, 8),
    "hybrid": (128, 32, 2),
    "FSDP": (64, 32, 1),
    "sequence": (256, 8, 1),
}

# %% [markdown]
# Which pattern suits a model and a cluster is a question of memory and time.
# [How to split a model](strategy.py) computes both.

# %% [markdown]
# ## 10. What the input pipeline does not do
#
# - It does not place weights, and it does not train. Your program does, on the same mesh.
# - It runs functions on rows in threads, and starts no processes for them: `ds.map`. Augment images in
#   your step, on the devices.
# - It reads Arrow files, Arrow tables and NumPy arrays. All rows of a field have one shape.
# - It starts no processes. In a job of many processes, each one runs this same program after
#   `jax.distributed.initialize()`.
#
# This program shows where rows are. It shows nothing about speed, because eight CPU devices share the
# cores of one machine.

# %% [markdown]
# ## 11. Next steps
#
# - [Distributed loading in depth](in_depth.py): a training program, and what limits its speed
# - [Tuning](tuning.py): what limits a loop, and which argument to change
# - [From one process to many](distributed.py): real processes, and the bug that JAX cannot notice
# - [Coming from another loader](coming_from.py): PyTorch, TensorFlow, Grain, Datarax
# - [How to split a model](strategy.py): memory and time of every way
# - [Guide](../guide.md): each feature with a few lines of code
