"""Proves that all processes read the same files, while the first epoch runs.

When a job starts, its processes compare fingerprints, which only sample files of more than 16 MiB.
If the user asks for a full comparison, a thread of each process has the library hash every byte. It
compares the hashes with the lowest process.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from meshfeed import errors
from meshfeed._jobs import wording
from meshfeed._jobs.keys import Generation
from meshfeed._jobs.worker import Worker

if TYPE_CHECKING:
    from meshfeed._native.files import Files, Hashes

LISTED = 10_000  # for up to as many files each hash is published, so that errors can name files
SLICE = 0.5  # seconds of one call of the store, which thousands of processes may call for minutes
KEY = "content"

log = logging.getLogger("meshfeed")

Report = Callable[[errors.Error], None]


class Contents(Worker):
    """Compares the files of one loader's processes.

    Args:
        of: the store keys of the present generation.
        files: the files of this process.
        report: called with the error, if files differ or one cannot be read.
    """

    def __init__(
        self, of: Generation, files: Files, report: Callable[[errors.Error], None]
    ) -> None:
        super().__init__("meshfeed.contents", of)
        self._files, self._report = files, report
        self._start()

    def _work(self) -> None:
        try:
            mine = self._files.hashes(self.ended)
            if mine is not None:
                self._compare(mine)
        except errors.Error as e:
            if not self.ended.is_set():
                self._report(e)
        except Exception as e:  # the store may be any object, so its errors may have any type
            log.warning("loader %s: its files were not compared: %s", self._title, e)

    def _compare(self, mine: Hashes) -> None:
        namespace = self._namespace
        if namespace.leads:
            self._keys.set(KEY, mine if len(mine["files"]) <= LISTED else {**mine, "files": []})
            return
        over = partial(self._must_end, namespace.lead)
        theirs: Hashes | None = self._keys.wait(KEY, math.inf, over, each=SLICE)
        if theirs is None or theirs["sha256"] == mine["sha256"]:
            return
        pairs = zip(self._files.paths, mine["files"], theirs["files"], strict=False)
        differing = [(path, here, there) for path, here, there in pairs if here != there]
        paths = [path for path, _, _ in differing]
        _, here, there = differing[0] if differing else ("", mine["sha256"], theirs["sha256"])
        self._report(wording.files_differ(namespace.lead, namespace.me, paths, here, there))
