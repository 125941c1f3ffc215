# ruff: noqa: E501

# %% [markdown]
# # Images, text and your own functions
#
# You can decode images, call your own functions on rows, tokenize text, and decide what runs in the loader, in the step, or once before training.
#
# | level | before you begin | running time | memory |
# | --- | --- | --- | --- |
# | intermediate | [Quick reference](quick_reference.py); `pip install '.[demo]'` | 20 s | 900 MB |
#
# All of it is one program, `python docs/guides/transforms.py`, which needs no network. This is where work can be done:
#
# ```text
# once, before         in the loader, ahead     in the step
# meshfeed convert ──> ds.decode_image, ds.map  ──> cast, normalize, flip, mix
# files                rows of this process         the global batch, in jax.jit
# ```
#
# The rows that a process needs, and only those, go through your functions. A row depends on its record and its key. So every row is
# the same on any mesh and after any resume, and a function has no state to save.

# %%
import ast
import builtins
import importlib.util
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import sklearn.datasets
from jax.sharding import PartitionSpec as P
from PIL import Image
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

import meshfeed as mf

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 8)


def show(x):
    """Shows a picture or a table: drawn in a notebook, as text elsewhere."""
    getattr(builtins, "display", print)(x)


def installed(name):
    """Returns whether a package is installed; prints a line if not."""
    if importlib.util.find_spec(name):
        return True
    print(name, "is not installed, so this cell did not run here")
    return False


# %% [markdown]
# ## 1. Images in an archive
#
# Two photographs that scikit-learn contains are cut into 128 pieces of different sizes. Each piece is a file in an archive as
# WebDataset writes them: `000017.jpg`, and `000017.json` with its label. (china.jpg and flower.jpg are by danielbuechele and vultilion, CC BY 2.0.)

# %%
folder = tempfile.TemporaryDirectory()
photographs = Path(sklearn.datasets.__file__).parent / "images"
rng = np.random.default_rng(0)


