"""What a process of a training run does besides training: it joins the job, saves, and restores.

A save first writes the weights to a new file, named after the step. Then it replaces the loader's
state atomically. If the process is killed in between, the old state and its weights still exist.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import jax
import numpy as np

import meshfeed as mf

STATE = "state.json"


def parser(description: str | None) -> argparse.ArgumentParser:
    """Returns a parser of the arguments that `processes.start` gives each process."""
    found = argparse.ArgumentParser(description=description)
    found.add_argument("--address", required=True)
    found.add_argument("--processes", type=int, required=True)
    found.add_argument("--rank", type=int, required=True)
    found.add_argument("--folder", type=Path, required=True)
    found.add_argument("--log", type=Path, required=True)
    return found


def join(args: argparse.Namespace, **options: Any) -> None:
    """Joins the job of the other processes."""
    jax.distributed.initialize(
        args.address,
        num_processes=args.processes,
        process_id=args.rank,
        cluster_detection_method="deactivate",
        **options,
    )


def last_save(folder: Path) -> Path | None:
    """Returns the path of the last state, if there is one."""
    state = folder / STATE
    return state if state.exists() else None


def steps_done(loader: mf.Loader) -> int:
    return loader.epoch * loader.steps_per_epoch + loader.step


def save(folder: Path, loader: mf.Loader, tree: Any) -> None:
    """Saves the state of the loader and a replicated tree. One process writes."""
    if jax.process_index() == 0:
        np.savez(folder / f"weights-{steps_done(loader)}.npz", *jax.tree.leaves(tree))
        loader.save_state(folder / STATE)


def restored(folder: Path, loader: mf.Loader, fresh: Any) -> Any:
    """Returns the tree as it was at the position of the loader: `fresh` at the beginning."""
    step = steps_done(loader)
    if step == 0:
        return fresh
    with np.load(folder / f"weights-{step}.npz") as saved:
        return jax.tree.unflatten(jax.tree.structure(fresh), list(saved.values()))
