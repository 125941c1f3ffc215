"""The loader: batches of a dataset as global arrays, in an order that any run can repeat."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from meshfeed import _native, cluster, feeds, planning
from meshfeed._handle import Handle
from meshfeed.arguments import DEPTH, WIDE, Checks, State
from meshfeed.batches import Batches
from meshfeed.blocks import Blocks
from meshfeed.certificate import Certificate
from meshfeed.coordinator import Coordinator
from meshfeed.cursor import Cursor
from meshfeed.dataset import Dataset
from meshfeed.errors import InvalidStateError
from meshfeed.joined import JoinedCursor
from meshfeed.saving import write_whole


class Loader:
    """Delivers the batches of a dataset as global arrays with the sharding asked for.

    Iterating yields batches. Without `epochs` a `for` loop runs to the end of the current
    epoch, and the next loop runs through the next one, freshly shuffled. After a `break` the
    next loop continues with the next batch.

    Args:
        source: the dataset.
        mesh: the `jax.sharding.Mesh`; may be left out where every leaf is a `NamedSharding`.
        specs: one `PartitionSpec` for all fields, or a tree of specs, of `NamedSharding`s or
            of `mf.Array`s. None, or a list of field names, gives whole batches as NumPy arrays
            and needs neither JAX nor a mesh.
        batch_size: the rows of the global batch, over all processes; must be given. A tuple gives
            that many batch dimensions: (4, 64) has the records of 256, as four micro-batches.
        shuffle: whether the order is shuffled, anew in every epoch; by default not.
        order: how records are ordered, instead of `shuffle`: "sequential", "shuffle", or "local",
            which cuts the dataset into a part for every group of processes that need the same
            rows and shuffles each by itself, so that a process reads only its own part. The parts
            belong to the first mesh and batch size; `state` brings them along, so that the order
            stays the same on any other. Or the full name of an order, as a state has it.
        seed: the seed of the order, 0 by default; without `shuffle` it changes only "key".
        epochs: how many epochs there are in all, also after a restore, and -1 for no end; by
            default every loop runs through one.
        remainder: what happens to the records that do not fill the last step: "drop", the
            default, leaves them out, "pad" fills up with zeros and adds a mask to every batch,
            "error" refuses.
        mask_name: with "pad", the name of the mask, true in real rows; "valid" by default.
        mask_spec: with "pad", the spec of the mask; by default what all arrays share.
        extras: of "key" (uint32 [batch, 2], a hash of seed, epoch and record) and "record"
            (uint32 [batch, 2], the record's number, low and high half).
        prefetch: how many batches to read ahead, 2 by default; each takes its own host memory.
        device_prefetch: how many batches to send to their devices ahead; by default 1, and 0
            on CPU, where nothing is sent. Each takes device memory.
        max_host_bytes: the bytes that all batches of this process may take, those that the
            user keeps included; more is a ResourceExhaustedError. By default no limit.
        state: continue where this state, from `state()` or the path given to `save_state`,
            stands; by default at the first record.
        dataset: "check", the default, refuses the state of another dataset; "ignore" accepts
            it where there are as many records.
        fill: the value that replaces nulls, by field, such as ``{"label": -1}``; without one, a
            field that may hold nulls is an error.
        loading: what every process reads. "process": what its devices hold, every distinct part
            once. "global": the whole batch, of which it keeps its part. "device": the part of
            every device by itself, replicas again. "reshard": equal parts of the rows, whatever
            the specs say; `reshard` moves them to where the specs want them, in your program.
        layout: instead of `mesh`, `specs`, `batch_size` and `loading`: a layout whose `process`
            to play.
        process: with `layout`: the process. A batch then has, for every array, the list of
            that process's blocks as (index, NumPy array).
        name: what the keys of this loader are called between processes; by default it is
            counted, which is right where every process makes the same loaders in the same order.
        coordinator: how the processes of the mesh talk, where there are several: by default
            through `jax.distributed`, else any `mf.Coordinator`. False: not at all.
        agree_timeout: seconds in which all processes must come to the first batch, and to the
            first one after `restore` and `seek`. Only there they wait for each other.
        on_peer_error: what happens where another process failed: "raise" does so in the next
            batch; "abort" also ends a process that is stuck in a computation with the other.
        verify_replicas: which steps' replicas are compared between processes: the "first" three,
            every k-th with a number k, "always", or "off".
        late_after: seconds after which a job that waits for a batch of some process logs whose.

    Raises:
        InvalidArgumentError: arguments that cannot be right, named with their place.
        IncompatibleError: the state belongs to another dataset, order or seed.
        UnsupportedError: the mesh spans processes that have no way to talk.

    Examples:
        >>> import jax, meshfeed as mf, numpy as np
        >>> from jax.sharding import PartitionSpec as P
        >>> ds = mf.from_arrays({"x": np.arange(80, dtype=np.float32).reshape(10, 8)})
        >>> mesh = jax.make_mesh((1,), ("data",))
        >>> loader = mf.Loader(ds, mesh, P("data"), batch_size=4)
        >>> for batch in loader:
        ...     print(batch["x"].shape, float(batch["x"][0, 0]))
        (4, 8) 0.0
        (4, 8) 32.0
        >>> loader.state()["epoch"], loader.state()["position"]
        (1, 0)
    """

    def __init__(
        self,
        source: Dataset,
        /,
        mesh: Any = None,
        specs: Any = None,
        *,
        batch_size: int | tuple[int, ...] | None = None,
        shuffle: bool | None = None,
        order: str | None = None,
        seed: int | None = None,
        epochs: int | None = None,
        remainder: str = "drop",
        mask_name: str = "valid",
        mask_spec: Any = None,
        extras: Sequence[str] = (),
        prefetch: int | None = None,
        device_prefetch: int | None = None,
        max_host_bytes: int | None = None,
        state: Mapping[str, Any] | str | os.PathLike[str] | None = None,
        dataset: str = "check",
        fill: Mapping[str, Any] | None = None,
        loading: str = "process",
        layout: planning.Layout | None = None,
        process: int | None = None,
        name: str | None = None,
        coordinator: Coordinator | bool | None = None,
        agree_timeout: float = 60.0,
        on_peer_error: str = "raise",
        verify_replicas: str | int = "first",
        late_after: float = 30.0,
    ) -> None:
        check = Checks("mf.Loader")
        _check_kinds(check, source, layout, process)
        self._peers = cluster.Options(
            name, coordinator, agree_timeout, on_peer_error, verify_replicas, late_after
        )
        options: dict[str, Any] = {
            "order": check.order(order, shuffle),
            "seed": check.optional("seed", seed, -WIDE, WIDE),
            "epochs": check.epochs(epochs),
            "prefetch": check.optional("prefetch", prefetch, 0, DEPTH),
            "state": None if state is None else check.state(state),
            "ignore_dataset": check.ignores(dataset),
            "fill": check.fills(fill, tuple(source.schema)),
            "max_host_bytes": check.optional("max_host_bytes", max_host_bytes, 1, WIDE),
        }
        given = {key: value for key, value in options.items() if value is not None}
        ahead = check.optional("device_prefetch", device_prefetch, 0, DEPTH)
        how = None if check.loading(loading) == "process" else loading
        self._request: feeds.Request | None = None
        if layout is not None:
            plan = feeds.replay(check, layout, process, mesh, specs, batch_size, how)
        else:
            self._request = feeds.Request(
                source,
                mesh,
                specs,
                planning.batch(check, batch_size, remainder, mask_name, mask_spec, extras),
                order=given.get("order"),
                seed=given.get("seed", 0),
                prefetch=given.get("prefetch", 2),
                loading=loading,
            )
            plan = feeds.plan(check, self._request)
        given["process"] = plan.process
        handle = _native.loader_create(source.handle, plan.document, given)
        self._describe(handle, plan)
        self._again = epochs is None
        self._ahead = self._feed.ahead if ahead is None else ahead
        self._tight = max_host_bytes is not None
        self._alike = {"epochs": given.get("epochs"), "fill": given.get("fill")}
        self._talks = self._peers.talks(self.layout, played=layout is not None)
        self._cursor = self._new_cursor(handle, across=epochs is not None)
        self._follow(handle)
        self._join()

    def _describe(self, handle: int, plan: feeds.Plan) -> None:
        """Notes what the batches of a handle are."""
        info = _native.loader_info(handle)
        self._feed = plan.feed([Blocks(array) for array in info["arrays"]])
        self._info, self._document = info, plan.document

    def _follow(self, handle: int) -> None:
        """Notes what all states of a handle share; a state may have brought an order's parts."""
        self._constants = _native.loader_state(handle)
        name = self._constants["order"]
        self._document = planning.with_order(self._document, name)
        if self._request is not None:
            self._request = dataclasses.replace(self._request, order=name)

    def _join(self) -> None:
        """Finds the processes of the mesh, with which batches are agreed on."""
        cursor = self._cursor
        if isinstance(cursor, JoinedCursor):
            cursor.leave(wait=False)
            others = cluster.joined(self._peers, self.layout, self._info, self._alike)
            cursor.join(others, self._batch_rows)

    @property
    def _keep(self) -> int:
        return 1 if self._tight else int(self._info["prefetch"]) + 3

    def _new_cursor(self, handle: int, *, across: bool) -> Cursor:
        kind = JoinedCursor if self._talks else Cursor
        return kind(
            handle,
            self._feed.make,
            size=self._info["batch_bytes"],
            ahead=self._ahead,
            across=across,
            keep=self._keep,
        )

    # ---- iterating ----

    def __iter__(self) -> Batches:
        return Batches(self._cursor, self._feed.mark, again=self._again)

    def with_state(self) -> Iterator[tuple[Any, State]]:
        """Iterates as the loader itself does, and yields every batch with the state after it.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> loader = mf.Loader(mf.from_arrays({"x": np.arange(4)}), batch_size=2)
            >>> [(batch["x"].tolist(), state["position"]) for batch, state in loader.with_state()]
            [([0, 1], 2), ([2, 3], 0)]
        """
        loop = iter(self)
        while (item := loop.item()) is not None:
            yield item.batch, self._state(item.epoch, item.position)

    def one_epoch(self, epoch: int = 0) -> Batches:
        """Makes an independent pass over one epoch, for evaluation; the loader does not move.

        Args:
            epoch: which one; without `shuffle` all are the same.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> loader = mf.Loader(mf.from_arrays({"x": np.arange(4)}), batch_size=2)
            >>> sum(int(batch["x"].sum()) for batch in loader.one_epoch())
            6
        """
        epoch = Checks("Loader.one_epoch").int64("epoch", epoch)
        handle = _native.loader_one_epoch(self._cursor.handle.value, epoch)
        cursor = self._new_cursor(handle, across=True)
        if isinstance(cursor, JoinedCursor) and isinstance(self._cursor, JoinedCursor):
            cursor.share(self._cursor)
        return Batches(cursor, self._feed.mark, again=False, own=True)

    def __len__(self) -> int:
        n = self._cursor.remaining()
        if n < 0:
            message = "a loader with epochs=-1 has no length; steps_per_epoch has that of an epoch"
            raise TypeError(message)
        return n

    # ---- place ----

    @property
    def epoch(self) -> int:
        """The epoch of the next batch."""
        return self._cursor.epoch

    @property
    def step(self) -> int:
        """The step of the next batch in its epoch."""
        return self._cursor.position // self._batch_rows

    @property
    def steps_per_epoch(self) -> int:
        """How many batches a whole epoch has."""
        return int(self._info["steps_per_epoch"])

    @property
    def _batch_rows(self) -> int:
        return int(np.prod(self._info["batch_shape"], dtype=np.int64))

    def state(self) -> State:
        """Gives the place after the last batch delivered, as a small dict that JSON can hold.

        It is the same on every process, and fits any mesh, batch size and specs: a loader that
        starts from it continues with the next record.
        """
        return self._state(self._cursor.epoch, self._cursor.position)

    def _state(self, epoch: int, position: int) -> State:
        return {**self._constants, "epoch": epoch, "position": position}

    def save_state(self, path: str | os.PathLike[str]) -> None:
        """Writes `state()` to a file, whole or not at all, whenever the process ends.

        All processes of a run may write the same path, since they have the same state.

        Args:
            path: the file; `state=path` and `restore(path)` read it.

        Raises:
            NotFoundError: there is no such folder.
            ReadError: the file cannot be written; what it held before is as it was.
        """
        if not isinstance(path, str | os.PathLike):
            raise Checks("Loader.save_state").wrong("path", path, "a path")
        write_whole(Path(path), json.dumps(self.state()), op="Loader.save_state")

    def restore(
        self, state: Mapping[str, Any] | str | os.PathLike[str], *, dataset: str = "check"
    ) -> None:
        """Continues where a state stands.

        Args:
            state: from `state()`, or the path that `save_state` wrote.
            dataset: "ignore" accepts the state of another dataset with as many records.

        Raises:
            IncompatibleError: the state belongs to another dataset, order or seed.
        """
        check = Checks("Loader.restore")
        text, ignores = json.dumps(check.state(state)), check.ignores(dataset)
        with self._cursor.moved() as handle:
            _native.loader_restore(handle, text, ignore_dataset=ignores)
            self._follow(handle)

    def seek(self, *, epoch: int, position: int = 0) -> None:
        """Continues at a position of an epoch.

        Args:
            epoch: the epoch, from 0.
            position: how many records of the epoch count as delivered.
        """
        check = Checks("Loader.seek")
        epoch, position = check.int64("epoch", epoch), check.int64("position", position)
        with self._cursor.moved() as handle:
            _native.loader_seek(handle, epoch, position)

    def remesh(self, mesh: Any, specs: Any = None) -> None:
        """Goes on at the same position on another mesh: one that has lost or won devices.

        Nothing is opened or read for it. Batches that were delivered stay good, those read ahead
        are dropped, a `for` loop under way and `one_epoch` passes go on. With several processes
        each of those that go on calls it, at the same position; one that is not in the mesh
        may go on too, and gets batches of which it holds nothing.

        Args:
            mesh: the `jax.sharding.Mesh`; None where `specs` holds `NamedSharding`s.
            specs: as for the loader; by default the same specs. A `NamedSharding` among these
                keeps its spec and memory kind, and gets the mesh.

        Raises:
            InvalidArgumentError: the mesh does not fit; the loader is as it was.

        Examples:
            >>> import jax, meshfeed as mf, numpy as np
            >>> from jax.sharding import PartitionSpec as P
            >>> ds = mf.from_arrays({"x": np.arange(8)})
            >>> loader = mf.Loader(ds, jax.make_mesh((1,), ("data",)), P("data"), batch_size=2)
            >>> for batch in loader:
            ...     print(batch["x"], batch["x"].sharding.mesh.axis_names)
            ...     if loader.step == 2:
            ...         loader.remesh(jax.make_mesh((1, 1), ("data", "model")))
            [0 1] ('data',)
            [2 3] ('data',)
            [4 5] ('data', 'model')
            [6 7] ('data', 'model')
        """
        check = Checks("Loader.remesh")
        if self._request is None:
            message = "this loader plays a process of a layout, and has no mesh"
            raise check.misfit(message, "make another with layout=, process= and state=")
        request = self._request.on_mesh(check, mesh, specs)
        plan = feeds.plan(check, request)
        with self._cursor.replaced() as old:
            handle = Handle(_native.loader_remesh(old, plan.document, plan.process), "loader")
            self._describe(handle.value, plan)
            size = self._info["batch_bytes"]
            self._cursor.follow(handle, self._feed.make, size=size, keep=self._keep)
            self._request = request
        self._join()

    def records(self, epoch: int, position: int) -> npt.NDArray[np.int64]:
        """Gives the records of the global batch that starts at a position, -1 for padding.

        Args:
            epoch: the epoch.
            position: the position of the batch's first row.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> loader = mf.Loader(mf.from_arrays({"x": np.arange(8)}), batch_size=4)
            >>> loader.records(epoch=0, position=4)
            array([4, 5, 6, 7])
        """
        check = Checks("Loader.records")
        epoch, position = check.int64("epoch", epoch), check.int64("position", position)
        out = np.empty(self._batch_rows, np.int64)
        return out[: _native.loader_records(self._cursor.handle.value, epoch, position, out)]

    def certificate(self) -> Certificate:
        """Says what was delivered since the loader was made, restored or set by `seek`.

        A row counts in the lowest process that holds it, so the certificates of all processes
        add up to a proof that every position was delivered exactly once, which `check` verifies
        without reading data. It is kept always, and costs a few nanoseconds per row.

        Raises:
            OutOfRangeError: `device_prefetch` has made more than 64 batches ahead.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> ds = mf.from_arrays({"x": np.arange(100)})
            >>> lay = mf.layout({"data": 2}, mf.P("data"), ds, batch_size=8, processes=2)
            >>> players = [mf.Loader(ds, layout=lay, process=p, shuffle=True) for p in range(2)]
            >>> delivered = [len(list(player)) for player in players]
            >>> mine, other = (player.certificate() for player in players)
            >>> mine.rows, (mine + other).rows, (mine + other).last
            (48, 96, (0, 96))
            >>> (mine + other).check()
            >>> mine.complete()
            False
        """
        return Certificate.from_json(self._cursor.certificate())

    # ---- facts ----

    @property
    def layout(self) -> planning.Layout:
        """Who holds and who reads what; it draws itself."""
        return planning.Layout(self._document)

    @property
    def element_spec(self) -> Any:
        """The batch's tree with a `jax.ShapeDtypeStruct` for every array, as it is delivered."""
        return self._feed.element_spec

    def reshard(self, batch: Any) -> Any:
        """Gives the arrays of a batch the sharding that the specs ask for.

        With `loading="reshard"` batches come with their rows split over all devices, and this
        moves them. It is a pure function for use under `jax.jit`: the loader never runs a program
        itself. With any other loading it gives the batch as it is, so that a step need not know.

        Args:
            batch: a batch of this loader.

        Examples:
            >>> import jax, meshfeed as mf, numpy as np
            >>> from jax.sharding import PartitionSpec as P
            >>> ds = mf.from_arrays({"x": np.ones((16, 8), np.float32)})
            >>> mesh = jax.make_mesh((1, 1), ("data", "model"))
            >>> loader = mf.Loader(ds, mesh, P("data", "model"), batch_size=16, loading="reshard")
            >>> loader.element_spec["x"].sharding.spec
            P(('data', 'model'),)
            >>> @jax.jit
            ... def step(batch):
            ...     return loader.reshard(batch)["x"] * 2
            >>> for batch in loader:
            ...     print(step(batch).sharding.spec)
            P('data', 'model')
        """
        return self._feed.reshard(batch)

    def stats(self) -> dict[str, float]:
        """Gives what happened so far, as flat numbers for any logger.

        `wait_seconds`: callers waited for batches; `stall_seconds`: finished batches waited for
        callers; `gather_seconds`: the gathering; `gathered_bytes`: gathered for the batches
        delivered; `live_batches`: delivered and still held.
        """
        stats: dict[str, float] = {}
        for name, value in _native.loader_stats(self._cursor.handle.value).items():
            if name.endswith("_ns"):
                stats[name.removesuffix("_ns") + "_seconds"] = value / 1e9
            else:
                stats[name] = float(value)
        place = {"epoch": self.epoch, "step": self.step, "position": self._cursor.position}
        return stats | {name: float(value) for name, value in place.items()}

    # ---- end ----

    def close(self) -> None:
        """Ends reading ahead. Batches stay valid. Closing again does nothing."""
        self._cursor.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._cursor.close(kind)

    def __repr__(self) -> str:
        arrays = [array["name"] for array in self._info["arrays"]]
        size = self._info["batch_shape"]
        return (
            f"Loader({arrays}, batch_size={size[0] if len(size) == 1 else tuple(size)}, "
            f"epoch={self.epoch}, step={self.step} of {self.steps_per_epoch})"
        )

    def __reduce__(self) -> NoReturn:
        message = "a loader cannot be pickled: it belongs to this process"
        hint = "save loader.state(), and give it to a new loader in the other process"
        raise InvalidStateError(message, op="loader", hint=hint)


def _check_kinds(check: Checks, source: Any, layout: Any, process: Any) -> None:
    """Refuses what is no dataset or no layout, and a process without a layout."""
    if not isinstance(source, Dataset):
        hint = "make one with mf.open, mf.from_arrow or mf.from_arrays"
        raise check.wrong("source", source, "a meshfeed.Dataset", hint)
    if layout is not None and not isinstance(layout, planning.Layout):
        raise check.wrong("layout", layout, "a meshfeed.Layout", "make one with mf.layout")
    check.optional("process", process, 0, 2**31 - 1)
    if layout is None and process is not None:
        hint = "without layout= a loader loads for the process it runs in"
        raise check.wrong("process", process, "a layout= beside it", hint)