def add(archive, name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


with tarfile.open(f"{folder.name}/pieces-0000.tar", "w") as archive:
    for number in range(128):
        with Image.open(photographs / ("china.jpg", "flower.jpg")[number % 2]) as photograph:
            width, height = rng.integers(150, 300, 2)
            left, top = rng.integers(0, (photograph.width - width, photograph.height - height))
            piece = photograph.crop((left, top, left + width, top + height))
        jpeg = io.BytesIO()
        piece.save(jpeg, "JPEG", quality=90)
        add(archive, f"{number:06}.jpg", jpeg.getvalue())
        add(archive, f"{number:06}.json", json.dumps({"label": number % 2}).encode())

ds = mf.open(f"{folder.name}/pieces-*.tar")
print(ds)
print(ds[0]["__key__"], len(ds[0]["jpg"]), "bytes,", ds[0]["json"])

# %% [markdown]
# A field for each ending, with the bytes of the files. The same works for bytes in Parquet, in Arrow files and in datasets of
# Hugging Face. [All formats](../opens.md) are listed on a page.

# %% [markdown]
# ## 2. Decode
#
# `decode_image` makes arrays of one size from the bytes of JPEG, PNG and WebP files. It cuts out the largest centered part with the
# proportions of `size`, and each pixel is the mean of the area that it covers. Nothing is decoded before a row is needed.

# %%
centered = ds.decode_image("jpg", size=(64, 64))
print(centered.schema["jpg"])
stored = np.mean([len(image) for image in ds[:]["jpg"]])
print(f"a JPEG {stored:,.0f} bytes, as uint8 {64 * 64 * 3:,}, as float32 {64 * 64 * 3 * 4:,}")

# %% [markdown]
# Leave batches uint8, and cast in the step: float32 has four times the bytes, in memory and on the way to the devices.

# %% [markdown]
# ## 3. Call a function
#
# `ds.map` calls a function with some rows, as `ds[a:b]` returns them: an array per field, and a list for texts and bytes. It
# returns a dict of fields. `out` says their shapes and types, and `fields` what the function gets.


# %%
def label(rows):
    return {"label": np.array([json.loads(text)["label"] for text in rows["json"]], np.int32)}


labeled = centered.map(label, {"label": mf.Field((), "int32")}, fields=["json"])
print(labeled)
assert labeled[:4]["label"].tolist() == [0, 1, 0, 1]

# %% [markdown]
# A function of one row is shorter, and it is called for every row. Without `out`, one row shows what the function returns.


# %%
def label_of(row):
    return {"label": np.int32(json.loads(row["json"])["label"])}


single = centered.map(label_of, fields=["json"], batched=False)
assert single.schema["label"] == labeled.schema["label"]
assert np.array_equal(single[:]["label"], labeled[:]["label"])

# %% [markdown]
# The loader calls a function in several threads, ahead of the step. A call has any number of rows, and calls come in any
# order. A batch without the field calls nothing:

# %%
sizes = []


def counted(rows):
    sizes.append(len(rows["json"]))
    return label(rows)


mapped = centered.map(counted, {"label": mf.Field((), "int32")}, fields=["json"])
with mf.Loader(mapped.select(["jpg"]), batch_size=32, epochs=1) as loader:
    images = [batch["jpg"] for batch in loader]
assert len(images) == 4
assert sizes == []
with mf.Loader(mapped.select(["label"]), batch_size=32, epochs=1) as loader:
    labels = [batch["label"] for batch in loader]
assert sum(sizes) == 128
print(len(sizes), "calls, with", min(sizes), "to", max(sizes), "rows")

# %% [markdown]
# So a row may depend on itself and on its key, and on nothing else: no mean of the rows in the call, no counter, no
# random numbers of its own. `mf.check_map` reads some rows together, alone, twice and in another order:

# %%
mf.check_map(labeled)


def brighten(rows):
    return {"jpg": rows["jpg"] - rows["jpg"].mean().astype(np.uint8)}  # the mean of all rows


try:
    mf.check_map(centered.map(brighten, fields=["jpg"]))
except mf.InvalidArgumentError as error:
    found = str(error)
print(found)
assert "record 0 differs" in found

# %% [markdown]
# An exception is the error of the batch that needs the row. It names the record, its file, and the line of the function:


# %%
def unfinished(rows):
    raise ValueError("no label yet")


try:
    ds.map(unfinished, {"label": mf.Field((), "int32")})[17]
except mf.InvalidArgumentError as error:
    found = str(error)
print(found.replace(f"{folder.name}/", "").partition(" (")[0])
assert "record 17" in found

# %% [markdown]
# With `bad="zero"`, the row becomes zeros, and `loader.stats()["bad"]` counts it. The record keeps its place, so all other rows stay as
# they are on any mesh. `decode_image` has the same argument, for damaged files:

# %%
damaged = mf.from_arrow(pa.table({"jpg": [ds[0]["jpg"], ds[1]["jpg"][:500]]}))
with mf.Loader(
    damaged.decode_image("jpg", size=(64, 64), bad="zero"), batch_size=2, epochs=1
) as loader:
    (batch,) = loader
    print([int(image.max()) for image in batch["jpg"]], int(loader.stats()["bad"]), "bad")
assert batch["jpg"][0].any()
assert not batch["jpg"][1].any()

# %% [markdown]
# ## 4. Random choices that follow from keys
#
# `with_keys=True` gives the function a key for each row, made of the seed, the epoch and the record. A generator with that key draws
# the same numbers wherever and whenever the row is computed. `decode_image` draws its crops and flips from the same keys.


# %%
def rotate(rows, keys):
    """Turns each image by up to 15 degrees."""
    out = np.empty_like(rows["image"])
    for i, (image, key) in enumerate(zip(rows["image"], keys, strict=True)):
        angle = np.random.default_rng(key).uniform(-15, 15)
        out[i] = Image.fromarray(image).rotate(angle, Image.Resampling.BILINEAR)
    return {"image": out}


train = (
    ds.decode_image("jpg", size=(72, 72), crop="random", flip="random")
    .rename({"jpg": "image"})
    .map(rotate, {"image": mf.Field((72, 72, 3), "uint8")}, fields=["image"], with_keys=True)
    .map(label, {"label": mf.Field((), "int32")}, fields=["json"])
    .select(["image", "label"])
)
mf.check_map(train)


# %% [markdown]
# Two epochs of batches on eight devices, on another mesh of four, and on one device, with a resume in the middle:


# %%
OPTIONS = {"batch_size": 32, "shuffle": True, "seed": 1, "epochs": 2}


def images_of(mesh, state=None):
    with mf.Loader(train, mesh, P("data"), state=state, **OPTIONS) as loader:
        return [np.asarray(batch["image"]) for batch in loader]


eight = mf.make_mesh({"data": 4, "model": 2})
four = jax.make_mesh((2, 2), ("model", "data"), devices=jax.devices()[:4])
one = jax.make_mesh((1,), ("data",), devices=jax.devices()[:1])
expected = images_of(eight)
with mf.Loader(train, eight, P("data"), **OPTIONS) as loader:
    for _ in zip(range(5), loader, strict=False):
        pass
    state = loader.state()
assert len(expected) == 8
assert np.array_equal(expected, images_of(four))
assert np.array_equal(expected[5:], images_of(one, state))
print(len(json.dumps(state)), "bytes of state, and the same images on 8, 4 and 1 devices")

# %% [markdown]
# Each epoch has other crops, flips and angles. These are the first eight records, as two epochs have them:

# %%
with mf.Loader(train, batch_size=8, seed=1) as loader:
    epochs = [next(iter(loader.one_epoch(epoch)))["image"] for epoch in range(2)]
assert not any(np.array_equal(*pair) for pair in zip(*epochs, strict=True))
figure, axes = plt.subplots(2, 8, figsize=(8, 2.2), layout="constrained")
for line, images, name in zip(axes, epochs, ("epoch 0", "epoch 1"), strict=True):
    line[0].set_ylabel(name)
    for cell, image in zip(line, images, strict=True):
        cell.imshow(image)
        cell.set(xticks=[], yticks=[])
show(figure)
plt.close(figure)

# %% [markdown]
# `ds[i]` shows seed 0 and epoch 0. If two functions draw from one key, let each add a number of its own:
# `np.random.default_rng([*key, 1])`. Otherwise both draw the same numbers.

# %% [markdown]
# ## 5. What belongs into the step
#
# | work | where | reason |
# | --- | --- | --- |
# | decode, resize, parse, tokenize | the loader | rows have different sizes, and bytes instead of numbers |
# | random crop of the original image | `decode_image(crop="random")` | the step sees the smaller image only |
# | functions of Pillow, OpenCV, SciPy | `ds.map` | they run on the host |
# | cast, normalize, one-hot labels | the step | XLA joins them into one pass, and batches stay small |
# | flip, shift, color, cut-out | the step | a few operations for each pixel, with the same keys |
# | mixup, and whatever takes other rows | the step | a row of the loader depends on itself alone |
#
# The keys come as a field of the batch with `extras=["key"]`, and `jax.random` takes them. This module can be copied
# into a program:


# %%
SIZE = 64


def flip(key, image):
    return jnp.where(jax.random.bernoulli(key), image[:, ::-1], image)


def crop(key, image):
    top, left = jax.random.randint(key, (2,), 0, image.shape[0] - SIZE + 1)
    return jax.lax.dynamic_slice(image, (top, left, 0), (SIZE, SIZE, 3))


def cut(key, image):
    for_flip, for_crop = jax.random.split(key)
    return crop(for_crop, flip(for_flip, image))


def mixup(keys, images, labels):
    """Mixes each row of the batch with the next one, by a share that follows from the row's key."""
    share = jax.vmap(lambda key: jax.random.uniform(jax.random.fold_in(key, 2)))(keys)
    both = [(rows, jnp.roll(rows, -1, axis=0)) for rows in (images, labels)]
    shares = [share.reshape(-1, *[1] * (rows.ndim - 1)) for rows, _ in both]
    return [s * rows + (1 - s) * after for s, (rows, after) in zip(shares, both, strict=True)]


@jax.jit
def augment(batch):
    """Returns float32 images and shares of the labels, for training."""
    keys = jax.random.wrap_key_data(batch["key"])
    images = jax.vmap(cut)(keys, batch["image"]).astype(jnp.float32) / 127.5 - 1
    return mixup(keys, images, jax.nn.one_hot(batch["label"], 2))


# %% [markdown]
# A step calls it as its first line. The rows of a batch and their keys are the same on any mesh, so the augmented rows are, too, up to
# the rounding of XLA:

# %%
augmented = []
for mesh in (eight, one):
    with mf.Loader(train, mesh, P("data"), extras=["key"], **OPTIONS) as loader:
        batch = next(iter(loader))
        augmented.append([np.asarray(part) for part in augment(batch)])
(images, labels), (alone, _) = augmented
np.testing.assert_allclose(images, alone, atol=1e-6)
np.testing.assert_allclose(labels.sum(axis=1), 1, atol=1e-6)
print(batch["image"].shape, batch["image"].dtype, "->", images.shape, images.dtype)

# %% [markdown]
# Here is the price of a normalization on both sides, on the machine that ran this page. In the loader, batches also become
# four times as large.


# %%
def milliseconds(call):
    """Returns the fastest of five calls."""
    call()
    times = []
    for _ in range(5):
        began = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - began))
    return min(times)


