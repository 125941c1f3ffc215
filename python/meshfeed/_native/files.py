"""Hashes every byte of the files of a dataset."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from meshfeed._native import calls
from meshfeed._native.handle import Handle
from meshfeed._native.lock import Lock

Hashes = dict[str, Any]


class Files:
    """The files of a dataset. They stay open until they are hashed.

    Args:
        handle: a handle of the dataset, which this object owns.
        paths: the files.
    """

    def __init__(self, handle: Handle, paths: Sequence[str]) -> None:
        self._handle, self.paths = handle, paths
        self._lock = Lock()
        self._found: Hashes | None = None

    def hashes(self, ended: threading.Event) -> Hashes | None:
        """Waits until every byte is hashed. Returns None if `ended` is set before that."""
        with self._lock:  # a worker thread of the loader's previous generation may still be here
            while self._found is None and not ended.is_set():
                self._found = calls.dataset_hash(self._handle.value, wait=False)
                if self._found is not None:
                    self._handle.close()
        return self._found
