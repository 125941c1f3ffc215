"""One commit of each branch for all processes of a job.

A name such as hf://datasets/ORG/NAME stands for the last commit of a branch, which may move while
the processes of a job start. The first process that opens the name sets a key in the store of
`jax.distributed`, which ends with the job. All others take the commit from there, so they need not
open datasets in the same order, and none waits for another.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote

from meshfeed._jobs.coordinator import JaxCoordinator, jax_coordinator
from meshfeed._native import calls
from meshfeed._native.handle import Handle

KEY = "meshfeed-commits"
SCHEME = "hf://"


def of_job(paths: Sequence[str], opened: Callable[[Mapping[str, str]], Handle]) -> Handle:
    """Opens paths, in a job at the commits at which its first process has opened them.

    Args:
        paths: the paths.
        opened: opens them, with the commits that names stand for.
    """
    store = _store(paths)
    known = {} if store is None else _known(store, paths)
    handle = opened(known)
    if store is None:
        return handle
    mine: dict[str, str] = calls.dataset_facts(handle.value).get("commits", {})
    agreed = {name: _agreed(store, name, commit) for name, commit in mine.items()}
    if agreed != mine:  # another process was faster, at another commit
        handle.close()
        handle = opened(agreed)
    return handle


def pinned(path: str, known: Mapping[str, str]) -> str:
    """Returns a path with its commit, if that is known.

    Examples:
        >>> pinned("hf://o/n@main/x.npy", {"hf://o/n@main": "01"})
        'hf://o/n@01/x.npy'
    """
    for name, commit in known.items():
        if f"{path}/".startswith(f"{name}/"):
            return f"{name.partition('@')[0]}@{commit}{path.removeprefix(name)}"
    return path


def _store(paths: Sequence[str]) -> JaxCoordinator | None:
    """Returns the store of the job, if there is a job and a path that may have a commit."""
    jax = sys.modules.get("jax")
    if not any(path.startswith(SCHEME) for path in paths) or jax is None:
        return None
    return jax_coordinator() if jax.distributed.is_initialized() else None


def _known(store: JaxCoordinator, paths: Sequence[str]) -> dict[str, str]:
    """Returns the commits that other processes have resolved, of the names in paths."""
    found = dict(json.loads(text) for text in store.list(KEY).values())
    return {
        name: commit
        for name, commit in found.items()
        if any(f"{path}/".startswith(f"{name}/") for path in paths)
    }


def _agreed(store: JaxCoordinator, name: str, commit: str) -> str:
    """Publishes the commit of a name, and returns the one that was published first."""
    value = json.dumps([name, commit]).encode()
    found: list[str] = json.loads(store.first(f"{KEY}/{quote(name, safe='')}", value))
    return found[1]