pixels = np.asarray(batch["image"])
normalize = jax.jit(lambda image: image.astype(jnp.float32) / 127.5 - 1)
in_loader = milliseconds(lambda: pixels.astype(np.float32) / 127.5 - 1)
in_step = milliseconds(lambda: normalize(batch["image"]).block_until_ready())
print(f"32 images: NumPy {in_loader:.2f} ms, {4 * pixels.nbytes:,} bytes to the devices")
print(f"32 images: jit {in_step:.2f} ms, {pixels.nbytes:,} bytes to the devices")

# %% [markdown]
# ## 6. Tokenize
#
# A tokenizer is a function of a text, so it is a map. Two things differ from images. `encode_batch` takes all rows of a call at once,
# outside of Python's lock; with a call of `encode` for each text, threads wait for that lock. And packing needs the lengths of all documents, so the tokens
# are computed once and kept: `map`, `cache`, `pack`.
#
# The texts are docstrings of Python's library, in JSON Lines. The tokenizer is trained on them.

# %%
paths = sorted(Path(ast.__file__).parent.glob("*.py"))[:80]
modules = [ast.parse(path.read_text(errors="replace")) for path in paths]
nodes = [node for module in modules for node in ast.walk(module)]
functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)]
texts = list(filter(None, map(ast.get_docstring, functions)))
lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
Path(f"{folder.name}/docs.jsonl").write_text(lines)

