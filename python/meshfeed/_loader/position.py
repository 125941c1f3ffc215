"""The position of a loader: its epoch and step, its state, and the calls that move it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from meshfeed._feed.cursor import ASK_BEFORE
from meshfeed._io.arguments import Checks, State
from meshfeed._io.saving import write_whole
from meshfeed._loader import notices
from meshfeed._native import calls
from meshfeed.errors import InvalidStateError

if TYPE_CHECKING:
    from meshfeed._loader.engine import Engine


class Delivered(NamedTuple):
    """The position of a batch that was delivered.

    Attributes:
        epoch: its epoch.
        step: its step in that epoch.
        position: how many records of the epoch come before its first row.
    """

    epoch: int
    step: int
    position: int


class PositionMixin:
    """The methods of a loader that report, save and change its position; see `Loader`."""

    _engine: Engine

    @property
    def epoch(self) -> int:
        """The epoch of the next batch."""
        return self._engine.cursor.at[0]

    @property
    def step(self) -> int:
        """The step of the next batch in its epoch."""
        return self._engine.cursor.at[1] // self._engine.batch.rows

    @property
    def steps_per_epoch(self) -> int:
        """The number of batches in a whole epoch."""
        return int(self._engine.batch.info["steps_per_epoch"])

    @property
    def remaining(self) -> int:
        """The number of batches that a loop started now yields.

        Raises:
            TypeError: the loader has no end, because of `epochs=-1`.
        """
        with Checks("Loader.remaining"):
            self._engine.cursor.handle.check(ASK_BEFORE)
            n = self._engine.steps.left(*self._engine.cursor.at)
        if n < 0:
            message = "a loader with epochs=-1 has no end; steps_per_epoch is the number per epoch"
            raise TypeError(message)
        return n

    @property
    def last(self) -> Delivered:
        """The position of the batch that was delivered last.

        `epoch` and `step` belong to the next batch. After the last batch of an epoch they already
        name the next epoch, and `last` names the epoch of the delivered batch.

        Raises:
            InvalidStateError: no batch was delivered yet.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> loader = mf.Loader(mf.from_arrays({"x": np.arange(4)}), batch_size=2, epochs=2)
            >>> [(loader.last.epoch, loader.last.step) for batch in loader]
            [(0, 0), (0, 1), (1, 0), (1, 1)]
        """
        last = self._engine.cursor.done.last
        if last is None:
            message = "no batch was delivered yet"
            hint = "ask in a loop; epoch and step belong to the next batch"
            raise InvalidStateError(message, op="Loader.last", hint=hint)
        epoch, position = last
        return Delivered(epoch, position // self._engine.batch.rows, position)

    def state(self) -> State:
        """Returns the position after the last batch delivered, as a small dict for JSON.

        The state is the same on every process. A loader with another mesh, batch size or specs
        accepts it too, and continues with the next record. In a signal handler that interrupts
        `next`, it is the position before the batch that `next` is about to return.
        """
        return self._engine.state(*self._engine.cursor.at)

    def save_state(self, path: str | os.PathLike[str]) -> None:
        """Writes `state()` to a file. If the process dies, the file holds the old or the new state.

        All processes of a job may write the same path. If their steps wait for each other, they
        save the same state. If they run independently, the file holds the furthest state that any
        of them saved, and after a restart slower processes miss batches. In that case, give every
        process its own path, and continue from the earliest state. A file goes back to an earlier
        state only after `seek` or `restore` in all processes.

        Args:
            path: the file; `state=path` and `restore(path)` read it.

        Raises:
            NotFoundError: the folder does not exist.
            ReadError: the file cannot be written; its old content is unchanged.
        """
        if not isinstance(path, str | os.PathLike):
            raise Checks("Loader.save_state").wrong("path", path, "a path")
        state, file = self.state(), Path(path)
        keeps = self._engine.keeps_file(file, state)
        write_whole(file, json.dumps(state), op="Loader.save_state", keeps=keeps)

    def restore(
        self,
        state: Mapping[str, Any] | str | os.PathLike[str],
        *,
        dataset: Literal["check", "ignore"] = "check",
    ) -> None:
        """Continues from a state.

        Args:
            state: from `state()`, or the path that `save_state` wrote.
            dataset: "ignore" accepts the state of another dataset with as many records.

        Raises:
            IncompatibleError: the state belongs to another dataset, order or seed.
            InvalidArgumentError: it is not a state.
            NotFoundError: the file does not exist.
        """
        with Checks("Loader.restore") as check:
            saved, ignores = check.state(state), check.ignores(dataset)
            self._engine.restore(saved, ignore_dataset=ignores)

    def state_dict(self) -> State:
        """Returns `state()`, under the name that checkpointing libraries use."""
        return self.state()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continues from a state: `restore`, under the name that checkpointing libraries use.

        Args:
            state_dict: from `state_dict()` or `state()`.

        Raises:
            IncompatibleError: the state belongs to another dataset, order or seed.
            InvalidArgumentError: it is not a state.
        """
        self.restore(state_dict)

    def seek(self, *, epoch: int, position: int = 0) -> None:
        """Continues at a position of an epoch.

        With `epochs=n`, epochs n and later have no batches: loops are empty, and a warning is
        logged.

        Args:
            epoch: the epoch, from 0.
            position: how many records of the epoch count as delivered.

        Raises:
            OutOfRangeError: the epoch or the position does not exist.
        """
        with Checks("Loader.seek") as check:
            epoch, position = check.int64("epoch", epoch), check.int64("position", position)
            cursor = self._engine.cursor
            cursor.move(lambda handle: calls.loader_seek(handle, epoch, position), "seek")
        notices.of_end(self.epoch, self._engine.epochs)

    def skip(self, steps: int) -> None:
        """Leaves out the next steps, for example after a loss spike.

        The next batch is the one after them, and a state saved from now on continues there.
        Certificates list these steps as skipped, so they are neither delivered nor missing. Steps
        beyond the end of an epoch belong to the next one; a `for` loop over one epoch ends at
        its end. In a job, all processes have to skip the same steps; this is checked before the
        next batch.

        Args:
            steps: how many steps, counted from the last batch delivered; 0 does nothing.

        Raises:
            OutOfRangeError: fewer steps of `epochs=` are left; the position does not change.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> loader = mf.Loader(mf.from_arrays({"x": np.arange(12)}), batch_size=2)
            >>> for batch in loader:
            ...     print(batch["x"])
            ...     if loader.step == 2:  # the loss has jumped
            ...         loader.skip(3)
            [0 1]
            [2 3]
            [10 11]
            >>> loader.certificate().skipped
            (Span(epoch=0, epochs=1, first=4, last=10),)
        """
        with Checks("Loader.skip") as check:
            if n := check.int64("steps", steps):
                self._engine.cursor.move(lambda handle: calls.loader_skip(handle, n), "skip")

    def records(self, epoch: int, position: int) -> npt.NDArray[np.int64]:
        """Returns the records of the global batch that starts at a position, -1 for padding.

        Args:
            epoch: the epoch.
            position: the position of the batch's first row.

        Returns:
            An int64 array of one number per row.

        Raises:
            OutOfRangeError: no batch of the loader starts there. Either the epoch or the position
                does not exist, or fewer records than a batch are left.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> loader = mf.Loader(mf.from_arrays({"x": np.arange(8)}), batch_size=4)
            >>> loader.records(epoch=0, position=4)
            array([4, 5, 6, 7])
        """
        with Checks("Loader.records") as check:
            epoch, position = check.int64("epoch", epoch), check.int64("position", position)
            out = np.empty(self._engine.batch.rows, np.int64)
            calls.loader_records(self._engine.cursor.handle.value, epoch, position, out)
            return out


# Python's own error messages contain the qualified name of a method. Users know the class `Loader`.
for _member in vars(PositionMixin).values():
    if isinstance(_member, FunctionType):
        _member.__qualname__ = f"Loader.{_member.__name__}"
