"""The loops: each yields the global arrays of the batches of one epoch, and resumes if it can."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import grain
import grain.experimental
import jax
import numpy as np
import pyarrow as pa

import meshfeed as mf
from tests.bench.tokens.cases import (
    FIELDS,
    Array,
    Batch,
    Documents,
    Mixture,
    Stream,
    rows_sharding,
)

ALONE = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)  # on the caller's thread


class Loop(Protocol):
    """One way to load a case."""

    def open(self) -> None:
        """Opens the data, and makes what all epochs share."""

    def begin(self, state: Any = None) -> Iterator[Batch]:
        """Yields the batches of an epoch, from the beginning or from a state on."""

    def state(self) -> Any:
        """Returns the state behind the last batch; None if this way has none."""


class Stateless:
    """A loop that cannot resume, and that opens nothing."""

    def open(self) -> None:
        pass

    def state(self) -> None:
        return None


class Meshfeed:
    """A loader over what `dataset` opens."""

    def __init__(self, dataset: Callable[[], mf.Dataset], batch: int, *, shuffle: bool) -> None:
        self._dataset, self._batch, self._shuffle = dataset, batch, shuffle

    def open(self) -> None:
        self._rows = self._dataset()

    def begin(self, state: Any = None) -> Iterator[Batch]:
        self._loader = mf.Loader(
            self._rows,
            None,
            rows_sharding(),
            batch_size=self._batch,
            shuffle=self._shuffle,
            epochs=1,
            state=state,
        )
        with self._loader:
            yield from self._loader

    def state(self) -> Any:
        return self._loader.state()


class Grain:
    """The batches of an IterDataset, whose fields get meshfeed's names."""

    def __init__(self, rows: Callable[[], grain.IterDataset], batch: int) -> None:
        self._make, self._batch = rows, batch

    def open(self) -> None:
        self._rows = self._make().batch(self._batch, drop_remainder=True)

    def begin(self, state: Any = None) -> Iterator[Batch]:
        self._batches = iter(self._rows)
        if state is not None:
            self._batches.set_state(state)
        sharding = rows_sharding()
        for batch in self._batches:
            renamed = {name.removeprefix("tokens_"): array for name, array in batch.items()}
            yield jax.device_put(renamed, sharding)

    def state(self) -> Any:
        return self._batches.get_state()


class Rows:
    """A random-access source of Grain."""

    def __init__(self, count: int, row: Callable[[int], Batch]) -> None:
        self._count, self._row = count, row

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, i: int) -> Batch:
        return self._row(i)


def opened(case: Documents | Stream, folder: Path, name: str) -> Loop:
    """Rows that were made before, and stored with all fields."""
    return Meshfeed(lambda: mf.open(case.path(folder, name)), case.batch, shuffle=True)


def packed(case: Documents, folder: Path, method: Any) -> Loop:
    path = case.path(folder, "documents.arrow")
    return Meshfeed(
        lambda: mf.open(path).pack("tokens", length=case.length, method=method),
        case.batch,
        shuffle=True,
    )


def grain_packed(case: Documents, folder: Path, packer: Any, **options: Any) -> Loop:
    """Shuffled documents, which Grain packs online."""

    def rows() -> grain.IterDataset:
        column = case.table(folder)["tokens"].chunk(0)
        offsets, values = column.offsets.to_numpy(), column.values.to_numpy()
        documents = Rows(case.documents, lambda i: {"tokens": values[offsets[i] : offsets[i + 1]]})
        shuffled = grain.MapDataset.source(documents).seed(0).shuffle()
        return packer(
            shuffled.to_iter_dataset(ALONE), length_struct={"tokens": case.length}, **options
        )

    return Grain(rows, case.batch)


class HuggingFace(Stateless):
    """Rows that `datasets` makes before the first epoch, in an order drawn by NumPy."""

    def __init__(self, case: Documents, folder: Path, pack: Any, collate: Any) -> None:
        self._case, self._folder, self._pack, self._collate = case, folder, pack, collate

    def open(self) -> None:
        import datasets

        datasets.disable_caching()  # every process makes its rows
        datasets.disable_progress_bars()
        documents = datasets.Dataset.from_file(
            str(self._case.path(self._folder, "documents.stream"))
        )
        self._rows = self._pack(documents, self._case.length).with_format("arrow")

    def begin(self, state: Any = None) -> Iterator[Batch]:
        case = self._case
        order = np.random.default_rng(0).permutation(len(self._rows))
        sharding = rows_sharding()
        for k in range(0, len(order) - case.batch + 1, case.batch):
            batch = self._collate(self._rows[order[k : k + case.batch]], case.length)
            yield jax.device_put(batch, sharding)


def trl_pack(documents: Any, length: int) -> Any:
    from trl import pack_dataset  # type: ignore[import-not-found, unused-ignore]

    return pack_dataset(documents, length, "bfd")


def collate_documents(rows: pa.Table, length: int) -> Batch:
    """Pads rows, and makes segments and positions from the lengths of their documents."""
    tokens, each = (rows[name].combine_chunks() for name in ("tokens", "seq_lengths"))
    real = np.arange(length) < tokens.value_lengths().to_numpy()[:, None]
    lengths = each.flatten().to_numpy()
    counts = each.value_lengths().to_numpy()
    numbers = np.arange(1, len(lengths) + 1) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    flat = (
        tokens.flatten().to_numpy(),
        np.repeat(numbers, lengths),
        np.arange(len(starts)) - starts,
    )
    out = {name: np.zeros((len(rows), length), np.int32) for name in FIELDS}
    for array, values in zip(out.values(), flat, strict=True):
        array[real] = values
    return out