tokenizer = Tokenizer(BPE())
tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
letters = ByteLevel.alphabet()
trainer = BpeTrainer(vocab_size=1000, initial_alphabet=letters, show_progress=False)
tokenizer.train_from_iterator(texts, trainer)

# %%
calls = []


def tokenize(rows):
    calls.append(len(rows["text"]))
    return {"tokens": [encoding.ids for encoding in tokenizer.encode_batch(rows["text"])]}


documents = mf.open(f"{folder.name}/docs.jsonl", cache="memory")


def packed():
    tokens = documents.map(tokenize, {"tokens": mf.Field((None,), "int32")}, key="bpe-1000.1")
    kept = tokens.select(["tokens"]).cache(f"{folder.name}/kept")
    return kept.pack("tokens", length=128, labels="labels")


rows = packed()
print(len(texts), "documents,", len(rows), "rows,", rows[0]["tokens"][:8], "…")
assert sum(calls) >= len(texts)

# %% [markdown]
# The folder now has the tokens. A second run, another process of this host, or another loader reads them there. It calls the
# tokenizer for 64 texts only, which show the size of a row. `key=` names what the function does: change it with the tokenizer, and
# the tokens are computed again.

# %%
calls.clear()
again = packed()
with mf.Loader(again, eight, P("data"), batch_size=16, shuffle=True) as loader:
    batch = next(iter(loader))
print({name: array.shape for name, array in batch.items()}, sum(calls), "texts tokenized")
assert sum(calls) <= 64

# %% [markdown]
# With tiktoken, the function is one line, too. `tiktoken.get_encoding("gpt2")` fetches its table from the network at its first use; the
# encoding of this cell has one token for each byte, and needs none. With tokenizers of `transformers`, it is
# `tokenizer(rows["text"])["input_ids"]`.

# %%
if installed("tiktoken"):
    import tiktoken

    encoding = tiktoken.Encoding(
        "bytes",
        pat_str=r"\S+|\s+",
        mergeable_ranks={bytes([byte]): byte for byte in range(256)},
        special_tokens={},
    )

    def bytes_of(rows):
        return {"tokens": encoding.encode_ordinary_batch(rows["text"], num_threads=1)}

    tokens = documents.map(bytes_of, {"tokens": mf.Field((None,), "int32")})
    assert tokens[0]["tokens"].tolist() == list(texts[0].encode())
    print(tokens[0]["tokens"][:8])

# %% [markdown]
# [From text to batches of tokens](tokens.py) continues from here: mixtures, attention inside documents, training.

# %% [markdown]
# ## 7. Once, or in every epoch
#
# | rows | do | costs |
# | --- | --- | --- |
# | differ from epoch to epoch: random crops | compute them in every epoch | the work, in every epoch |
# | are the same in every epoch, and small: tokens, features, small images | `ds.map(fn, key=…).cache()` | their bytes on the disk; the work, once a host |
# | are the same, and large: float images | compute them in every epoch, or keep uint8 and cast in the step | |
# | need more than this host | write files before training, with as many machines as you like | another copy of the dataset |
#
# The last line of the table is a command. It calls a function of a module, writes Arrow files, and continues where it was ended. With `--part 1/8` to
# `--part 8/8`, eight machines do an eighth each.

