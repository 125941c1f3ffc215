"""How far the processes of a run have come with a file that all of them save their states to.

Processes whose steps do not wait for each other run apart, and a slow one would put the file back.
So every process writes down in the job's store where it stands before it saves. A state in the
file that is later, and not later than what was written down, is of this run and stays.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from meshfeed._io.arguments import State
from meshfeed._jobs.rounds import Round


def passed(of: Round, path: Path, state: State) -> Callable[[str], bool]:
    """Writes down where this process stands, and gives what says whether a file stays.

    Args:
        of: the round; keys of it are deleted when processes agree anew, as after a `seek`.
        path: the file.
        state: that this process saves.

    Returns:
        A function of the text in the file.
    """
    store, name = of.room.store, zlib.crc32(os.path.realpath(path).encode())
    key, mine = f"{of.path}/saved/{name:08x}", _place(state)
    store.set(f"{key}/{of.room.me}", json.dumps(mine).encode())

    def stays(text: str) -> bool:
        with suppress(Exception):  # no state, or a store that is gone
            there = json.loads(text)
            if _place(there) > mine and {**there, **_no_place(state)} == there:
                saved = [tuple(json.loads(each)) for each in store.list(key).values()]
                return _place(there) <= max(saved)
        return False

    return stays


def _place(state: State) -> tuple[int, int]:
    return int(state["epoch"]), int(state["position"])


def _no_place(state: State) -> State:
    return {key: value for key, value in state.items() if key not in ("epoch", "position")}
