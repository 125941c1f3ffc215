"""What a loader runs on: a handle of the C library, its cursor, and the other processes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from meshfeed._feed import feeds, notices
from meshfeed._feed.batches import Batches, Steps
from meshfeed._feed.cursor import Cursor
from meshfeed._feed.feed import Feed
from meshfeed._feed.joined import JoinedCursor
from meshfeed._feed.options import Options
from meshfeed._io.arguments import Checks, State
from meshfeed._jobs import cluster
from meshfeed._jobs.options import Evidence, JobOptions
from meshfeed._native import calls
from meshfeed._native.handle import Handle
from meshfeed._plan import documents
from meshfeed._plan.blocks import Blocks
from meshfeed.dataset import Dataset
from meshfeed.planning import Layout


class Engine:
    """Everything behind a loader that depends on the mesh, and is made anew for another one.

    Args:
        source: the dataset.
        plan: what the loader is asked for.
        request: what the plan was made from; None where a process of a layout is played.
        options: the loader's.
        peers: what the user says about the other processes.

    Attributes:
        cursor: takes the batches; the same one for good.
    """

    def __init__(
        self,
        source: Dataset,
        plan: feeds.Plan,
        request: feeds.Request | None,
        options: Options,
        peers: JobOptions,
    ) -> None:
        self._request, self._options, self._peers = request, options, peers
        given = options.document(plan.process, plan.run)
        handle = calls.loader_create(source.handle, plan.document, given)
        self._batches = _described(handle, plan)
        ahead = options.device_prefetch
        self._ahead = self.feed.ahead if ahead is None else ahead
        self._talks = peers.talks(plan.processes, played=request is None)
        self._files = source.compared_files() if self._talks else None
        self.cursor = self._new_cursor(handle, self._batches, options.epochs)
        self._follow(handle.value)
        self._join(plan)
        if options.state is not None:
            self._notice_resume(options.state)

    def _follow(self, handle: int) -> None:
        """Notes what all states of a handle share; a state may have brought an order's parts."""
        self._constants = calls.loader_state(handle)
        name = self._constants["order"]
        document = documents.with_order(self.document, name)
        self._batches = self._batches._replace(document=document)
        if self._request is not None:
            self._request = dataclasses.replace(self._request, order=name)

    def _notice_resume(self, saved: State) -> None:
        notices.of_resume(saved, self.document, self.batch_rows)
        notices.of_end(self.cursor.at[0], self.epochs)

    def _join(self, plan: feeds.Plan) -> None:
        """Finds the processes of the mesh, with which the next batch is agreed on."""
        cursor = self.cursor
        if isinstance(cursor, JoinedCursor):
            cursor.leave(wait=False)
            info, alike, live = self.info, self._options.alike, self.feed.live
            evidence = Evidence(self.document, info, alike, self._files, live)
            others = cluster.joined(self._peers, plan.process, plan.processes, evidence)
            cursor.join(others, self.batch_rows)

    @property
    def _keep(self) -> int:
        tight = self._options.max_host_bytes is not None
        return 1 if tight else int(self.info["prefetch"]) + 3

    def _new_cursor(self, handle: Handle, batches: _Batches, epochs: int | None) -> Cursor:
        kind = JoinedCursor if self._talks else Cursor
        return kind(
            handle,
            batches.feed,
            size=batches.info["batch_bytes"],
            ahead=self._ahead,
            per_epoch=epochs is None,
            keep=self._keep,
        )

    @property
    def epochs(self) -> int | None:
        """How many epochs there are in all, -1 for no end; None where a loop is one epoch."""
        return self._options.epochs

    @property
    def steps(self) -> Steps:
        """How many batches are left at a position."""
        return self._steps(self._batches, self.epochs)

    def _steps(self, batches: _Batches, epochs: int | None) -> Steps:
        return Steps(self._constants["records"], batches.rows, batches.pad, epochs)

    @property
    def feed(self) -> Feed:
        """How a batch is made."""
        return self._batches.feed

    @property
    def info(self) -> dict[str, Any]:
        """What the library says about the batches of this process."""
        return self._batches.info

    @property
    def batch_rows(self) -> int:
        """The rows of the global batch."""
        return self._batches.rows

    @property
    def document(self) -> str:
        """The layout's document."""
        return self._batches.document

    @property
    def layout(self) -> Layout:
        """Who holds and who reads what."""
        return Layout(self.document)

    def state(self, epoch: int, position: int) -> State:
        """Gives the state of a place."""
        return {**self._constants, "epoch": epoch, "position": position}

    def passed(self, path: Path, state: State) -> Callable[[str], bool] | None:
        """Gives what says whether a file with a state stays; None without other processes."""
        cursor = self.cursor
        return cursor.passed(path, state) if isinstance(cursor, JoinedCursor) else None

    def one_epoch(self, check: Checks, epoch: int, remainder: Any) -> Batches[Any]:
        """Makes a pass over one epoch, with another remainder unless it is None."""
        if remainder is None:
            return self._pass(self.cursor.handle, self._batches, epoch)
        if self._request is None:
            message = "this loader plays a process of a layout, which says what the remainder is"
            raise check.misfit(message, "leave out remainder=, or make a layout with it")
        plan = feeds.plan(check, self._request.with_remainder(check, remainder))
        handle = calls.loader_remesh(self.cursor.handle.value, plan.document, plan.process)
        try:
            return self._pass(handle, _described(handle, plan), epoch)
        finally:
            handle.close()

    def _pass(self, parent: Handle, batches: _Batches, epoch: int) -> Batches[Any]:
        handle = calls.loader_one_epoch(parent.value, epoch)
        cursor = self._new_cursor(handle, batches, epoch + 1)
        if isinstance(cursor, JoinedCursor) and isinstance(self.cursor, JoinedCursor):
            cursor.share(self.cursor)
        return Batches(cursor, self._steps(batches, epoch + 1), own=True)

    def restore(self, state: State, *, ignore_dataset: bool) -> None:
        """Goes on where a state stands, which may name an order of other parts."""
        text = json.dumps(state)

        def change(handle: int) -> None:
            try:
                calls.loader_restore(handle, text, ignore_dataset=ignore_dataset)
            finally:  # Ctrl-C may come behind it
                self._follow(handle)

        self.cursor.move(change)
        self._notice_resume(state)

    def remesh(self, check: Checks, mesh: Any, specs: Any) -> None:
        """Goes on at the same position on another mesh; if that fails, all is as it was."""
        if self._request is None:
            message = "this loader plays a process of a layout, and has no mesh"
            raise check.misfit(message, "make another with layout=, process= and state=")
        request = self._request.on_mesh(check, mesh, specs)
        plan = feeds.plan(check, request)

        def exchange(old: int) -> None:
            handle = calls.loader_remesh(old, plan.document, plan.process)
            batches = _described(handle, plan)
            size = batches.info["batch_bytes"]
            try:
                self.cursor.follow(handle, batches.feed, size=size, keep=self._keep)
                self._go_on(batches, request, plan)
            except KeyboardInterrupt:  # anywhere in this
                if self.cursor.handle is handle:
                    self._go_on(batches, request, plan)
                raise

        self.cursor.replace(exchange)

    def _go_on(self, batches: _Batches, request: feeds.Request, plan: feeds.Plan) -> None:
        """Has everything else follow the cursor to a new mesh."""
        self._batches, self._request = batches, request
        self._join(plan)  # before another thread takes a batch of the new mesh


class _Batches(NamedTuple):
    """What the batches of a handle are."""

    feed: Feed
    info: dict[str, Any]
    rows: int
    pad: bool
    document: str


def _described(handle: Handle, plan: feeds.Plan) -> _Batches:
    """Finds out what the batches of a handle are."""
    info = calls.loader_info(handle.value)
    feed = plan.feed([Blocks(array) for array in info["arrays"]])
    rows = int(np.prod(info["batch_shape"], dtype=np.int64))
    pad = json.loads(plan.document)["batch"].get("remainder") == "pad"
    return _Batches(feed, info, rows, pad, plan.document)