# %%
Path(f"{folder.name}/prepare.py").write_text("""
import numpy as np

def tokenize(rows):
    return {"tokens": [np.frombuffer(text.encode(), np.uint8) for text in rows["text"]]}
""")
convert = [sys.executable, "-m", "meshfeed", "convert", "--map", "prepare:tokenize"]
convert += ["--columns", "tokens", "docs.jsonl", "converted"]
subprocess.run(convert, cwd=folder.name, check=True)
converted = mf.open(f"{folder.name}/converted")
print(converted)
assert bytes(converted[5]["tokens"]).decode() == texts[5]

# %% [markdown]
# A chain can have both: what is fixed comes first and is kept, and what is random follows.

# %%
small = ds.decode_image("jpg", size=(96, 96)).select(["jpg"]).rename({"jpg": "image"})
kept = small.cache(f"{folder.name}/kept").map(
    rotate, {"image": mf.Field((96, 96, 3), "uint8")}, with_keys=True
)
with mf.Loader(kept, batch_size=32, epochs=2) as loader:
    assert sum(1 for _ in loader) == 8
    print({name: round(loader.stats()[name], 3) for name in ("map_seconds", "wait_seconds")})

# %% [markdown]
# ## 8. Is it fast enough?
#
# A loader computes ahead while the step runs. If the step takes longer, a function costs nothing, and nothing needs to be changed.
# `loader.report()` says which of the two it is, and where the time goes: reading files (`storage`), decompressing (`decode`),
# images and functions (`map`), copying rows (`gather`), and making arrays of a batch (`hand-over`). Here there is no step, so the loop waits:

# %%
with mf.Loader(train, eight, P("data"), **OPTIONS) as loader:
    for _ in loader:
        pass
    report = loader.report()
print(report)
assert "map" in [part.name for part in report.parts]

# %% [markdown]
# `mf.benchmark.sweep` times the same loader with and without the function:

# %%
decoded = ds.decode_image("jpg", size=(72, 72), crop="random", flip="random").select(["jpg"])
compared = mf.benchmark.sweep(
    lambda rotated: mf.Loader(train if rotated else decoded, batch_size=32, epochs=-1),
    {"rotated": [False, True]},
    batches=12,
)
show(compared)
assert all(point.result for point in compared.points)

# %% [markdown]
# If functions are the limit, in this order:
#
# 1. Move into the step what it can do, as in [section 5](#5-what-belongs-into-the-step).
# 2. Work on all rows of a call at once, in code that releases Python's lock: NumPy on large arrays, Pillow, OpenCV, `encode_batch`.
#    Loops in Python, small arrays, and a call for each text run in one thread at a time.
# 3. Keep the rows with `cache`, if they are the same in every epoch.
# 4. Give the files fewer pixels: write the photographs once more, at the size that you need.
#
# There are no worker processes. Each process of a job has threads of its own, and computes the rows of its devices alone.

# %% [markdown]
# ## 9. Audio
#
# There is no decoder of audio. A window of one second at a random place is a map with keys:

# %%
if installed("soundfile"):
    import soundfile

    RATE = 16_000

    def window(rows, keys):
        out = np.zeros((len(keys), RATE), np.float32)
        for sound, data, key in zip(out, rows["wav"], keys, strict=True):
            with soundfile.SoundFile(io.BytesIO(data)) as file:
                file.seek(np.random.default_rng(key).integers(0, max(1, file.frames - RATE)))
                read = file.read(RATE, dtype="float32")
            sound[: len(read)] = read
        return {"sound": out}

    tones = []
    for pitch in (220, 440):
        wave = io.BytesIO()
        tone = np.sin(np.arange(3 * RATE) * 2 * np.pi * pitch / RATE)
        soundfile.write(wave, tone, RATE, format="WAV")
        tones.append(wave.getvalue())
    sounds = mf.from_arrow(pa.table({"wav": pa.array(tones, pa.binary())}))
    sounds = sounds.map(window, {"sound": mf.Field((RATE,), "float32")}, with_keys=True)
    mf.check_map(sounds)
    print(sounds[1]["sound"].shape)

folder.cleanup()

