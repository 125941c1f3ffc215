"""The program of a job of four processes, in which process 2 fails, is late or gets wrong data.

First every process plays the scenarios of `tests.distributed.play` and
`tests.distributed.pieces`, without faults. Then it plays the scenes below. Each process writes
its results, by the name of the scene, to a file `got`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pyarrow as pa
from jax.experimental import multihost_utils
from jax.sharding import Mesh, PartitionSpec

import meshfeed as mf
from tests.distributed import pieces
from tests.distributed.play import play, write
from tests.distributed.process import Place, joined
from tests.python import players
from tests.python.jobs import corruptions

ODD = 2  # the process with faults; it holds the same rows as process 0
RECORDS, BATCH = 100_000, 16
BAD = 34  # a record of step 2 and of the odd process
SPECS = {"n": PartitionSpec("data")}
DEEP = os.environ.get("MESHFEED_DEEP") == "1"
WAYS = corruptions.WAYS if DEEP else corruptions.LOADER_FAULTS


def mesh() -> Mesh:
    """Returns a mesh in which processes 0 and 2 hold the same rows, and so do 1 and 3."""
    return Mesh(np.array(jax.devices()).reshape(2, 4), ("model", "data"))


def data() -> np.ndarray[Any, Any]:
    return np.arange(RECORDS, dtype=np.int64)


def write_file(path: Path, n: np.ndarray[Any, Any]) -> Path:
    table = pa.table({"n": n})
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=1000)
    return path


class Scenes:
    """The scenes. Each returns this process's batches, as their first records, and error texts."""

    def __init__(self, place: Place) -> None:
        self.place, self.odd = place, place.rank == ODD
        self.all: dict[str, Callable[[], list[str]]] = {
            "alike": self.alike,
            "another seed": self.another_seed,
            "another place": self.another_place,
            "another mesh": self.another_mesh,
            "missing": self.missing,
            "evaluates alone": self.evaluates_alone,
            "overflow": self.overflow,
            "damaged": self.damaged,
            "one byte": self.one_byte,
            "late": self.late,
            "program": lambda: self.ended(ZeroDivisionError("the loss is nan")),
            "ctrl-c": lambda: self.ended(KeyboardInterrupt()),
            "interrupted": self.alike,  # a new loader works after the scenes above
            **{way.__name__: partial(self.corrupted, way) for way in WAYS},
        }

    def loader(self, ds: mf.Dataset, **options: Any) -> mf.Loader:
        given = {"batch_size": BATCH, "epochs": -1, "prefetch": 0, "name": "train", **options}
        return mf.Loader(ds, mesh(), SPECS, **given)

    def steps(self, loader: mf.Loader, n: int) -> list[str]:
        """Takes n batches, or fewer until one fails.

        After each batch it waits until all processes have taken it.
        """
        got: list[str] = []
        for _ in range(n):
            try:
                batch = next(iter(loader))
            except mf.Error as e:
                return [*got, *_described(e)]
            got.append(str(int(batch["n"].addressable_data(0)[0])))
            self.meet()
        return got

    def meet(self) -> None:
        multihost_utils.sync_global_devices("meet")

    def alike(self) -> list[str]:
        with mf.from_arrays({"n": data()}) as ds, self.loader(ds) as loader:
            return self.steps(loader, 4)

    def another_seed(self) -> list[str]:
        with mf.from_arrays({"n": data()}) as ds:
            with self.loader(ds, shuffle=True, seed=5 if self.odd else 4) as loader:
                return self.steps(loader, 1)

    def another_place(self) -> list[str]:
        with mf.from_arrays({"n": data()}) as ds, self.loader(ds) as loader:
            got = self.steps(loader, 1)
            loader.seek(epoch=0, position=48 if self.odd else 32)
            got += self.steps(loader, 1)
            loader.seek(epoch=0, position=32)
            return got + self.steps(loader, 1)

    def another_mesh(self) -> list[str]:
        flat = mesh().devices.reshape(8)
        with mf.from_arrays({"n": data()}) as ds, self.loader(ds) as loader:
            got = self.steps(loader, 1)
            loader.remesh(Mesh(flat[::-1] if self.odd else flat, ("data",)))
            got += self.steps(loader, 1)
            loader.remesh(Mesh(flat, ("data",)))
            return got + self.steps(loader, 2)

    def missing(self) -> list[str]:
        with mf.from_arrays({"n": data()}) as ds, self.loader(ds, agree_timeout=5.0) as loader:
            self.meet()  # so that no other process is late
            return [] if self.odd else self.steps(loader, 1)

    def evaluates_alone(self) -> list[str]:
        """All evaluate, and after the next batch the odd process does so alone."""
        with mf.from_arrays({"n": data()}) as ds, self.loader(ds) as loader:
            got = self.steps(loader, 1)
            for _ in range(2):
                got.append(str(int(next(loader.one_epoch())["n"].addressable_data(0)[0])))
            self.meet()
            got += self.steps(loader, 1)
            options = loader._engine.cursor._cluster._options  # type: ignore[attr-defined]
            object.__setattr__(options, "agree_timeout", 0.2)
            try:
                next(loader.one_epoch() if self.odd else self.later(loader))
            except mf.PeerError as e:
                got += _described(e)
            self.meet()
            return got

    def later(self, loader: mf.Loader) -> Iterator[Any]:
        """Returns the loop, when another process has failed."""
        await_failure(loader)
        return iter(loader)

    def failing(self, ds: mf.Dataset) -> list[str]:
        """Takes two batches; the odd process fails in the third, before the others take it."""
        with self.loader(ds) as loader:
            got = self.steps(loader, 2)
            if self.odd:
                got += self.steps(loader, 1)
            else:
                await_failure(loader)
                got += self.steps(loader, 1)
            self.meet()
            return got

    def overflow(self) -> list[str]:
        n = data()
        with mf.from_arrays({"n": n}) as ds:
            ds.fingerprint()  # covers every record, so it comes before the change
            if self.odd:
                n[BAD] = 1 << 40
            return self.failing(ds)

    def ended(self, end: BaseException) -> list[str]:
        """Takes two batches; then an exception leaves the `with` block of the odd process."""
        got: list[str] = []
        try:
            with mf.from_arrays({"n": data()}) as ds, self.loader(ds) as loader:
                got += self.steps(loader, 2)
                if self.odd:
                    raise end
                await_failure(loader)
                got += self.steps(loader, 1)
        except type(end) as e:
            got += [type(e).__name__, str(e)]
        self.meet()
        return got

    def damaged(self) -> list[str]:
        path = write_file(self.place.folder / f"own-{self.place.rank}.arrow", data())
        with mf.open(str(path), io="read") as ds:
            with self.loader(ds) as loader:
                if self.odd:
                    os.truncate(path, 320)
                got: list[str] = []
                if self.odd:
                    got += [e.split(";")[0] for e in self.steps(loader, 1)]
                else:
                    try:
                        next(iter(loader))
                    except mf.Error as e:
                        got += _described(e)
                    await_failure(loader)
                    got += self.steps(loader, 1)
                self.meet()
                return got

    def one_byte(self) -> list[str]:
        n = data()
        with mf.from_arrays({"n": n}) as ds, self.loader(ds) as loader:
            if self.odd:  # after the loader's fingerprint, which covers every record
                n[BAD] ^= 1
            got = self.steps(loader, 2)
            with contextlib.suppress(mf.PeerError):  # if another process reports it first
                next(iter(loader))
            await_failure(loader)
            got += self.steps(loader, 1)
            self.meet()
            return got

    def corrupted(self, way: corruptions.Way) -> list[str]:
        """Takes two batches, which are changed in the memory of the odd process."""
        specs = {"x": PartitionSpec("data"), "y": PartitionSpec("data")}
        options: dict[str, Any] = {"batch_size": 8, "epochs": -1, "prefetch": 0}
        with (
            mf.from_arrays(players.rows()) as ds,
            mf.Loader(ds, mesh(), specs, **options) as loader,
        ):
            if self.odd:
                corruptions.corrupt(loader, way)
            with contextlib.suppress(mf.DataLossError):
                next(iter(loader))
                next(iter(loader))
            await_failure(loader)
            try:
                next(iter(loader))
            except mf.Error as e:
                return _described(e)
            finally:
                self.meet()
        return []

    def late(self) -> list[str]:
        records = LateRecords()
        logging.getLogger("meshfeed").addHandler(records)
        with mf.from_arrays({"n": data()}) as ds, self.loader(ds, late_after=0.5) as loader:
            self.steps(loader, 1)
            others = [] if self.odd else [next(iter(loader))]
            if not self.odd:
                assert records.came.wait(60)
                (self.place.folder / f"told-{self.place.rank}").touch()
            while len(list(self.place.folder.glob("told-*"))) < 3:
                time.sleep(0.02)
            others += [next(iter(loader))] if self.odd else []
            got = self.steps(loader, 1)
        logging.getLogger("meshfeed").removeHandler(records)
        return [*records.texts[:1], *got]


