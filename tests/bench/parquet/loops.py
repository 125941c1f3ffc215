"""The loops: every one yields the global arrays of shuffled batches, an epoch for each seed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pyarrow.dataset
from jax.sharding import NamedSharding, PartitionSpec

import meshfeed as mf
from tests.bench.parquet.cases import Batch, Case

Rows = np.ndarray[Any, Any]
Epochs = Iterator[Iterator[Batch]]
Loop = Callable[[Case, list[Path], list[int]], Epochs]


def shardings(case: Case) -> dict[str, NamedSharding]:
    """Returns the sharding of every array: the rows are split over the devices."""
    rows = NamedSharding(jax.make_mesh((8,), ("data",)), PartitionSpec("data"))
    return {case.field: rows, "label": rows}


def meshfeed(case: Case, paths: list[Path], seeds: list[int]) -> Epochs:
    """The order "blocks", with decoded row groups in the memory that a dataset keeps them in."""
    return _meshfeed(case, paths, seeds, "memory")


def meshfeed_disk(case: Case, paths: list[Path], seeds: list[int]) -> Epochs:
    """The same, with decoded row groups in a folder on the disk, which is empty at first."""
    with tempfile.TemporaryDirectory(dir=paths[0].parent) as cache:
        yield from _meshfeed(case, paths, seeds, cache)


def meshfeed_arrow(case: Case, paths: list[Path], seeds: list[int]) -> Epochs:
    """The same from Arrow files of the same rows, which need no decoding."""
    return _meshfeed(case, case.arrow(paths[0].parents[1]), seeds, "memory")


def _meshfeed(case: Case, paths: list[Path], seeds: list[int], cache: str) -> Epochs:
    with mf.open(paths, shapes={case.field: (case.width,)}, cache=cache) as ds:
        order = mf.Blocks(window=case.window)
        split = shardings(case)
        with mf.Loader(
            ds, None, split, batch_size=case.batch, order=order, epochs=len(seeds), seed=seeds[0]
        ) as loader:
            batches = iter(loader)
            for _ in seeds:
                yield (dict(next(batches)) for _ in range(case.steps))


def grain(case: Case, paths: list[Path], seeds: list[int]) -> Epochs:
    """Grain interleaves the files, and shuffles windows of the interleaved rows.

    A thread reads four batches ahead, which was the faster of the two ways tried. Worker processes
    need flags of absl, which a program that defines none does not parse.
    """
    from grain import experimental

    for seed in seeds:
        rows = experimental.ParquetIterDataset([str(path) for path in paths])
        mixed = experimental.WindowShuffleIterDataset(rows, window_size=case.buffer, seed=seed)
        batches = mixed.batch(case.batch, drop_remainder=True)
        ahead = experimental.ThreadPrefetchIterDataset(batches, prefetch_buffer_size=4)
        yield _placed(ahead, shardings(case))


def hugging_face(case: Case, paths: list[Path], seeds: list[int]) -> Epochs:
    """Streaming with a buffer of as many rows as the other loops mix."""
    return _hugging_face(case, paths, seeds, case.buffer)


def hugging_face_1000(case: Case, paths: list[Path], seeds: list[int]) -> Epochs:
    """Streaming with the default buffer of 1,000 rows."""
    return _hugging_face(case, paths, seeds, 1_000)


def _hugging_face(case: Case, paths: list[Path], seeds: list[int], buffer: int) -> Epochs:
    import datasets
    from datasets.packaged_modules.parquet.parquet import Parquet

    # With pyarrow's threads, the release sleeps for 5 s where an epoch ends. That does not count.
    Parquet.SLEEP_ON_THREADS_SHUTDOWNS = False
    files = [str(path) for path in paths]
    stream = datasets.load_dataset("parquet", data_files=files, split="train", streaming=True)
    stream = stream.with_format("numpy")
    for seed in seeds:
        mixed = stream.shuffle(seed=seed, buffer_size=buffer)
        batches = mixed.iter(case.batch, drop_last_batch=True)
        yield _placed((_typed(case, batch) for batch in batches), shardings(case))


def _typed(case: Case, batch: Batch) -> Batch:
    """Returns a batch of the type in the files, because the format "numpy" makes int32 of uint8."""
    return {**batch, case.field: batch[case.field].astype(case.dtype, copy=False)}


def pyarrow_groups(case: Case, paths: list[Path], seeds: list[int]) -> Epochs:
    """pyarrow.dataset's batches of permuted row groups. Rows of a group stay together in order."""
    for seed in seeds:
        yield _placed(_batches(case, paths, seed), shardings(case))


def pyarrow_window(case: Case, paths: list[Path], seeds: list[int]) -> Epochs:
    """The same by hand with a window: row groups are collected, and NumPy mixes their rows."""
    for seed in seeds:
        yield _placed(_mixed(case, paths, seed), shardings(case))


def _placed(batches: Iterator[Batch], split: dict[str, NamedSharding]) -> Iterator[Batch]:
    for batch in batches:
        yield jax.device_put({name: batch[name] for name in split}, split)


def _batches(case: Case, paths: list[Path], seed: int) -> Iterator[Batch]:
    """Yields rows as NumPy arrays; pyarrow decodes with its threads and reads ahead."""
    files = pyarrow.dataset.dataset([str(path) for path in paths], format="parquet")
    groups = [part for file in files.get_fragments() for part in file.split_by_row_group()]
    order = np.random.default_rng(seed).permutation(len(groups))
    permuted = pyarrow.dataset.FileSystemDataset(
        [groups[n] for n in order], files.schema, files.format
    )
    for batch in permuted.to_batches(batch_size=case.batch):
        values = batch.column(case.field).flatten().to_numpy()
        yield {
            case.field: values.reshape(-1, case.width),
            "label": batch.column("label").to_numpy(),
        }


def _mixed(case: Case, paths: list[Path], seed: int) -> Iterator[Batch]:
    """Collects a window in one array of each field, and takes batches of permuted rows from it."""
    rng = np.random.default_rng(seed)
    values, labels = (
        np.empty((case.buffer, case.width), case.dtype),
        np.empty(case.buffer, np.int32),
    )
    held = left = 0
    for part in _batches(case, paths, seed):
        labels[held : held + len(part["label"])] = part["label"]
        values[held : held + len(part["label"])] = part[case.field]
        held += len(part["label"])
        left = left or case.rows
        if held < min(case.buffer, left):
            continue
        order = rng.permutation(held)
        for start in range(0, held, case.batch):
            rows = order[start : start + case.batch]
            yield {case.field: values[rows], "label": labels[rows]}
        left, held = left - held, 0


LOOPS: dict[str, Loop] = {
    "meshfeed": meshfeed,
    "meshfeed, disk": meshfeed_disk,
    "meshfeed, Arrow": meshfeed_arrow,
    "Grain": grain,
    "Hugging Face": hugging_face,
    "Hugging Face, 1,000": hugging_face_1000,
    "pyarrow, row groups": pyarrow_groups,
    "pyarrow, window": pyarrow_window,
}
