"""The engine of a loader: its cursor, its batches, and its connection to other processes."""

from __future__ import annotations

import dataclasses
import json
import os
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from meshfeed._data.dataset import compared_files, locked
from meshfeed._feed.batches import Batches, Steps
from meshfeed._feed.cursor import Cursor
from meshfeed._feed.feed import Feed
from meshfeed._feed.joined import JoinedCursor
from meshfeed._io.arguments import Checks, State
from meshfeed._jobs import cluster
from meshfeed._jobs.options import Evidence
from meshfeed._layout import documents
from meshfeed._layout.blocks import Blocks
from meshfeed._layout.layout import Layout
from meshfeed._loader import decoding, notices
from meshfeed._loader.options import Options
from meshfeed._loader.plan import Plan
from meshfeed._native import calls
from meshfeed._native.handle import Handle


class Batch(NamedTuple):
    """The description of the batches that a handle delivers.

    Attributes:
        plan: the plan of the handle.
        feed: makes the batches.
        info: the library's description of this process's part of a batch.
        rows: the rows of the global batch.
    """

    plan: Plan
    feed: Feed
    info: dict[str, Any]
    rows: int

    @classmethod
    def of(cls, handle: Handle, plan: Plan) -> Batch:
        """Describes the batches of a handle that was opened with a plan."""
        info = calls.loader_info(handle.value)
        feed = plan.feed([Blocks(array) for array in info["arrays"]])
        return cls(plan, feed, info, int(np.prod(info["batch_shape"], dtype=np.int64)))

    def steps(self, records: int, epochs: int | None) -> Steps:
        """Returns a counter of the batches that are left of a number of epochs."""
        return Steps(records, self.rows, self.info["remainder"] == "pad", epochs)


