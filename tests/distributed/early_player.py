"""A process of a job of two that differs before the first batch: `MESHFEED_EARLY` says how."""

from __future__ import annotations

import os

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import meshfeed as mf
from tests.distributed.process import Place, joined

NEVER = 3600.0  # seconds; the test ends the job long before


def play(place: Place, how: str) -> None:
    mesh = Mesh(np.array(jax.devices()), ("data",))  # every process has to be there
    if place.rank == 1 and how == "fails":
        mf.open(str(place.folder / "missing.arrow"))
    if place.rank == 1 and how == "x64":
        jax.config.update("jax_enable_x64", True)
    ds = mf.from_arrays({"n": np.arange(8, dtype="i4")})
    with mf.Loader(ds, mesh, PartitionSpec("data"), batch_size=4, agree_timeout=NEVER) as loader:
        try:
            next(iter(loader))
        except mf.Error as e:
            print(f"{type(e).__mro__[1].__name__} {getattr(e, 'process', None)}: {e}", flush=True)


def check() -> None:
    """Compares an array that both processes hold."""
    mesh = Mesh(np.array(jax.devices()), ("data",))
    copies = NamedSharding(mesh, PartitionSpec())
    weights = jax.make_array_from_callback((4,), copies, np.zeros(4).__getitem__)
    try:
        mf.check_replicas({"w": weights}, timeout=NEVER)
    except mf.PeerError as e:
        print(f"check {e.process}: {e}", flush=True)


if __name__ == "__main__":
    with joined() as place:
        play(place, os.environ["MESHFEED_EARLY"])
        if os.environ["MESHFEED_EARLY"] == "fails":
            check()
            os._exit(0)  # JAX would wait for process 1
