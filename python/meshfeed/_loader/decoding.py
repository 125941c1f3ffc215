"""Warns of orders that decode record batches or row groups again and again, or refuses them."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable

from meshfeed._data.dataset import Dataset, cache, origin, units
from meshfeed._data.fields import DECODED
from meshfeed.errors import InvalidArgumentError, InvalidStateError

log = logging.getLogger("meshfeed")

_SLOW = (
    "%s is encoded (%s), and %s: %d of %d decoded bytes are kept in memory, and a row of the "
    "rest takes the decoding of a whole record batch or row group; "
    "%s, or write the data as Arrow IPC without compression: "
    "meshfeed convert FILE… FOLDER"
)
_SLOW_BLOCKS = (
    "%s is encoded (%s), and shuffled in blocks: a window of %d bytes takes the decoding of record "
    "batches or row groups of %d bytes, and %d are kept; give mf.Blocks a smaller window, and no "
    "records=, so that the blocks are what is decoded together"
)
_UNUSABLE = "decoded data are kept in memory alone, because of a problem: %s"
_GIVEN_UP = "decoded data are kept in memory alone from now on: %s"
_KEPT = "%s and the other encoded files are decoded once, into %s, which has at most %d bytes"


# Why records are needed that lie far apart, and what to do.
_CAUSES = {
    "loader": ("its order is random", 'use order="blocks"'),
    "mix": ("a mixture shuffles it", 'give mf.mix order="blocks"'),
    "pack": ("the documents of packed rows lie far apart", "give ds.pack a smaller group="),
}


def _cause(dataset: Dataset, order: str) -> tuple[str, str] | None:
    """Returns why the next records lie far apart, and what to do, or None."""
    if scattered := origin(dataset).scattered:
        return _CAUSES[scattered]
    return None if order.startswith(("sequential", "blocks")) else _CAUSES["loader"]


def refuse_shuffling(dataset: Dataset, order: str) -> None:
    """Refuses to read encoded files at random that were opened with `cache=None`.

    Orders in blocks decode each record batch or row group once per epoch. Mixtures may shuffle
    their datasets, and packed rows may need documents that lie far apart.

    Raises:
        InvalidArgumentError: with the remedies.
    """
    uncached, cause = origin(dataset).uncached, _cause(dataset, order)
    if not uncached or cause is None:
        return
    how, (why, remedy) = origin(dataset).packed[uncached[0]], cause
    message = f"{uncached[0]} is encoded ({how}), and {why}, but it was opened with cache=None"
    hint = f'{remedy}, or open it with cache="auto"'
    raise InvalidArgumentError(message, op="mf.Loader", hint=hint)


def warn_of_problem(dataset: Dataset) -> None:
    """Warns if decoded or computed data should be kept on disk, and cannot be."""
    problem = cache(dataset).get("problem")
    if problem is not None:
        log.warning(_UNUSABLE, problem)


def warn_of_shuffling(dataset: Dataset, fields: Iterable[str], order: str) -> None:
    """Warns of an order that decodes record batches or row groups again and again.

    That is so if files are encoded, and the decoded fields exceed the library's cache in memory and
    are not kept on disk. Blocks are an exception if the blocks of a window are decoded together,
    and fit in the cache.

    Args:
        dataset: the dataset.
        fields: the fields that are read.
        order: the full name of the order of the loader.
    """
    cause = _cause(dataset, order)
    if cause is None and not order.startswith("blocks"):
        return
    schema, packed = dataset.schema, origin(dataset).packed
    widths = [math.prod(schema[f].shape) * schema[f].numpy_dtype.itemsize for f in set(fields)]
    row = sum(widths) / origin(dataset).repeats
    if not packed or row * len(dataset) <= DECODED:
        return
    path, how = next(iter(packed.items()))
    size, kept = units(dataset), cache(dataset)
    if "folder" in kept:
        log.info(_KEPT, path, kept["folder"], kept["bytes"])
        return
    if cause is None and size:
        delivered, decoded = (row * n for n in _window_of(order, len(dataset), **size))
        if decoded > DECODED or decoded > 2 * delivered:
            log.warning(_SLOW_BLOCKS, path, how, delivered, decoded, DECODED)
    else:
        why, remedy = cause or _CAUSES["loader"]
        log.warning(_SLOW, path, how, why, DECODED, row * len(dataset), remedy)


class Watch:
    """Warns once if decoded data cannot be kept on disk any more, as if the disk becomes full.

    Args:
        dataset: the dataset. Its decoded data are kept on disk now.
    """

    _PAUSE = 1.0  # seconds between two looks

    def __init__(self, dataset: Dataset) -> None:
        self._dataset: Dataset | None = dataset
        self._due = 0.0

    def look(self, *, at_end: bool = False) -> None:
        """Warns if there is a problem, unless the last look was a moment ago.

        Args:
            at_end: whether no other look may follow, so that this one must not be left out.
        """
        if self._dataset is None or (not at_end and time.monotonic() < self._due):
            return
        self._due = time.monotonic() + self._PAUSE
        try:
            problem = cache(self._dataset).get("problem")
        except InvalidStateError:  # the program has closed the dataset
            self._dataset = None
            return
        if problem is not None:
            self._dataset = None
            log.warning(_GIVEN_UP, problem)


def watch(dataset: Dataset) -> Watch | None:
    """Returns a watch over the decoded data of a dataset, if they are kept on disk."""
    if not origin(dataset).packed or "folder" not in cache(dataset):
        return None
    return Watch(dataset)


def _window_of(order: str, total: int, count: int, records: int) -> tuple[int, int]:
    """Returns how many records a window has at most, and how many are decoded for it.

    The dataset has `count` units of up to `records` records. Blocks of another size begin and end
    within units, which are then decoded for two blocks or more.
    """
    _, most, size, _ = order.split(":")
    block = int(size) or -(-total // count)
    blocks = -(-total // block)
    window = -(-blocks // -(-blocks // int(most)))
    each = block
    if int(size):
        each = records * (block // records + (block % records > 0))
    return min(total, window * block), min(total, window * each)