# %% [markdown]
# ## Names of other libraries
#
# ### PyTorch's DataLoader and torchvision
#
# | there | here |
# | --- | --- |
# | `Dataset.__getitem__` that opens an image and transforms it | `ds.decode_image(…)`, then `ds.map(fn, batched=False)` or with `batched=True` |
# | `RandomResizedCrop(224)` | `size=(224, 224), crop="random"`: 8 to 100 % of the area, proportions up to 4/3 |
# | `RandomHorizontalFlip()` | `flip="random"`, or in the step |
# | `Resize(256)`, `CenterCrop(224)` | `crop="center"`, which takes the whole height or width; or decode 256 by 256, and crop in the step |
# | `Grayscale()` | `color="gray"` |
# | `ToTensor()`, `Normalize(mean, std)`, `v2.MixUp` | in the step |
# | `ColorJitter`, `RandAugment` and others of the host | `ds.map(fn, with_keys=True)`, or in the step |
# | `num_workers=8`, `prefetch_factor=2` | `workers=`, `prefetch=`: threads |
# | `worker_init_fn`, `torch.initial_seed()`, a seed for each worker | `with_keys=True` |
# | `collate_fn` that pads | `ds.pad`, or `ds.pack` |
#
# ### Grain
#
# | there | here |
# | --- | --- |
# | `dataset.map(fn)`, `grain.transforms.Map` | `ds.map(fn, batched=False)` |
# | `dataset.random_map(fn)`, `grain.transforms.RandomMap`, with a generator for each record | `ds.map(fn, with_keys=True, batched=False)` and `np.random.default_rng(key)` |
# | `dataset.batch(b).map(fn)` | `ds.map(fn)`: the function gets several rows, but not those of one batch |
# | `dataset.mp_prefetch(…)` | nothing: threads |
# | `dataset.filter(fn)` | `ds.filter(fn)`, computed once |
#
# ### tf.data
#
# | there | here |
# | --- | --- |
# | `dataset.map(fn, num_parallel_calls=tf.data.AUTOTUNE)` | `ds.map(fn)`, by default with a call for each processor |
# | `dataset.map(tf.io.decode_jpeg)`, `tf.image.resize(method="area")` | `ds.decode_image` |
# | `tf.image.stateless_random_flip_left_right(image, seed)` | in the step, with `extras=["key"]` |
# | `tf.py_function`, `tf.numpy_function` | `ds.map` |
# | `dataset.cache(path)` after a map | `ds.map(fn, key=…).cache(folder)` |
# | `dataset.prefetch(tf.data.AUTOTUNE)` | `prefetch=`, by default 2 |
# | `experimental_deterministic`, `stateless_` seeds | nothing: rows and order always follow from the seed |
#
# ### Hugging Face datasets
#
# | there | here |
# | --- | --- |
# | `dataset.map(fn, batched=True, num_proc=8)`, which writes its result | `ds.map(fn, key=…).cache()` |
# | `dataset.set_transform(fn)`, `with_transform` | `ds.map(fn)` |
# | `cast_column("image", Image())` | `ds.decode_image("image", size=(224, 224))` |
# | a fingerprint of the function's code | `key=`, which you change |
# | `remove_columns=…`, `rename_columns` | `ds.select`, `ds.rename` |
# | a batched map that returns more or fewer rows | none: a map keeps the records; `ds.filter` and `ds.pack` change them |
#
# ### WebDataset
#
# | there | here |
# | --- | --- |
# | `wds.WebDataset("shards-{000000..000127}.tar")` | `mf.open("shards-{000000..000127}.tar")` |
# | `.decode("rgb8")` | `ds.decode_image("jpg", size=…)` |
# | `.to_tuple("jpg", "cls")`, `.rename(image="jpg")` | `ds.select(["jpg", "cls"])`, `ds.rename({"jpg": "image"})` |
# | `.map(fn)`, `.map_dict(cls=fn)` | `ds.map(fn, fields=["cls"], batched=False)` |
# | `.shuffle(1000)`, a buffer | `shuffle=True`, all records; from slow disks, `order="blocks"` |
# | `handler=wds.warn_and_continue` | `bad="zero"`: the record keeps its place |
# | `nodesplitter=`, `split_by_worker`, `resampled=True`, `with_epoch(n)` | nothing: rows follow from the mesh, and an epoch is the dataset |
#
# [The guide](../guide.md#compute-rows-by-a-function) has all rules, and [the cookbook](../cookbook.md) has recipes.
