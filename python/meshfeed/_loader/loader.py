"""The loader: batches of a dataset as global arrays, in an order that any run can repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, Unpack, overload

from meshfeed._data.dataset import Dataset, far_bytes, fixed_fields, not_arrays
from meshfeed._feed.batches import Batches
from meshfeed._io import synonyms
from meshfeed._io.arguments import DEPTH, WIDE, Checks, State, cut
from meshfeed._jobs.coordinator import Coordinator
from meshfeed._jobs.options import JobOptions
from meshfeed._layout.layout import Layout
from meshfeed._loader import decoding, notices
from meshfeed._loader.account import AccountMixin
from meshfeed._loader.engine import Engine
from meshfeed._loader.options import Options
from meshfeed._loader.position import PositionMixin
from meshfeed._types import BatchT
from meshfeed.errors import Error, InvalidStateError, OutOfRangeError

if TYPE_CHECKING:
    from jax.sharding import Mesh

    from meshfeed import _types
    from meshfeed._feed.records import RecordBatch
    from meshfeed._layout.specs import Spec
    from meshfeed._loader.backend import Devices


class Loader(PositionMixin, AccountMixin, Generic[BatchT]):
    """Delivers the batches of a dataset as global arrays with the shardings of `specs`.

    Iterating yields batches. Without `epochs` a `for` loop runs to the end of the current
    epoch, and the next loop runs through the next one, freshly shuffled. After a `break` the
    next loop continues with the next batch. Concurrent and nested loops share the batches of the
    epoch and end with it. To look at a sample use `peek`, which does not advance the loader;
    `next(iter(loader))` takes the batch, and the next loop begins after it.

    Args:
        source: the dataset.
        mesh: the `jax.sharding.Mesh`, by default the mesh of `jax.set_mesh`; not needed if every
            leaf is a `NamedSharding`. The mesh of a block `with mesh:`, which JAX deprecates, is
            not used.
        specs: one `PartitionSpec` for all fields, or a tree of specs, of `NamedSharding`s or
            of `mf.Array`s: dicts, tuples, lists, and classes that JAX knows as pytrees. None, or a
            list of field names, means whole batches as NumPy arrays and needs neither JAX nor a
            mesh.
        batch_size: the rows of the global batch, over all processes; required. For 64 rows per
            device of the axis "data" write ``batch_size=64 * mesh.shape["data"]``. A tuple gives
            that many batch dimensions: (4, 64) means 256 records, as four micro-batches of 64.
        shuffle: whether the order is shuffled, anew in every epoch; by default it is not.
        order: how records are ordered, instead of `shuffle`: "sequential", "shuffle", "local" or
            "blocks". "local" cuts the dataset into a part for every group of processes that need
            the same rows, and shuffles each part alone. So a process reads only its own part.
            "blocks" shuffles the record batches of the dataset, and then the records of several
            of them together; `mf.Blocks` has its parameters. It is for data that have to be
            decoded or are far away. The parameters of both belong to the first mesh and batch
            size; `state` contains them, so that the order stays the same on any other. Also the
            full name of an order, as in a state.
        seed: the seed of the order, 0 by default; without `shuffle` it changes only the extra
            "key".
        epochs: the total number of epochs, also after a restore, and -1 for no end; by
            default every loop runs through one.
        remainder: what happens to the records that do not fill the last step: "drop", the
            default, leaves them out, "pad" fills up with zeros and adds a mask to every batch,
            "error" raises an error.
        mask_name: with "pad", the name of the mask, which is true in real rows; "valid" by default.
        mask_spec: with "pad", the spec of the mask; by default the axes of the batch dimensions
            that all arrays share.
        extras: additional arrays: "key" (uint32 [batch, 2], a hash of seed, epoch and record) and
            "record" (uint32 [batch, 2], the record's number, low and high half).
        prefetch: how many batches to read ahead, 2 by default; each takes host memory.
        device_prefetch: how many batches to send to their devices ahead; by default 1, and 0
            on CPU, where nothing is sent. Each takes device memory.
        max_host_bytes: the bytes that all batches of this process may take, including those that
            the program keeps; more is a ResourceExhaustedError. By default no limit. JAX
            dispatches computations asynchronously, and each holds its batch until it has run. At
            the limit the loader waits for those dispatched, and raises if that frees nothing.
        arrow: whether batches are `RecordBatch`es, which pyarrow, polars and other libraries of
            Arrow read without a copy. They have no padding rows: with remainder="pad" the last one
            has fewer rows, and there is no mask. Not with a mesh or specs.
        state: the state to continue from, from `state()` or the path given to `save_state`; by
            default the loader begins at the first record.
        dataset: "check", the default, refuses the state of another dataset; "ignore" accepts
            it if there are as many records.
        fill: the value that replaces nulls, by field, such as ``{"label": -1}``. Without it, a null
            is an error: at once if the metadata count nulls, otherwise where it occurs.
        loading: what every process reads. "process": what its devices hold, every distinct part
            once. "global": the whole batch, of which it keeps its part. "device": the part of
            every device separately, also of replicas. "reshard": equal parts of the rows, for any
            specs; in your program, `reshard` moves them to the shardings of the specs.
        layout: instead of `specs`, `batch_size`, `remainder`, `extras` and `loading`: a layout,
            such as `mf.advise` returns. With a `mesh`, which has the layout's axes and possibly
            more of size 1, batches are a dict of global arrays on its devices. Without one, it is
            the mesh of `jax.set_mesh`.
        process: with `layout`, instead of `mesh`: one of its processes. The loader may run in any
            process. A batch has, for every array, the list of the blocks of process `process` as
            (index, NumPy array).
        name: the name of this loader in keys between processes; by default loaders are
            counted, which is right if every process makes the same loaders in the same order. All
            processes take the first batches of their loaders in the same order.
        coordinator: how the processes of the mesh communicate, if there are several: by default
            through `jax.distributed`, else any `mf.Coordinator`. False: not at all.
        agree_timeout: seconds in which all processes must come to the first batch, and to the
            first one after `restore` and `seek`. They wait for each other only there.
        on_peer_error: what happens if another process failed, or if an exception or Ctrl-C ended
            its `with mf.Loader(...)` block or its program. The next batch raises a PeerError. A
            process that waits for the other one in a computation asks for no batch: with "end",
            the default, it ends after 30 s, with "abort" after 5 s, and with "raise" never. It
            prints the reason on stderr, and its exit status is `mf.EXIT_PEER_ERROR`. The same holds
            if another process closed its loader before a batch that this one has taken.
        verify_replicas: which steps' replicas are compared between processes: the "first" three,
            every k-th with a number k, "always", or "off". Unless it is "off", processes also
            stop now and then, with "always" before every batch, until all have come to the same
            one. If a process has taken more batches than the others, all of them raise an
            IncompatibleError.
        late_after: seconds that the job waits for a batch of one process before the log names it.

    Raises:
        InvalidArgumentError: arguments that are invalid; the text names them.
        IncompatibleError: the state belongs to another dataset, order or seed.
        UnsupportedError: the mesh spans processes that cannot communicate.

    Examples:
        >>> import jax, meshfeed as mf, numpy as np
        >>> from jax.sharding import PartitionSpec as P
        >>> ds = mf.from_arrays({"x": np.arange(80, dtype=np.float32).reshape(10, 8)})
        >>> mesh = jax.make_mesh((1,), ("data",))
        >>> loader = mf.Loader(ds, mesh, P("data"), batch_size=4)
        >>> for batch in loader:
        ...     print(batch["x"].shape, batch["x"].sharding.spec, np.asarray(batch["x"])[0, 0])
        (4, 8) P('data',) 0.0
        (4, 8) P('data',) 32.0
        >>> loader.state()["epoch"], loader.state()["position"]
        (1, 0)
    """

    # The type of a batch follows from the overload. For a wrong keyword mypy names the keyword in
    # its first line, and then prints every overload with all options: 7,000 characters. Only
    # `**options: Any` is shorter, and with it no checker would find a wrong keyword.

    @overload
    def __init__(
        self: Loader[_types.NumpyBatch],
        source: Dataset,
        /,
        *,
        specs: list[str] | None = None,
        batch_size: int | tuple[int, ...],
        arrow: Literal[False] = False,
        **options: Unpack[_types.WholeOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: Loader[RecordBatch],
        source: Dataset,
        /,
        *,
        specs: list[str] | None = None,
        batch_size: int,
        arrow: Literal[True],
        **options: Unpack[_types.WholeOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: Loader[_types.JaxBatch],
        source: Dataset,
        /,
        mesh: Mesh | None = None,
        specs: _types.Leaf | Mapping[str, _types.Leaf] = ...,
        *,
        batch_size: int | tuple[int, ...],
        **options: Unpack[_types.WholeOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: Loader[_types.JaxBatch],
        source: Dataset,
        /,
        mesh: Mesh | None = None,
        *,
        layout: Layout,
        **options: Unpack[_types.Options],
    ) -> None: ...

    @overload
    def __init__(
        self: Loader[_types.BlocksBatch],
        source: Dataset,
        /,
        *,
        layout: Layout,
        process: int,
        **options: Unpack[_types.Options],
    ) -> None: ...

    @overload
    def __init__(
        self: Loader[Any],
        source: Dataset,
        /,
        mesh: Mesh | None = None,
        specs: _types.Tree | None = None,
        *,
        batch_size: int | tuple[int, ...],
        **options: Unpack[_types.WholeOptions],
    ) -> None: ...

    @synonyms.keywords("mf.Loader", synonyms.OPTIONS)
    def __init__(
        self,
        source: Dataset,
        /,
        mesh: Mesh | None = None,
        specs: Any = None,
        *,
        batch_size: int | tuple[int, ...] | None = None,
        shuffle: bool | None = None,
        order: _types.Order | None = None,
        seed: int | None = None,
        epochs: int | None = None,
        remainder: _types.Remainder = "drop",
        mask_name: str = "valid",
        mask_spec: Spec | None = None,
        extras: Sequence[Literal["key", "record"]] = (),
        prefetch: int | None = None,
        device_prefetch: int | None = None,
        max_host_bytes: int | None = None,
        state: _types.SavedState | None = None,
        dataset: Literal["check", "ignore"] = "check",
        fill: _types.Fill | None = None,
        loading: _types.Loading = "process",
        layout: Layout | None = None,
        process: int | None = None,
        arrow: bool = False,
        name: str | None = None,
        coordinator: Coordinator | Literal[False] | None = None,
        agree_timeout: float = 60.0,
        on_peer_error: Literal["end", "raise", "abort"] = "end",
        verify_replicas: Literal["first", "always", "off"] | int = "first",
        late_after: float = 30.0,
    ) -> None:
        with Checks("mf.Loader") as check:
            _check_kinds(check, source, layout, process)
            _check_no_layout(check, mesh, specs)
            peers = JobOptions(
                name, coordinator, agree_timeout, on_peer_error, verify_replicas, late_after
            )
            reasons = {s.name: s.reason for s in not_arrays(source)}
            options = Options(
                source,
                peers,
                order=check.order(order, shuffle),
                seed=check.optional("seed", seed, -WIDE, WIDE),
                epochs=check.epochs(epochs),
                prefetch=check.optional("prefetch", prefetch, 0, DEPTH),
                device_prefetch=check.optional("device_prefetch", device_prefetch, 0, DEPTH),
                max_host_bytes=check.optional("max_host_bytes", max_host_bytes, 1, WIDE),
                state=None if state is None else check.state(state),
                ignore_dataset=check.ignores(dataset),
                fill=check.fills(fill, tuple(fixed_fields(source)), reasons),
            )
            batches: dict[str, Any] = {
                "batch_size": batch_size,
                "remainder": remainder,
                "mask_name": mask_name,
                "mask_spec": mask_spec,
                "extras": extras,
                "loading": check.loading(loading),
                "arrow": bool(check.boolean("arrow", arrow)),
            }
            if layout is None:
                options = options.of_specs(check, mesh, specs, **batches)
            else:
                others = {"specs": specs, **batches}
                options = options.of_layout(check, layout, mesh, process, others)
            self._engine = Engine(check, options)
        try:
            decoding.refuse_shuffling(source, self.state()["order"])
        except Error:
            self.close()
            raise
        self._warn(options)

    def _warn(self, options: Options) -> None:
        """Warns of an unusable cache, of shuffles, and of split micro-batches."""
        decoding.warn_of_problem(options.source)
        order = self.state()["order"]
        arrays = self._engine.batch.info["arrays"]
        fields = [array["field"] for array in arrays if array["field"]]
        decoding.warn_of_shuffling(options.source, fields, order)
        if not order.startswith("sequential") and self._engine.batch.plan.alone:
            notices.of_local_mesh()
        if isinstance(options.batch.get("size"), list):
            notices.of_layout(self.layout, "split-micro-batches")
        plan = self._engine.batch.plan
        if far_bytes(options.source) and plan.process == min(plan.processes):
            notices.of_layout(self.layout, "far-shuffle")

    # ---- iterating ----

    def __iter__(self) -> Batches[BatchT]:
        return Batches(self._engine.cursor, self._engine.steps)

    def peek(self) -> BatchT:
        """Returns the next batch without taking it: a sample, before a loop or in it.

        The next batch of a loop is then the same batch, with the same arrays. `state()`, `epoch`,
        `step` and `remaining` do not change, and no batch counts as delivered. In a job of several
        processes any process may peek, alone and any number of times. A process that calls `next`
        alone would be one step ahead of the others.

        At the end of an epoch, `peek` returns the first batch of the next one, and the next loop
        begins with it.

        Raises:
            OutOfRangeError: all `epochs` are over, so there is no next batch.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> loader = mf.Loader(mf.from_arrays({"x": np.arange(4)}), batch_size=2)
            >>> loader.peek()["x"].tolist()
            [0, 1]
            >>> [batch["x"].tolist() for batch in loader]
            [[0, 1], [2, 3]]
        """
        cursor = self._engine.cursor
        with Checks("Loader.peek"):
            lock = cursor.exclusive()
            _ = lock.held
            try:
                with cursor.marked("meshfeed.peek"):
                    item = cursor.peek()
            finally:
                del lock.held
            if item is None:
                message = f"there is no next batch: all {self._engine.epochs} epochs are over"
                raise OutOfRangeError(message, hint="loader.remaining says how many are left")
            batch: BatchT = item[0]
        return batch

    def with_state(self) -> Batches[tuple[BatchT, State]]:
        """Iterates as the loader itself does, and yields every batch with the state after it.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> loader = mf.Loader(mf.from_arrays({"x": np.arange(4)}), batch_size=2)
            >>> [(batch["x"].tolist(), state["position"]) for batch, state in loader.with_state()]
            [([0, 1], 2), ([2, 3], 0)]
        """
        engine = self._engine
        return Batches(
            engine.cursor, engine.steps, give=lambda item: (item[0], engine.state(*item[1]))
        )

    def one_epoch(
        self, epoch: int = 0, *, remainder: _types.Remainder | None = None
    ) -> Batches[BatchT]:
        """Makes an independent pass over one epoch, for evaluation; the loader does not move.

        In a job of several processes all of them make the same passes, in the same order and after
        the same batch. The first batch of a pass waits until all have begun it.

        Args:
            epoch: which one; without `shuffle` all are the same.
            remainder: what happens in this pass to the records that do not fill the last step; by
                default the same as in the loader, where "drop" is the default. For an evaluation
                over all records use "pad", and count by the mask.

        Returns:
            An iterator with a `len`. Its memory is freed at its end, or by its `close`. Its first
            batch raises a PeerError if another process does not begin the pass in time.

        Raises:
            OutOfRangeError: the epoch does not exist.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> loader = mf.Loader(mf.from_arrays({"x": np.arange(5)}), batch_size=2)
            >>> batches = loader.one_epoch(remainder="pad")
            >>> [(batch["x"].tolist(), batch["valid"].tolist()) for batch in batches]
            [([0, 1], [True, True]), ([2, 3], [True, True]), ([4, 0], [True, False])]
        """
        with Checks("Loader.one_epoch") as check:
            return self._engine.one_epoch(check, check.int64("epoch", epoch), remainder)

    def place(self, devices: Devices) -> Batches[Any]:
        """Iterates as the loader itself does, with every batch on devices that are not JAX's.

        The device ids of the layout's mesh are the numbers of these devices, and every device gets
        its shard of every array. So a layout can be tried on any number of virtual devices, and
        batches can go to a device without JAX. If the loader is on a JAX mesh, its batches go to
        the devices of the same ids here, and JAX gets none.

        Args:
            devices: from `mf.devices`.

        Returns:
            An iterator over trees of `PlacedArray`s. Their memory is reused for another batch
            once the batch, its shards and all views of them are gone.

        Raises:
            InvalidArgumentError: the loader delivers whole batches, and has no mesh.
            OutOfRangeError: a device id of the mesh does not exist here.
            UnsupportedError: the mesh has several processes or no axes.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> ds = mf.from_arrays({"x": np.arange(16, dtype=np.int32)})
            >>> lay = mf.layout({"data": 2, "model": 2}, mf.P("data"), ds, batch_size=8)
            >>> loader = mf.Loader(ds, layout=lay, process=0)
            >>> with mf.devices("virtual:4") as devices:
            ...     for batch in loader.place(devices):
            ...         print([np.asarray(shard).tolist() for shard in batch["x"].shards])
            [[0, 1, 2, 3], [0, 1, 2, 3], [4, 5, 6, 7], [4, 5, 6, 7]]
            [[8, 9, 10, 11], [8, 9, 10, 11], [12, 13, 14, 15], [12, 13, 14, 15]]
        """
        from meshfeed._loader.placed import Placing

        with Checks("Loader.place") as check:
            placing = Placing(check, self._engine, devices)
        return Batches(self._engine.cursor, self._engine.steps, take=placing.take)

    def __len__(self) -> int:
        """Returns the total number of batches, which does not change while loops run.

        That is `steps_per_epoch`, times `epochs` if that was given. `remaining` is the number of
        batches that are left, and `len` of an iterator the number that it still yields.
        """
        epochs = self._engine.epochs
        if epochs is not None and epochs < 0:
            message = (
                "a loader with epochs=-1 has no length; steps_per_epoch is the length of an epoch"
            )
            raise TypeError(message)
        return self.steps_per_epoch * (epochs or 1)

    def __bool__(self) -> bool:
        return True

    def remesh(self, mesh: Mesh | None, specs: _types.Tree | None = None) -> None:
        """Continues at the same position on another mesh, for example with fewer devices.

        It opens and reads nothing. Batches that were delivered stay valid, and batches read
        ahead are dropped. A `for` loop under way and `one_epoch` passes continue. In a job
        every process that continues calls it, at the same position. A process that is not in
        the mesh may continue too, and gets batches without any rows of its own.

        Args:
            mesh: the `jax.sharding.Mesh`; None where `specs` holds `NamedSharding`s.
            specs: as for the loader; by default the same specs. A `NamedSharding` among these
                keeps its spec and memory kind, and gets the mesh.

        Raises:
            InvalidArgumentError: the mesh does not fit; the loader does not change.

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
        with Checks("Loader.remesh") as check:
            self._engine.remesh(check, mesh, specs)

    # ---- what the batches are ----

    @property
    def layout(self) -> Layout:
        """The `Layout`: what every device holds and every process reads. Notebooks draw it."""
        return self._engine.layout

    @property
    def element_spec(self) -> Any:
        """The batch's tree with a `jax.ShapeDtypeStruct` for every array, as it is delivered."""
        return self._engine.batch.feed.element_spec

    def reshard(self, batch: BatchT) -> BatchT:
        """Moves the arrays of a batch to the sharding that the specs ask for.

        With `loading="reshard"` batches come with their rows split over all devices, and this
        function moves them. It is a pure function for use under `jax.jit`: the loader never runs a
        program itself. With any other loading it returns the batch unchanged, so that a step works
        with both.

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
        moved: BatchT = self._engine.batch.feed.reshard(batch)
        return moved

    # ---- end ----

    def close(self) -> None:
        """Ends reading ahead. Batches stay valid. Closing again does nothing."""
        self._engine.cursor.close()

    def __enter__(self) -> Loader[BatchT]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._engine.cursor.close(error)

    def __repr__(self) -> str:
        arrays = cut(str([array["name"] for array in self._engine.batch.info["arrays"]]))
        size = self._engine.batch.info["batch_shape"]
        return (
            f"Loader({arrays}, batch_size={size[0] if len(size) == 1 else tuple(size)}, "
            f"epoch={self.epoch}, step={self.step} of {self.steps_per_epoch})"
        )

    if not TYPE_CHECKING:  # else type checkers would accept every name

        def __getattr__(self, name: str) -> NoReturn:
            """Raises an error that says what to write instead of a name of another library."""
            synonyms.missing(self, name, synonyms.LOADER)

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_"):
            message = f"a loader's {name!r} cannot be set: give it when the loader is made"
            raise AttributeError(message + "; seek and restore move it, remesh changes its mesh")
        super().__setattr__(name, value)

    def __reduce__(self) -> NoReturn:
        message = "a loader cannot be pickled: it belongs to this process"
        hint = "save loader.state(), and give it to a new loader in the other process"
        raise InvalidStateError(message, op="mf.Loader", hint=hint)


def _check_kinds(check: Checks, source: Any, layout: Any, process: Any) -> None:
    """Refuses a source and a layout of another type, and a process without a layout."""
    if not isinstance(source, Dataset):
        hint = "make one with mf.open, mf.from_arrow or mf.from_arrays"
        raise check.wrong("source", source, "a meshfeed.Dataset", hint)
    if layout is not None and not isinstance(layout, Layout):
        has_one = isinstance(getattr(layout, "layout", None), Layout)  # as an advice
        hint = "pass its layout" if has_one else "make one with mf.layout"
        raise check.wrong("layout", layout, "a meshfeed.Layout", hint)
    check.optional("process", process, 0, 2**31 - 1)
    if layout is None and process is not None:
        hint = "without layout= a loader loads for the process it runs in"
        raise check.wrong("process", process, "a layout= beside it", hint)


def _check_no_layout(check: Checks, mesh: Any, specs: Any) -> None:
    """Refuses a layout as the mesh or the specs."""
    kinds = (("mesh", mesh, "a mesh or a sharding"), ("specs", specs, "specs"))
    for argument, value, kind in kinds:
        if isinstance(value, Layout):
            raise check.wrong(argument, value, kind, "pass layout= instead")
