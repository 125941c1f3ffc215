"""What a loader delivered: statistics, and a certificate as proof."""

from __future__ import annotations

from typing import TYPE_CHECKING

from meshfeed._io.arguments import Checks
from meshfeed._loader import report as reports
from meshfeed._loader.certificate import Certificate

if TYPE_CHECKING:
    from meshfeed._loader.engine import Engine


class AccountMixin:
    """The methods of a loader that report what it delivered; see `Loader`."""

    _engine: Engine

    def stats(self) -> dict[str, float]:
        """Returns what happened so far, as flat numbers for any logger.

        Returns:
            `epoch`, `step` and `position` of the next batch. The other numbers count this process's
            part of the batches delivered, including those made ahead by `device_prefetch` or
            `peek`:

            - `batches`, `rows` and `bytes`, and `gathered_bytes`, which is more than `bytes`
              if `loading="global"` reads whole batches;
            - `wait_seconds`, in which callers waited for batches; `stall_seconds`, in which ready
              batches waited for callers; `build_seconds`, in which the loader built batches, one
              after the other; `gather_seconds`, the part of these in which it gathered rows, of
              which `storage_seconds` waited for storage, `decode_seconds` for decompression and
              `map_seconds` for functions of `Dataset.map`;
            - `decoding_seconds`: processor time of decompressing the dataset, also ahead and for
              other loaders over it; `delayed_seconds`, in which that waited for a processor;
            - `bad`: records with rows of zeros, because they cannot be computed: see
              ``bad="zero"`` of `Dataset.map` and `Dataset.decode_image`. A record counts once in
              each batch, and in each process that needs it;
            - `requests` to servers, and `retries`, which are those that repeat or continue another;
              `planned_bytes`, which were asked for, and `fetched_bytes`, which came: for the
              dataset since it was opened, also ahead and for other loaders over it;
            - `queued`: ready batches; `live_batches`: batches delivered and still held;
              `idle_batches`: batches with memory that is ready for reuse; `host_bytes`: the
              memory of all three.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> loader = mf.Loader(mf.from_arrays({"x": np.arange(8)}), batch_size=2)
            >>> batch = next(iter(loader))
            >>> stats = loader.stats()
            >>> stats["step"], stats["rows"], stats["bytes"]
            (1.0, 2.0, 16.0)
        """
        with Checks("Loader.stats"):
            counts = self._engine.cursor.stats()
        stats = {
            name.replace("_ns", "_seconds"): value / (1e9 if name.endswith("_ns") else 1)
            for name, value in counts.items()
        }
        epoch, position = map(float, self._engine.cursor.at)
        step = position // self._engine.batch.rows
        return stats | {"epoch": epoch, "step": step, "position": position}

    def report(self, *, all_processes: bool = False) -> reports.Report:
        """Returns what limits the loop over the loader, and what to change.

        The report covers the batches after the first two, so that opening files and compiling the
        first step do not distort it. The pauses between loops are left out, as are passes of
        `one_epoch`. A `remesh` begins anew. The time in `next` counts as waiting for data: until a
        batch is ready, and to make its arrays. All other time of the loop counts as the step.

        JAX dispatches a step, and its devices compute it later. So at some steps the loader checks
        whether the devices have work. If they have none whenever the program asks for a batch, but
        have some within its steps while its thread sleeps, then the program waits for them, for
        example in `float(loss)`.

        Args:
            all_processes: whether to report on the whole job, and to name a late process: one whose
                input or whose program the others wait for. A slower device does not show, because
                the other devices wait for it with work. Every process publishes its measurements
                every few seconds; this call reads the newest of each, and waits for none. Any
                process may call it alone.

        Raises:
            InvalidStateError: the loader is closed; ask before that.

        Examples:
            >>> import meshfeed as mf, numpy as np, time
            >>> loader = mf.Loader(mf.from_arrays({"x": np.arange(60)}), batch_size=5)
            >>> for batch in loader:
            ...     time.sleep(0.02)  # the step
            >>> report = loader.report()
            >>> report.bound, report.action
            ('step', 'nothing')
            >>> print(report.sentences[2])  # doctest: +ELLIPSIS
            Nothing to change: the input alone is ... times as fast.
        """
        with Checks("Loader.report") as check:
            if check.boolean("all_processes", all_processes) is None:
                raise check.wrong("all_processes", None, "True or False")
            if not all_processes:
                return reports.of([self._engine.measurements()])
            return reports.of(*self._engine.reports())

    def certificate(self) -> Certificate:
        """Returns what was delivered since the loader was made, run by run.

        `restore`, `seek` and `remesh` begin another run in it. The certificates of all processes
        add up to a proof that every position was delivered exactly once; `Certificate.check`
        verifies it without reading data. Save the certificate beside the state: certificates of
        later runs are added to it. Every loader keeps one, which costs a few nanoseconds per row.

        A certificate belongs to one order: `restore` of another local order begins a new one.

        Raises:
            InvalidStateError: the loader is closed; ask before that.
            OutOfRangeError: `device_prefetch` has made more than 64 batches ahead.
            ResourceExhaustedError: the loader was moved or skipped steps more than 4,096 times.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> ds = mf.from_arrays({"x": np.arange(100)})
            >>> lay = mf.layout({"data": 2}, mf.P("data"), ds, batch_size=8, processes=2)
            >>> loaders = [mf.Loader(ds, layout=lay, process=p, shuffle=True) for p in range(2)]
            >>> delivered = [len(list(loader)) for loader in loaders]
            >>> mine, other = (loader.certificate() for loader in loaders)
            >>> (mine + other).last, (mine + other).dropped
            ((0, 96), (Span(epoch=0, epochs=1, first=96, last=100),))
            >>> (mine + other).check()
            >>> mine.complete()  # without the other process
            False
        """
        with Checks("Loader.certificate"):
            return Certificate._read(self._engine.cursor.certificate())
