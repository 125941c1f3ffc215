# ruff: noqa: E501

# %% [markdown]
# # From text to batches of tokens
#
# You can pack documents into rows, mix datasets with weights, train with attention inside documents, and resume on another mesh.
#
# | level | before you begin | running time | memory |
# | --- | --- | --- | --- |
# | intermediate | [Quick reference](quick_reference.py), what attention is; `pip install '.[jax,arrow]'` | 20 s | 1,200 MB |
#
# All of it is one program, `python docs/guides/tokens.py`, which needs no network. This is what it builds:
#
# ```text
# documents         ds.pack                 mf.mix                    loader
# lists of    ───>  rows of one      ───>   draws from datasets  ───> global arrays, split
# tokens            length, no waste        with weights              by batch and sequence
# ```
#
# Each arrow is a view: nothing is copied or stored before a batch is made. Every row follows from its number,
# so all of this is exact on any mesh, and a run resumes from a state of 256 bytes.

# %%
import ast
import json
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from jax.sharding import PartitionSpec as P

import meshfeed as mf

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 8)

# %% [markdown]
# ## 1. Documents
#
# Real text that every Python has: the sources of its library are the code, and the texts that explain
# functions are the prose. A token is a byte here, plus 1, because 0 is padding. [With a tokenizer](transforms.py#6-tokenize), `ds.map`
# makes the lists from texts, once, and keeps them.

# %%
code, prose = [], []
for path in sorted(Path(ast.__file__).parent.glob("*.py"))[:120]:
    source = path.read_text(errors="replace")
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            code.append("\n".join(lines[node.lineno - 1 : node.end_lineno])[:4000])
            if text := ast.get_docstring(node):
                prose.append(text)


def tokens(texts):
    """Returns the documents as lists of tokens, in a table."""
    lists = [np.frombuffer(text.encode(), np.uint8).astype(np.int32) + 1 for text in texts]
    offsets = np.cumsum([0, *map(len, lists)], dtype=np.int32)
    return pa.table({"tokens": pa.ListArray.from_arrays(offsets, np.concatenate(lists))})


folder = tempfile.TemporaryDirectory()
for name, texts in {"code": code, "prose": prose}.items():
    pq.write_table(tokens(texts), f"{folder.name}/{name}.parquet", row_group_size=500)
documents = {
    name: mf.open(f"{folder.name}/{name}.parquet", cache="memory") for name in ("code", "prose")
}
for name, ds in documents.items():
    print(f"{name}: {len(ds):,} documents, {ds.schema['tokens']}")

# %% [markdown]
# If your tokens are in files already, open those:
#
# | files | call | records |
# | --- | --- | --- |
# | Arrow, Parquet, with a column of lists | `mf.open("docs-*.parquet")` | documents |
# | JSON Lines, with a list of tokens in each | `mf.open("docs-*.jsonl.zst")` | documents |
# | Megatron's `.bin` and `.idx` | `mf.open("corpus.idx")` | documents |
# | nanoGPT's `.bin`, modded-nanoGPT's with its header | `mf.open("train.bin", dtype="uint16")`, with `skip=1024` | one token each: see [section 7](#7-one-long-list-of-tokens) |
# | `.npy` | `mf.open("train.npy")` | one token, or one row, each |

# %% [markdown]
# ## 2. Pack
#
# Documents differ in length. A row for each would be mostly padding:

# %%
LENGTH = 128
for name, ds in documents.items():
    lengths = np.array([len(row["tokens"]) for row in ds])
    kept = np.minimum(lengths, LENGTH)
    print(
        f"{name}: lengths up to {lengths.max():,}; padded to {LENGTH}, {kept.mean() / LENGTH:.0%} would be tokens"
    )

packed = {name: ds.pack("tokens", length=LENGTH, labels="labels") for name, ds in documents.items()}
for name, ds in packed.items():
    found = ds.packing()
    print(
        f"{name}: {found['rows']:,} rows, {found['real']:.1%} tokens, {found['split']:,} documents cut"
    )
    assert found["real"] > 0.98

# %% [markdown]
# `pack` adds three fields. `segment_ids` numbers the documents of a row from 1 on, and is 0 in padding. `positions`
# counts from 0 in each document. `labels` are the next tokens, made inside of each document, and -100 at its end and in
# padding. A document that is longer than a row is cut; no label is lost at the cut.

# %%
row = packed["prose"][0]
for name in ("tokens", "segment_ids", "positions", "labels"):
    print(f"{name:12}", row[name][:6], "…", row[name][-3:])

# %% [markdown]
# ## 3. Mix
#
# 80 % of the rows shall be code, and after 30 steps 50 %. `schedule` counts rows, so step 30 begins at row
# `30 * BATCH`. `source` adds a field with the number of the dataset.

# %%
BATCH = 64
ds = mf.mix(
    packed,
    {"code": 0.8, "prose": 0.2},
    seed=0,
    schedule=[(30 * BATCH, {"code": 0.5, "prose": 0.5})],
    source="source",
)
print(ds)

