"""Proves that all processes read the same files, while the first epoch runs.

The agreement compares fingerprints, which sample files of more than 16 MiB. If the user asks for
a full comparison, a thread of each process has the library hash every byte. It compares the hashes
with those of the lowest process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from meshfeed import errors
from meshfeed._jobs.keys import Generation
from meshfeed._jobs.worker import Worker

if TYPE_CHECKING:
    from meshfeed._native.files import Files, Hashes

LISTED = 10_000  # files whose hashes are published one by one, so that errors can name them
LOOK = 2.0  # seconds between two reads of the lowest process's key: thousands may read it
KEY = "content"

log = logging.getLogger("meshfeed")


Report = Callable[[errors.Error], None]


class Contents(Worker):
    """Compares the files of one loader's processes.

    Args:
        of: the generation.
        files: this process's.
        report: is called with a difference, or with the error of a file.
    """

    def __init__(self, of: Generation, files: Files, report: Report) -> None:
        super().__init__("meshfeed.contents")
        self._keys, self._files, self._report = of, files, report
        self._start()

    def _work(self) -> None:
        try:
            mine = self._files.hashes(self.ended)
            if mine is not None:
                self._compare(mine)
        except errors.Error as e:
            if not self.ended.is_set():
                self._report(e)
        except Exception as e:  # of the store
            title = self._keys.namespace.title
            log.warning("loader %s: its files were not compared: %s", title, e)

    def _compare(self, mine: Hashes) -> None:
        namespace = self._keys.namespace
        if namespace.me == namespace.lead:
            self._keys.set(KEY, mine if len(mine["files"]) <= LISTED else {**mine, "files": []})
            return
        while (theirs := self._keys.try_get(KEY)) is None:
            if self.ended.wait(LOOK):
                return
        if theirs["sha256"] != mine["sha256"]:
            self._report(self._difference(mine, theirs))

    def _difference(self, mine: Hashes, theirs: Hashes) -> errors.Error:
        me, lead = self._keys.namespace.me, self._keys.namespace.lead
        message = f"processes {lead} and {me} read different files: "
        pairs = zip(self._files.paths, mine["files"], theirs["files"], strict=False)
        other = [(path, here, there) for path, here, there in pairs if here != there]
        whose, here, there = "their", mine["sha256"], theirs["sha256"]
        if other:
            path, here, there = other[0]
            whose = f"{path}{f' and {len(other) - 1} more' if len(other) > 1 else ''}, whose"
        message += f"{whose} SHA-256 is {here} on process {me} and {there} on process {lead}"
        hint = "copy the files again; meshfeed verify --hash prints the SHA-256 of each"
        return errors.IncompatibleError(message, op="mf.Loader", hint=hint)
