"""Makes record batches for Arrow's libraries."""

from __future__ import annotations

from collections.abc import Sequence

from meshfeed._feed.feed import Feed
from meshfeed._feed.records import RecordBatch
from meshfeed._layout.blocks import Blocks
from meshfeed._native.arrow import Formats
from meshfeed._native.owner import Owner


class ArrowFeed(Feed):
    """Makes record batches for Arrow's libraries. The mask is not in them; see `RecordBatch`.

    Args:
        blocks: for every array its blocks in the memory of a batch.
        formats: for every array the Arrow format string of its elements, or None.
    """

    def __init__(self, blocks: Sequence[Blocks], formats: Formats) -> None:
        columns = {b.name: i for i, b in enumerate(blocks) if b.kind != "mask"}
        super().__init__(lambda arrays: {name: arrays[i] for name, i in columns.items()}, blocks)
        self._names, self._formats = list(columns), formats

    def make(self, owner: Owner) -> RecordBatch:
        """Makes a batch over the memory that its owner exports and keeps alive."""
        return RecordBatch(owner, self._names, self._formats)