# %% [markdown]
# After every 64 rows, each dataset is within 1.68 rows of its share. Drawing at random would be off by the root of
# the number of rows. A dataset that has given all its rows begins again, in another order; none of its rows
# comes twice before each came once. The mixture shuffles its datasets, so the loader must not shuffle.
#
# A shuffle needs any row next. If the decoded files exceed the cache, or 28 million documents are packed, shuffle in blocks:
# `mf.mix(…, order=mf.Blocks(records=2000, window=32))` takes rows from 32 places of each dataset at a time. A loader over
# packed rows alone takes the same `order=`. With `order="blocks"`, a block is a whole group of packed documents, so a
# window often has one group only.

# %% [markdown]
# ## 4. Batches on the mesh
#
# Rows are split over "data", and each row is split along the sequence over "seq". The field `source` has one number a row.

# %%
mesh = mf.make_mesh({"data": 4, "seq": 2})
specs = {name: P("data", "seq") for name in ("tokens", "segment_ids", "positions", "labels")}
specs["source"] = P("data")
loader = mf.Loader(ds, mesh, specs, batch_size=BATCH)
batches = iter(loader)
batch = next(batches)
print({name: (array.shape, array.sharding.spec) for name, array in batch.items()})
shares = np.bincount(batch["source"])
print("rows of", dict(zip(ds.schema["source"].names, shares.tolist(), strict=True)))
assert abs(shares[0] - 0.8 * BATCH) < 1.68

# %% [markdown]
# ## 5. Attention inside documents
#
# Positions that restart do not stop attention between documents: the mask must compare the segments. The mask below goes
# to `jax.nn.dot_product_attention`, which has no argument for segments. Splash attention on TPUs has one,
# `SegmentIds(q=segments, kv=segments)`, and needs no mask of all pairs.

# %%
VOCABULARY, WIDTH, HEADS = 257, 64, 4


