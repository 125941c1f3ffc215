"""A process of a job that takes steps with a collective until process 2 is lost.

The environment says whether process 2 is killed after some steps, or leaves in order: from the
step that the others are in, or before it.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import meshfeed as mf
from meshfeed._jobs import peers
from tests.distributed.process import Place, joined

ODD, STEPS = 2, 5  # the process that is lost, and the steps before
P = PartitionSpec


def play(place: Place, how: str) -> None:
    logging.basicConfig(format="%(asctime)s %(message)s")
    peers.PATIENCE["end"] = 2.0
    mesh = Mesh(np.array(jax.devices()), ("data",))
    total: Any = jax.device_put(jnp.float32(0), NamedSharding(mesh, P()))
    step = jax.jit(lambda total, batch: total + batch["n"].sum())
    ds = mf.from_arrays({"n": np.arange(9000, dtype=np.int32)})
    with mf.Loader(ds, mesh, {"n": P("data")}, batch_size=9, name="train") as loader:
        for taken, batch in enumerate(loader):
            if taken == STEPS + (how == "exits") and place.rank != ODD:
                (place.folder / f"taken-{place.rank}").touch()
            if taken == STEPS and place.rank == ODD:
                if how == "exits":
                    step(total, batch).block_until_ready()
                while len(list(place.folder.glob("taken-*"))) < place.processes - 1:
                    time.sleep(0.02)
                (place.folder / "gone").write_text(str(time.time()))
                if how == "dies":
                    os._exit(9)
                if how == "leaves":
                    break
                sys.exit(0)
            total = step(total, batch)
            total.block_until_ready()
    time.sleep(3600)  # as a program that has other work to do


if __name__ == "__main__":
    with joined() as place:
        try:
            play(place, os.environ["MESHFEED_LOST"])
        except BaseException as e:
            print(f"{time.time():.2f} {type(e).__name__}: {e}", flush=True)
            if place.rank != ODD and os.environ["MESHFEED_LOST"] == "leaves":
                time.sleep(3600)  # the job ends with the test
            raise
