"""A process of two: program 0 fails after a batch while program 1 waits in a collective with it.

It fails in a call of `mf.check_replicas` that program 1 does not make. Neither has its loader in a
`with` block. So only the interpreter's exit, which keeps the uncaught exception, can report it.
"""

from __future__ import annotations

import time
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, PartitionSpec

import meshfeed as mf
from meshfeed._jobs import peers
from tests.distributed.process import Place, joined


def play(place: Place) -> None:
    peers.PATIENCE["end"] = 0.5
    ds = mf.from_arrays({"n": np.arange(64, dtype=np.int32)})
    mesh = Mesh(np.array(jax.devices()), ("data",))
    options: dict[str, Any] = {"name": "train"}
    taken = place.folder / "taken"
    loop = iter(mf.Loader(ds, mesh, PartitionSpec("data"), batch_size=8, **options))
    next(loop)
    if place.rank == 1:
        next(loop)
        taken.touch()
        multihost_utils.sync_global_devices("never")
    while not taken.exists():
        time.sleep(0.02)
    fail()


def fail() -> None:
    mf.check_replicas(np.zeros(1), name="weights", timeout=0.5)


if __name__ == "__main__":
    with joined() as place:
        play(place)
