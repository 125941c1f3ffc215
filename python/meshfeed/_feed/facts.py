"""What a loader knows about its batches: their layout and shapes, counts, and a certificate."""

from __future__ import annotations

from typing import Any, Generic

from meshfeed._feed.engine import Engine
from meshfeed._io.arguments import Checks
from meshfeed._types import BatchT
from meshfeed.certificate import Certificate
from meshfeed.planning import Layout


class Facts(Generic[BatchT]):
    """The part of a loader that answers questions about its batches; see `Loader`."""

    _engine: Engine

    @property
    def layout(self) -> Layout:
        """Who holds and who reads what: a `Layout`, which draws itself."""
        return self._engine.layout

    @property
    def element_spec(self) -> Any:
        """The batch's tree with a `jax.ShapeDtypeStruct` for every array, as it is delivered."""
        return self._engine.feed.element_spec

    def reshard(self, batch: BatchT) -> BatchT:
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
        moved: BatchT = self._engine.feed.reshard(batch)
        return moved

    def stats(self) -> dict[str, float]:
        """Gives what happened so far, as flat numbers for any logger.

        Returns:
            `epoch`, `step` and `position` of the next batch; and of this process's part of the
            batches delivered, those made ahead by `device_prefetch` or `peek` included:

            - `batches`, `rows` and `bytes`, and `gathered_bytes`, which is more than `bytes`
              where `loading="global"` reads whole batches;
            - `wait_seconds`: callers waited for batches; `stall_seconds`: finished batches
              waited for callers; `gather_seconds`: the gathering, also of batches still queued;
            - `queued`: batches that stand ready; `live_batches`: delivered and still held;
              `idle_batches`: pieces of memory that stand ready for reuse; `host_bytes`: the
              memory of all three.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> loader = mf.Loader(mf.from_arrays({"x": np.arange(8)}), batch_size=2)
            >>> batch = next(iter(loader))
            >>> stats = loader.stats()
            >>> stats["step"], stats["rows"], stats["bytes"]
            (1.0, 2.0, 16.0)
        """
        stats: dict[str, float] = {}
        with Checks("Loader.stats"):
            counts = self._engine.cursor.stats()
        for name, value in counts.items():
            if name.endswith("_ns"):
                stats[name.removesuffix("_ns") + "_seconds"] = value / 1e9
            else:
                stats[name] = float(value)
        epoch, position = self._engine.cursor.at
        place = {"epoch": epoch, "step": position // self._engine.batch_rows, "position": position}
        return stats | {name: float(value) for name, value in place.items()}

    def certificate(self) -> Certificate:
        """Says what was delivered since the loader was made, run by run.

        `restore`, `seek` and `remesh` begin another run in it. The certificates of all processes
        add up to a proof that every position was delivered exactly once; `Certificate.check`
        verifies it without reading data. Keep the certificate beside the state that you save:
        those of later runs are added to it. It is kept always, and costs a few nanoseconds per row.

        A certificate is of one order: `restore` of another local order begins it anew.

        Raises:
            InvalidStateError: the loader is closed; ask before that.
            OutOfRangeError: `device_prefetch` has made more than 64 batches ahead.
            ResourceExhaustedError: the loader was moved or skipped steps more than 4,096 times.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> ds = mf.from_arrays({"x": np.arange(100)})
            >>> lay = mf.layout({"data": 2}, mf.P("data"), ds, batch_size=8, processes=2)
            >>> players = [mf.Loader(ds, layout=lay, process=p, shuffle=True) for p in range(2)]
            >>> delivered = [len(list(player)) for player in players]
            >>> mine, other = (player.certificate() for player in players)
            >>> (mine + other).last, (mine + other).dropped
            ((0, 96), (Span(epoch=0, epochs=1, first=96, last=100),))
            >>> (mine + other).check()
            >>> mine.complete()  # without the other process
            False
        """
        with Checks("Loader.certificate"):
            return Certificate._read(self._engine.cursor.certificate())