class LateRecords(logging.Handler):
    """Keeps only the log records which say that the odd process is late.

    On a busy machine other processes may be late too, or the odd process may not have sent its
    count of batches yet.
    """

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.came = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if f": process {ODD} has taken" in text and text.count("has taken") == 2:
            self.texts.append(text)
            self.came.set()


def _described(e: mf.Error) -> list[str]:
    return [" ".join(cls.__name__ for cls in type(e).__mro__[:3]), str(e)]


def await_failure(loader: mf.Loader) -> None:
    """Waits until this process has received another's failure or found one itself."""
    peers = loader._engine.cursor._cluster.peers  # type: ignore[attr-defined]
    deadline = time.monotonic() + 60
    while peers._received is None and peers._own is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def main(place: Place) -> None:
    play(place, compute=True)
    write(place, "pieces", pieces.played(place))
    scenes = Scenes(place)
    got = {}
    for name, scene in scenes.all.items():
        got[name] = scene()
        scenes.meet()
        write(place, "got", got)
    # The last loader is left open: the interpreter's exit ends its threads.
    ds = mf.from_arrays({"n": data()})
    scenes.left = scenes.loader(ds, late_after=3600.0)  # type: ignore[attr-defined]
    next(iter(scenes.left))  # type: ignore[attr-defined]


if __name__ == "__main__":
    with joined() as place:
        main(place)
