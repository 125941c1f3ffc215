"""Warnings about loaders that are valid but perhaps not what the user wants."""

from __future__ import annotations

import logging

from meshfeed._io.arguments import State
from meshfeed._layout.layout import Layout

log = logging.getLogger("meshfeed")


def of_resume(saved: State, rows: int, *, drops: bool) -> None:
    """Logs how many records a resume leaves out that an epoch from its start would deliver.

    Args:
        saved: the state that the loader continues from.
        rows: the rows of the global batch.
        drops: whether the loader drops the records that do not fill the last step.
    """
    epoch, position, records = (saved[key] for key in ("epoch", "position", "records"))
    if drops and position % rows and (left := (records - position) % rows):
        text = "the state is at position %d of %d in epoch %d: in batches of %d the last %d "
        text += "records of that epoch are left out; "
        text += 'remainder="pad", or the batch size of the run that was saved, keeps them'
        log.warning(text, position, records, epoch, rows, left)


def of_commit(saved: State, live: State) -> None:
    """Logs that a branch of the hub has moved since a state was saved."""
    old, new = saved.get("commit"), live.get("commit")
    if old and new and old != new:
        files = "equal" if saved["dataset"] == live["dataset"] else "different"
        text = (
            "the state was saved at commit %s, and the dataset is at commit %s; the files of the "
        )
        text += "dataset are %s"
        log.warning(text, old, new, files)


def of_end(epoch: int, epochs: int | None) -> None:
    """Logs that loops are empty, because all epochs are over.

    Args:
        epoch: the epoch of the next batch.
        epochs: the number of epochs, or None.
    """
    if epochs is not None and 0 < epochs <= epoch:
        text = "the loader is at epoch %d, and with epochs=%d all epochs are over: loops are "
        text += "empty; epochs= counts from the beginning of the run, not from the state"
        log.warning(text, epoch, epochs)


def of_local_mesh() -> None:
    """Logs that all processes may get the same rows, because each has its own mesh."""
    text = "the mesh has devices of this process alone, in a job of several: processes with the "
    text += "same data and seed get the same rows; a mesh over jax.devices() gives each its part"
    log.warning(text)


def of_layout(layout: Layout, code: str) -> None:
    """Logs the problem of a layout that has this code, if it has it."""
    for problem in layout.check():
        if problem.code == code:
            log.warning("%s; %s", problem.message, problem.hint)