def group_texts(documents: Any, length: int) -> Any:
    """The recipe of transformers' run_clm.py: joins and cuts 1,000 documents at a time."""

    def group(columns: Mapping[str, list[list[int]]]) -> dict[str, list[list[int]]]:
        flat = list(itertools.chain(*columns["tokens"]))
        whole = len(flat) // length * length
        return {"tokens": [flat[i : i + length] for i in range(0, whole, length)]}

    return documents.map(group, batched=True)


def collate_tokens(rows: pa.Table, length: int) -> Batch:
    """Returns tokens alone: the recipe keeps no borders of documents."""
    return {"tokens": rows["tokens"].combine_chunks().flatten().to_numpy().reshape(-1, length)}


def windows(case: Stream, folder: Path) -> Loop:
    return Meshfeed(
        lambda: mf.open(case.path(folder), dtype="uint32").window(
            case.length + 1, stride=case.length
        ),
        case.batch,
        shuffle=True,
    )


class NanoGPT(Stateless):
    """`get_batch` of nanoGPT: rows begin at offsets drawn with replacement."""

    def __init__(self, case: Stream, folder: Path) -> None:
        self._case, self._path = case, case.path(folder)

    def begin(self, state: Any = None) -> Iterator[Batch]:
        case, sharding = self._case, rows_sharding()
        rng = np.random.default_rng(0)
        for _ in range(case.steps):
            data = np.memmap(self._path, np.uint32, "r")  # anew for each batch, as nanoGPT does
            starts = rng.integers(len(data) - case.length, size=case.batch)
            rows = np.stack([data[i : i + case.length + 1] for i in starts])
            yield jax.device_put({"tokens": rows}, sharding)


def mixed(case: Mixture, folder: Path) -> Loop:
    def dataset() -> mf.Dataset:
        each = {str(i): mf.open(path) for i, path in enumerate(case.paths(folder))}
        weights = {str(i): weight for i, weight in enumerate(case.weights)}
        return mf.mix(each, weights, length=case.rows, source="source")

    return Meshfeed(dataset, case.batch, shuffle=False)  # the sources are shuffled


def grain_mixed(case: Mixture, folder: Path) -> Loop:
    def source(i: int, array: Array) -> grain.MapDataset:
        rows = Rows(len(array), lambda k: {"tokens": array[k], "source": np.int32(i)})
        return grain.MapDataset.source(rows).seed(i).shuffle()

    def rows() -> grain.IterDataset:
        each = [source(i, np.load(path, "r")) for i, path in enumerate(case.paths(folder))]
        return grain.MapDataset.mix(each, list(case.weights)).to_iter_dataset(ALONE)

    return Grain(rows, case.batch)


class Interleaved(Stateless):
    """`interleave_datasets`, which draws the source of each row at random."""

    def __init__(self, case: Mixture, folder: Path) -> None:
        self._case, self._paths = case, case.paths(folder)

    def open(self) -> None:
        import datasets

        case, each = self._case, []
        for i, path in enumerate(self._paths):
            array = np.load(path, "r")
            lists = pa.FixedSizeListArray.from_arrays(array.reshape(-1), case.length)
            table = pa.table({"tokens": lists, "source": np.full(len(array), i, np.int32)})
            each.append(datasets.Dataset(table, fingerprint=f"source {i}").shuffle(seed=i))
        joined = datasets.interleave_datasets(each, list(case.weights), seed=0)
        self._rows = joined.with_format("numpy")

    def begin(self, state: Any = None) -> Iterator[Batch]:
        sharding = rows_sharding()
        for rows in self._rows.iter(self._case.batch, drop_last_batch=True):
            yield jax.device_put(rows, sharding)


FIRST, BEST = grain.experimental.FirstFitPackIterDataset, grain.experimental.BestFitPackIterDataset
SPLIT = grain.experimental.ConcatThenSplitIterDataset

Make = Callable[[Any, Path], Loop]
LOOPS: dict[type, dict[str, Make]] = {
    Documents: {
        "meshfeed, best fit": partial(packed, method="best_fit"),
        "meshfeed, split": partial(packed, method="split"),
        "meshfeed, plain rows": partial(opened, name="rows.arrow"),
        "Grain, best fit, 64 bins": partial(grain_packed, packer=BEST, num_packing_bins=64),
        "Grain, best fit, 1,024 bins": partial(grain_packed, packer=BEST, num_packing_bins=1024),
        "Grain, first fit, 64 bins": partial(grain_packed, packer=FIRST, num_packing_bins=64),
        "Grain, joined and split": partial(grain_packed, packer=SPLIT),
        "TRL, bfd": partial(HuggingFace, pack=trl_pack, collate=collate_documents),
        "datasets, group_texts": partial(HuggingFace, pack=group_texts, collate=collate_tokens),
    },
    Stream: {
        "meshfeed, window": windows,
        "meshfeed, plain rows": partial(opened, name="npy"),
        "nanoGPT, get_batch": NanoGPT,
    },
    Mixture: {
        "meshfeed, mix": mixed,
        "Grain, mix": grain_mixed,
        "datasets, interleave": Interleaved,
    },
}