class Engine:
    """Creates the library's loader, and exchanges it when the mesh changes.

    Args:
        check: raises errors with the name of the caller's function.
        options: the options of the loader.

    Attributes:
        cursor: takes the batches. A remesh keeps it.
        batch: the description of the batches. A remesh replaces it.
        epochs: the number of epochs, -1 for no end. None: every loop is one epoch.
    """

    def __init__(self, check: Checks, options: Options) -> None:
        self._options, self.epochs = options, options.epochs
        source, plan = options.source, Plan.of(check, options)
        fields = options.fields(plan.process, plan.run)
        handle = calls.loader_create(source.handle, plan.document, fields)
        self.batch = Batch.of(handle, plan)
        simulated = options.simulated is not None
        self._communicates = options.peers.communicates(plan.processes, simulated=simulated)
        self._files = compared_files(source) if self._communicates else None
        self._watch = decoding.watch(source)
        self.cursor = self._new_cursor(handle, self.batch, self.epochs)
        self._note_order(handle.value)
        self._join()
        if options.state is not None:
            self._notice_resume(options.state)

    def _new_cursor(self, handle: Handle, batch: Batch, epochs: int | None) -> Cursor:
        kind = JoinedCursor if self._communicates else Cursor
        ahead = self._options.device_prefetch
        cursor = kind(
            handle,
            batch.feed,
            size=batch.info["batch_bytes"],
            ahead=self.batch.feed.ahead if ahead is None else ahead,
            per_epoch=epochs is None,
            keep=self._keep,
        )
        cursor.watch = self._watch
        return cursor

    @property
    def _keep(self) -> int:
        """The most live batches without a garbage collection."""
        bounded = self._options.max_host_bytes is not None
        return 1 if bounded else int(self.batch.info["prefetch"]) + 3

    def _note_order(self, handle: int) -> None:
        """Stores the part that all states of a handle share, such as the order of the records.

        A restored state may change the order.
        """
        self._constants = calls.loader_state(handle)
        windowed = self._constants["order"].startswith("blocks")
        self._windows = calls.loader_info(handle).get("windows") if windowed else None
        self._options = dataclasses.replace(self._options, order=self._constants["order"])

    def _notice_resume(self, saved: bytes) -> None:
        drops = self.batch.info["remainder"] == "drop"
        state = json.loads(saved)
        notices.of_resume(state, self.batch.rows, drops=drops)
        notices.of_commit(state, self._constants)
        notices.of_end(self.cursor.at[0], self.epochs)

    def _join(self) -> None:
        """Joins the processes of the mesh, which then agree on the next batch."""
        cursor, options, plan = self.cursor, self._options, self.batch.plan
        if isinstance(cursor, JoinedCursor):
            cursor.leave(wait=False)
            batch, feed = self.batch, self.batch.feed
            alike = {"epochs": options.epochs, "fill": options.fill}
            found = partial(calls.loader_components, cursor.handle.value)
            values = plan.document, batch.info, alike, feed.flags, found, self._files, feed.live
            evidence = Evidence(*values)
            others = cluster.joined(options.peers, plan.process, plan.processes, evidence)
            cursor.join(others, batch.rows, weakref.WeakMethod(self.measurements))

    # ---- queries ----

    @property
    def steps(self) -> Steps:
        """Counts the batches that are left at a position."""
        return self.batch.steps(self._constants["records"], self.epochs)

    @property
    def layout(self) -> Layout:
        """The layout of the batches, with the order that the loader follows."""
        return Layout(documents.with_order(self.batch.plan.document, self._constants["order"]))

    def state(self, epoch: int, position: int) -> State:
        """Returns the state of a position."""
        return {**self._constants, "epoch": epoch, "position": position}

    def keeps_file(self, path: Path, state: State) -> Callable[[str], bool] | None:
        """Returns a function that decides whether a file keeps its state; None if alone."""
        cursor = self.cursor
        return cursor.keeps_file(path, state) if isinstance(cursor, JoinedCursor) else None

    def measurements(self) -> dict[str, Any]:
        """Returns what the loop over the loader measured, as in a measurements document."""
        batch, options = self.batch, self._options
        info, feed = batch.info, batch.feed
        prefetch, most = info["prefetch"], options.max_host_bytes
        windows = {"windows": self._windows} if self._windows else {}
        return {
            **windows,
            **self.cursor.measured(),
            "process": batch.plan.process,
            "map_locked": locked(options.source),
            "arrays": len(info["arrays"]),
            "combinable": info["combinable"],
            "processors": len(os.sched_getaffinity(0)),
            "devices": feed.devices,
            "platform": feed.platform,
            "batch_size": batch.rows,
            "records": self._constants["records"],
            "prefetch": prefetch,
            "device_prefetch": self.cursor.ahead,
            "bounded": most is not None and most < (prefetch + 3) * info["batch_bytes"],
        }

    def reports(self) -> tuple[list[dict[str, Any]], list[int]]:
        """Returns the newest measurements of the job, and the processes that published none."""
        cursor, mine = self.cursor, self.measurements()
        others, silent = cursor.reports() if isinstance(cursor, JoinedCursor) else ([], [])
        return [mine, *others], silent

    # ---- passes and moves ----

    def one_epoch(self, check: Checks, epoch: int, remainder: Any) -> Batches[Any]:
        """Begins a pass over one epoch. If remainder is None, it is the loader's own."""
        if remainder is None:
            return self._pass(self.cursor.handle, self.batch, epoch)
        if self._options.simulated is not None:
            message = "this loader simulates a process of a layout, "
            message += "which says what the remainder is"
            raise check.misfit(message, "leave out remainder=, or make a layout with it")
        plan = Plan.of(check, self._options.with_remainder(check, remainder))
        handle = calls.loader_remesh(self.cursor.handle.value, plan.document, plan.process)
        try:
            return self._pass(handle, Batch.of(handle, plan), epoch)
        finally:
            handle.close()

    def _pass(self, parent: Handle, batch: Batch, epoch: int) -> Batches[Any]:
        handle = calls.loader_one_epoch(parent.value, epoch)
        cursor = self._new_cursor(handle, batch, epoch + 1)
        if isinstance(cursor, JoinedCursor) and isinstance(self.cursor, JoinedCursor):
            remainder = batch.info["remainder"]
            cursor.share(self.cursor, {"epoch": epoch, "remainder": remainder})
        return Batches(cursor, batch.steps(self._constants["records"], epoch + 1), own=True)

    def restore(self, state: bytes, *, ignore_dataset: bool) -> None:
        """Continues from a state. Its order may have other parameters than the present one."""

        def change(handle: int) -> None:
            try:
                calls.loader_restore(handle, state, ignore_dataset=ignore_dataset)
            finally:  # also if Ctrl-C comes after the call
                self._note_order(handle)

        self.cursor.move(change, "restore")
        self._notice_resume(state)

    def remesh(self, check: Checks, mesh: Any, specs: Any) -> None:
        """Continues at the same position on another mesh. If that fails, nothing changes."""
        if self._options.simulated is not None:
            message = "this loader simulates a process of a layout, and has no mesh"
            raise check.misfit(message, "make another with layout=, process= and state=")
        options = self._options.on_mesh(check, mesh, specs)
        plan = Plan.of(check, options)

        def exchange(old: int) -> None:
            handle = calls.loader_remesh(old, plan.document, plan.process)
            batch = Batch.of(handle, plan)
            size = batch.info["batch_bytes"]
            try:
                self.cursor.follow(handle, batch.feed, size=size, keep=self._keep)
                self._continue(batch, options)
            except KeyboardInterrupt:  # it may come anywhere in these two calls
                if self.cursor.handle is handle:
                    self._continue(batch, options)
                raise

        self.cursor.replace(exchange)

    def _continue(self, batch: Batch, options: Options) -> None:
        """Changes the engine to the new mesh, before another thread takes a batch."""
        self.batch, self._options = batch, options
        self._join()
