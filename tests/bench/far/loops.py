"""The loops: each yields the global arrays of the batches of an epoch."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
from jax.sharding import NamedSharding, PartitionSpec

import meshfeed as mf
from tests.bench.far.cases import LENGTH, Case

Batch = dict[str, Any]
AHEAD = 4  # files that are fetched whole ahead


def rows_sharding() -> NamedSharding:
    """Returns the sharding of every array: rows are split over the eight devices."""
    return NamedSharding(jax.make_mesh((8,), ("data",)), PartitionSpec("data"))


def _meshfeed(case: Case, address: str, cache: Path, **order: Any) -> Iterator[Batch]:
    files = [f"{address}/{name}" for name in case.names()]
    filesystem = order.pop("filesystem", None)
    with (
        mf.open(files, cache=cache, filesystem=filesystem) as ds,
        mf.Loader(ds, None, rows_sharding(), batch_size=case.batch, **order) as loader,
    ):
        yield from loader


def blocks(case: Case, address: str, cache: Path) -> Iterator[Batch]:
    yield from _meshfeed(case, address, cache, order="blocks")


def shuffled(case: Case, address: str, cache: Path) -> Iterator[Batch]:
    yield from _meshfeed(case, address, cache, shuffle=True)


def in_order(case: Case, address: str, cache: Path) -> Iterator[Batch]:
    yield from _meshfeed(case, address, cache)


def through_fsspec(case: Case, address: str, cache: Path) -> Iterator[Batch]:
    import fsspec

    yield from _meshfeed(case, address, cache, filesystem=fsspec.filesystem("http"))


def _placed(tokens: Any, ids: Any) -> Batch:
    return jax.device_put({"tokens": tokens, "id": ids}, rows_sharding())  # type: ignore[no-any-return]


def _of_tables(batches: Iterator[Any], size: int) -> Iterator[Batch]:
    """Places record batches of pyarrow, in rows of one size."""
    schema = pa.schema({"tokens": pa.list_(pa.int32(), LENGTH), "id": pa.int32()})
    held = schema.empty_table()
    for batch in batches:
        held = pa.concat_tables([held, pa.Table.from_batches([batch]).cast(schema)])
        while len(held) >= size:
            part, held = held.slice(0, size).combine_chunks(), held.slice(size)
            tokens = part["tokens"].chunk(0).flatten().to_numpy().reshape(size, LENGTH)
            yield _placed(tokens, part["id"].to_numpy())


def arrow_dataset(case: Case, address: str, cache: Path) -> Iterator[Batch]:
    import fsspec

    files = [f"{address}/{name}" for name in case.names()]
    dataset = pyarrow.dataset.dataset(files, filesystem=fsspec.filesystem("http"), format="parquet")
    yield from _of_tables(dataset.to_batches(batch_size=case.batch), case.batch)


def hugging_face(case: Case, address: str, cache: Path) -> Iterator[Batch]:
    import datasets

    datasets.disable_progress_bars()
    files = [f"{address}/{name}" for name in case.names()]
    stream = datasets.load_dataset("parquet", data_files=files, streaming=True, split="train")
    for batch in stream.with_format("numpy").iter(case.batch, drop_last_batch=True):
        yield _placed(np.stack(batch["tokens"]), batch["id"])


def obstore(case: Case, address: str, cache: Path) -> Iterator[Batch]:
    """Whole files, some of them ahead."""
    from obstore.store import HTTPStore

    store = HTTPStore.from_url(address, client_options={"allow_http": True})

    def batches() -> Iterator[Any]:
        with ThreadPoolExecutor(AHEAD) as pool:
            for data in pool.map(lambda name: bytes(store.get(name).bytes()), case.names()):
                yield from pq.ParquetFile(io.BytesIO(data)).iter_batches(case.batch)

    yield from _of_tables(batches(), case.batch)


Loop = Callable[[Case, str, Path], Iterator[Batch]]

# The packages that each loop needs beyond those of the tests.
LOOPS: dict[str, tuple[Loop, tuple[str, ...]]] = {
    "meshfeed, blocks": (blocks, ()),
    "meshfeed, full shuffle": (shuffled, ()),
    "meshfeed, in order": (in_order, ()),
    "meshfeed over fsspec, in order": (through_fsspec, ("aiohttp",)),
    "fsspec and pyarrow.dataset": (arrow_dataset, ("aiohttp",)),
    "datasets, streaming": (hugging_face, ("aiohttp",)),
    "obstore and pyarrow": (obstore, ("obstore",)),
}


def installed() -> list[str]:
    """Lists the loops whose packages are there."""
    found = importlib.util.find_spec
    return [name for name, (_, needs) in LOOPS.items() if all(map(found, needs))]
