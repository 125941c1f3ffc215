"""Proof that all processes read the same files, worked out while the first epoch runs.

The agreement compares fingerprints, which sample files of more than 16 MiB. Where the user asks
for more, a thread of each process has the library hash every byte, and compares with what the
lowest process found.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable

from meshfeed import errors
from meshfeed._jobs.rounds import Round
from meshfeed._native.files import Files, Hashes

LISTED = 10_000  # files whose hashes are published one by one, so that errors can name them
LOOK = 2.0  # seconds between two looks for what the lowest process found: thousands may look

log = logging.getLogger("meshfeed")

Accuse = Callable[[errors.Error], None]


class Contents:
    """Compares the files of one loader's processes in a thread of its own.

    Args:
        of: the round.
        files: this process's.
        accuse: is told of a difference.
    """

    def __init__(self, of: Round, files: Files, accuse: Accuse) -> None:
        self._room, self._key = of.room, f"{of.path}/content"
        self._files, self._accuse = files, accuse
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="meshfeed.contents", daemon=True)
        self._thread.start()

    def end(self, seconds: float) -> None:
        """Ends the thread, and waits so long for it: the store may not answer."""
        self._ended.set()
        self._thread.join(seconds)

    def forget(self) -> None:
        """Has the thread end soon, and waits for nothing."""
        self._ended.set()

    def _work(self) -> None:
        try:
            mine = self._files.hashes(self._ended)
            if mine is not None:
                self._compare(mine)
        except errors.Error as e:
            if not self._ended.is_set():
                self._accuse(e)
        except Exception as e:  # the store's
            log.warning("loader %s: its files were not compared: %s", self._room.title, e)

    def _compare(self, mine: Hashes) -> None:
        lead = self._room.members[0]
        if self._room.me == lead:
            listed = mine if len(mine["files"]) <= LISTED else {**mine, "files": []}
            self._room.store.set(self._key, json.dumps(listed).encode())
            return
        while (found := self._room.store.try_get(self._key)) is None:
            if self._ended.wait(LOOK):
                return
        theirs = json.loads(found)
        if theirs["sha256"] != mine["sha256"]:
            self._accuse(self._difference(mine, theirs))

    def _difference(self, mine: Hashes, theirs: Hashes) -> errors.Error:
        me, lead = self._room.me, self._room.members[0]
        message = f"processes {lead} and {me} read different files: "
        pairs = zip(self._files.paths, mine["files"], theirs["files"], strict=False)
        other = [(path, here, there) for path, here, there in pairs if here != there]
        if other:
            path, here, there = other[0]
            more = f" and {len(other) - 1} more" if len(other) > 1 else ""
            message += f"{path}{more}, whose SHA-256 is {here} on process {me} and "
            message += f"{there} on process {lead}"
        else:
            message += f"their SHA-256 is {mine['sha256']} on process {me} and "
            message += f"{theirs['sha256']} on process {lead}"
        hint = "copy the files again; meshfeed verify --hash prints the SHA-256 of each"
        return errors.IncompatibleError(message, op="mf.Loader", hint=hint)