def attention(x, weights, segments):
    q, k, v = jnp.split(x @ weights["qkv"], 3, axis=-1)
    q, k, v = (a.reshape(*a.shape[:2], HEADS, WIDTH // HEADS) for a in (q, k, v))
    same = segments[:, None, :, None] == segments[:, None, None, :]
    out = jax.nn.dot_product_attention(q, k, v, mask=same, is_causal=True)
    return out.reshape(x.shape) @ weights["out"]


def logits(weights, tokens, segments, positions):
    x = weights["token"][tokens] + weights["place"][positions]
    for layer in weights["layers"]:
        x = x + attention(x / jnp.linalg.norm(x, axis=-1, keepdims=True), layer, segments)
        x = x + jax.nn.gelu(x @ layer["up"]) @ layer["down"]
    return x @ weights["token"].T


def loss(weights, batch):
    out = logits(weights, batch["tokens"], batch["segment_ids"], batch["positions"])
    labels = batch["labels"]
    real = labels >= 0
    each = -jnp.take_along_axis(jax.nn.log_softmax(out), jnp.where(real, labels, 0)[..., None], -1)[
        ..., 0
    ]
    per_row = (each * real).sum(1), real.sum(1)
    return per_row[0].sum() / per_row[1].sum(), per_row


def initial(key):
    def normal(*shape):
        nonlocal key
        key, use = jax.random.split(key)
        return jax.random.normal(use, shape) * 0.05

    layer = {
        "qkv": (WIDTH, 3 * WIDTH),
        "out": (WIDTH, WIDTH),
        "up": (WIDTH, 4 * WIDTH),
        "down": (4 * WIDTH, WIDTH),
    }
    layers = [{name: normal(*shape) for name, shape in layer.items()} for _ in range(2)]
    return {"token": normal(VOCABULARY, WIDTH), "place": normal(LENGTH, WIDTH), "layers": layers}


# %% [markdown]
# The test for any model on packed rows: other tokens in the first document change nothing in the second one.

# %%
weights = initial(jax.random.key(0))
segments = np.asarray(batch["segment_ids"])
several = segments[segments.max(1) > 1]
assert len(several) > 0
some = (
    np.asarray(batch["tokens"])[segments.max(1) > 1],
    np.asarray(batch["positions"])[segments.max(1) > 1],
)
other = np.where(several == 1, 99, some[0])
before, after = (np.asarray(logits(weights, t, several, some[1])) for t in (some[0], other))
assert np.array_equal(before[several > 1], after[several > 1])
assert not np.array_equal(before[several == 1], after[several == 1])
print(
    "other tokens in the first document leave",
    int((several > 1).sum()),
    "tokens of later documents as they were",
)

# %% [markdown]
# Kernels for rows of several lengths take cumulative lengths instead. They follow from the segments:


# %%
def cumulative_lengths(segment_ids):
    """Returns where each document of a batch begins, and the number of all tokens, row after row."""
    flat = np.asarray(segment_ids).ravel()
    row = np.repeat(np.arange(len(segment_ids)), segment_ids.shape[1])
    starts = np.flatnonzero(np.diff(flat, prepend=-1) | np.diff(row, prepend=-1))
    return np.append(starts, flat.size).astype(np.int32)


print("cumulative lengths of a row:", cumulative_lengths(several[:1]))
assert cumulative_lengths(np.array([[1, 1, 2, 0], [1, 1, 1, 1]])).tolist() == [0, 2, 3, 4, 8]

# %% [markdown]
# ## 6. Train, stop, resume on another mesh


# %%
@jax.jit
def step(weights, moments, batch):
    (value, per_row), gradients = jax.value_and_grad(loss, has_aux=True)(weights, batch)
    moments = jax.tree.map(lambda m, g: 0.95 * m + jnp.square(g) * 0.05, moments, gradients)
    weights = jax.tree.map(
        lambda w, g, m: w - 0.003 * g / (jnp.sqrt(m) + 1e-8), weights, gradients, moments
    )
    return weights, moments, value, per_row


def by_source(per_row, source):
    """Returns the loss of each dataset."""
    sums, counts = (np.bincount(source, np.asarray(a), minlength=2) for a in per_row)
    return sums / np.maximum(counts, 1)


moments = jax.tree.map(jnp.zeros_like, weights)
losses, seen = [], []
with jax.set_mesh(mesh):
    for number in range(40):
        weights, moments, value, per_row = step(weights, moments, batch)
        losses.append(float(value))
        seen.append({name: np.asarray(array) for name, array in batch.items()})
        if number % 10 == 9:
            each = by_source(per_row, batch["source"])
            shares = np.bincount(batch["source"], minlength=2)
            print(
                f"step {number + 1}: loss {value:.2f}; code {each[0]:.2f} ({shares[0]} rows), prose {each[1]:.2f} ({shares[1]} rows)"
            )
        if number == 19:
            state = loader.state()
        batch = next(batches)
assert losses[-1] < 0.7 * losses[0]
assert abs(np.bincount(seen[-1]["source"])[0] - 0.5 * BATCH) < 1.68
loader.close()

# %% [markdown]
# The state of step 20 continues on a mesh with another shape, here of four devices, with the same rows as the run that
# went on:

# %%
print(len(json.dumps(state)), "bytes:", state)
small = jax.make_mesh((2, 2), ("data", "seq"), devices=jax.devices()[:4])
with mf.Loader(ds, small, specs, batch_size=BATCH, state=state) as resumed:
    for expected, batch in zip(seen[20:], resumed, strict=False):
        for name, array in batch.items():
            assert np.array_equal(array, expected[name])
print("20 batches on 4 devices are those of 8")

# %% [markdown]
# Several processes run this program as it is, after `jax.distributed.initialize()`: each reads the documents
# of its rows only, and the part of each row that its devices hold.

# %% [markdown]
# ## 7. One long list of tokens
#
# nanoGPT keeps all tokens in one file without documents. A record is a token, and a window of records is a row. It is
# copied at once from the file, and no table of windows is kept, so 10 billion tokens open at once.

# %%
flat = np.concatenate([row["tokens"] for row in documents["prose"]]).astype(np.uint16)
flat.tofile(f"{folder.name}/train.bin")
stream = mf.open(f"{folder.name}/train.bin", dtype="uint16")
windows = stream.window(LENGTH + 1, stride=LENGTH)
with mf.Loader(windows, mesh, P("data"), batch_size=8, shuffle=True) as loader:
    rows = next(iter(loader))["tokens"]
inputs, targets = rows[:, :-1], rows[:, 1:]
print(f"{len(stream):,} tokens, {len(windows):,} windows, inputs {inputs.shape}")
folder.cleanup()

# %% [markdown]
# ## Names of other libraries
#
# | there | here |
# | --- | --- |
# | Grain's `FirstFitPackIterDataset`, `BestFitPackIterDataset` | `ds.pack(field, length=n)` |
# | Grain's `ConcatThenSplitIterDataset`, torchtitan's and TRL's joined packing ("wrapped") | `method="split"` |
# | MaxText's `inputs_segmentation`, `inputs_position`, `targets` | `segment_ids`, `positions`, `labels`; `ds.rename` gives other names |
# | TRL's `bfd`, `bfd_split` | `too_long="truncate"`, `"split"` |
# | Axolotl's `sample_packing_group_size` | `group=` |
# | torchtitan's `IGNORE_INDEX` | `ignored_label=`, by default -100 |
# | Grain's `MapDataset.mix`, Levanter's mixture, Megatron's blended dataset | `mf.mix` |
# | Levanter's stages of weights | `schedule=`, counted in rows; a run may get later stages appended |
# | Megatron's `IndexedDataset` | `mf.open("corpus.idx")` |
# | nanoGPT's `get_batch` with random offsets | windows that are shuffled: each comes once in an epoch |
# | a packing or a mixture that cannot be elastic | every loader resumes on any number of processes |
#
# [The guide](../guide.md#pack-documents-into-rows) has all options.
