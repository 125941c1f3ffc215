"""Warns of orders that decode record batches or row groups again and again, or refuses them."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable

from meshfeed._data.dataset import Dataset, cache, origin, units
from meshfeed.errors import InvalidArgumentError, InvalidStateError

log = logging.getLogger("meshfeed")

_DECODED = 2**28  # bytes of decoded record batches that the library keeps in its cache
_SLOW = (
    "%s is encoded (%s), and shuffled: %d of %d decoded bytes are kept in memory, and a row of the "
    "rest takes the decoding of a whole record batch or row group; "
    'use order="blocks", or write the data as Arrow IPC without compression: '
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


def refuse_shuffling(dataset: Dataset, order: str) -> None:
    """Refuses a shuffle of encoded files that were opened with `cache=None`.

    Orders in blocks decode each record batch or row group once per epoch.

    Raises:
        InvalidArgumentError: with the remedies.
    """
    packed = origin(dataset).packed
    if not packed or not origin(dataset).uncached or order.startswith(("sequential", "blocks")):
        return
    path, how = next(iter(packed.items()))
    message = (
        f"{path} is encoded ({how}), and its order is random, but it was opened with cache=None"
    )
    hint = 'use order="blocks", or open it with cache="auto"'
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
        order: the full name of an order that shuffles.
    """
    schema, packed = dataset.schema, origin(dataset).packed
    widths = [math.prod(schema[f].shape) * schema[f].numpy_dtype.itemsize for f in set(fields)]
    row = sum(widths) / origin(dataset).repeats
    if not packed or row * len(dataset) <= _DECODED:
        return
    path, how = next(iter(packed.items()))
    size, kept = units(dataset), cache(dataset)
    if "folder" in kept:
        log.info(_KEPT, path, kept["folder"], kept["bytes"])
        return
    if order.startswith("blocks") and size:
        delivered, decoded = (row * n for n in _window_of(order, len(dataset), **size))
        if decoded > _DECODED or decoded > 2 * delivered:
            log.warning(_SLOW_BLOCKS, path, how, delivered, decoded, _DECODED)
    else:
        log.warning(_SLOW, path, how, _DECODED, row * len(dataset))


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
