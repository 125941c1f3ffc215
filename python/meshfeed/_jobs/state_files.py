"""Keeps a slow process from replacing a later state in a file that all processes write.

Processes run apart if their steps do not wait for each other. So every process publishes its
position before it saves its state. The file keeps its state if that is later than the one to save,
and not later than any published position: then it belongs to this run.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from meshfeed._io.arguments import State
from meshfeed._jobs.keys import Generation


def keeps(of: Generation, path: Path, state: State) -> Callable[[str], bool]:
    """Publishes this process's position; returns what decides whether a file keeps its text.

    Args:
        of: the generation; after a `seek` the processes agree anew, and the file may go back.
        path: the file.
        state: the state to save.

    Returns:
        A function of the text in the file.
    """
    key = f"saved/{zlib.crc32(os.path.realpath(path).encode()):08x}"
    mine = _position(state)
    of.set(f"{key}/{of.namespace.me}", mine)

    def is_kept(text: str) -> bool:
        with suppress(Exception):  # the text is not a state, or the store fails
            found = json.loads(text)
            if _position(found) > mine and {**found, **_constants(state)} == found:
                furthest: list[int] = max(of.by_process(key).values())
                return _position(found) <= furthest
        return False

    return is_kept


def _position(state: State) -> list[int]:
    return [int(state["epoch"]), int(state["position"])]


def _constants(state: State) -> State:
    return {key: value for key, value in state.items() if key not in ("epoch", "position")}
