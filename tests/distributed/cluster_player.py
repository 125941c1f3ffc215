"""A process of a job in which process 2 is wrong, late or broken.

First it plays the scenarios of loading and of `tests.distributed.pieces`, without faults. Then
process 2, which holds the same rows as process 0, is at fault. The file `got` gets what every
process got, by scene.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable
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
from tests.python import corruptions, players

ODD = 2
RECORDS, BATCH = 100_000, 16
BAD = 34  # a record of step 2 and of the odd process
SPECS = {"n": PartitionSpec("data")}
DEEP = os.environ.get("MESHFEED_DEEP") == "1"
WAYS = corruptions.WAYS if DEEP else corruptions.TELLING


def mesh() -> Mesh:
    """Makes a mesh in which processes 0 and 2 hold the same rows, and so do 1 and 3."""
    return Mesh(np.array(jax.devices()).reshape(2, 4), ("model", "data"))


def data() -> np.ndarray[Any, Any]:
    return np.arange(RECORDS, dtype=np.int64)


def write_file(path: Path, n: np.ndarray[Any, Any]) -> Path:
    table = pa.table({"n": n})
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=1000)
    return path


class Scenes:
    """The scenes; each returns what this process got."""

    def __init__(self, place: Place) -> None:
        self.place, self.odd = place, place.rank == ODD
        self.all: dict[str, Callable[[], list[str]]] = {
            "alike": self.alike,
            "another seed": self.another_seed,
            "another place": self.another_place,
            "another mesh": self.another_mesh,
            "missing": self.missing,
            "overflow": self.overflow,
            "damaged": self.damaged,
            "one byte": self.one_byte,
            "late": self.late,
            "program": lambda: self.ended(ZeroDivisionError("the loss is nan")),
            "ctrl-c": lambda: self.ended(KeyboardInterrupt()),
            "interrupted": self.alike,
            **{way.__name__: partial(self.corrupted, way) for way in WAYS},
        }

    def loader(self, ds: mf.Dataset, **options: Any) -> mf.Loader:
        given = {"batch_size": BATCH, "epochs": -1, "prefetch": 0, "name": "train", **options}
        return mf.Loader(ds, mesh(), SPECS, **given)

    def steps(self, loader: mf.Loader, n: int) -> list[str]:
        """Takes batches until one fails. All processes have a batch before the next is taken."""
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
        with mf.from_arrays({"n": data()}) as ds, self.loader(ds, agree_timeout=3.0) as loader:
            self.meet()  # so that only the odd process is late
            return [] if self.odd else self.steps(loader, 1)

    def failing(self, ds: mf.Dataset) -> list[str]:
        """Takes two batches; the odd process fails in the third, before the others take it."""
        with self.loader(ds) as loader:
            got = self.steps(loader, 2)
            if self.odd:
                got += self.steps(loader, 1)
            else:
                hear(loader)
                got += self.steps(loader, 1)
            self.meet()
            return got

    def overflow(self) -> list[str]:
        n = data()
        with mf.from_arrays({"n": n}) as ds:
            ds.fingerprint()  # which covers every record
            if self.odd:
                n[BAD] = 1 << 40
            return self.failing(ds)

    def ended(self, end: BaseException) -> list[str]:
        """Takes two batches; then the odd process's program ends its block with an exception."""
        got: list[str] = []
        try:
            with mf.from_arrays({"n": data()}) as ds, self.loader(ds) as loader:
                got += self.steps(loader, 2)
                if self.odd:
                    raise end
                hear(loader)
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
                    hear(loader)
                    got += self.steps(loader, 1)
                self.meet()
                return got

    def one_byte(self) -> list[str]:
        n = data()
        with mf.from_arrays({"n": n}) as ds, self.loader(ds) as loader:
            if self.odd:  # after the fingerprint, which covers every record
                n[BAD] ^= 1
            got = self.steps(loader, 2)
            with contextlib.suppress(mf.PeerError):  # if another process was quicker
                next(iter(loader))
            hear(loader)
            got += self.steps(loader, 1)
            self.meet()
            return got

    def corrupted(self, way: corruptions.Way) -> list[str]:
        """Takes two batches, of which the odd process gets other bytes."""
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
            hear(loader)
            try:
                next(iter(loader))
            except mf.Error as e:
                return _described(e)
            finally:
                self.meet()
        return []

    def late(self) -> list[str]:
        told = Told()
        logging.getLogger("meshfeed").addHandler(told)
        with mf.from_arrays({"n": data()}) as ds, self.loader(ds, late_after=0.5) as loader:
            self.steps(loader, 1)
            others = [] if self.odd else [next(iter(loader))]
            if not self.odd:
                assert told.came.wait(60)
                (self.place.folder / f"told-{self.place.rank}").touch()
            while len(list(self.place.folder.glob("told-*"))) < 3:
                time.sleep(0.02)
            others += [next(iter(loader))] if self.odd else []
            got = self.steps(loader, 1)
        logging.getLogger("meshfeed").removeHandler(told)
        return [*told.texts[:1], *got]


class Told(logging.Handler):
    """Keeps only log records about the odd process.

    On a busy machine others may be late as well, or the odd one may not have answered yet.
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


def hear(loader: mf.Loader) -> None:
    """Waits until this process has received a failure."""
    peers = loader._engine.cursor._cluster.peers  # type: ignore[attr-defined]
    late = time.monotonic() + 60
    while peers._received is None and peers._own is None:
        assert time.monotonic() < late
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
