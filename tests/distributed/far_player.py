"""Two processes that read files of a web server, which differ, change and move."""

from __future__ import annotations

import json
import os
import time
import urllib.request
from typing import Any

import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

import meshfeed as mf
from tests.distributed.process import joined

FILES, ROWS, BATCH = 24, 200, 100
WAIT = 60.0  # seconds for the other process


def sent(url: str) -> int:
    """Returns the bytes of files that the server has sent."""
    with urllib.request.urlopen(f"{url}/sent") as answer:
        return int(answer.read())


def main() -> None:
    with joined() as place:
        url, told = os.environ["MESHFEED_URL"], dict[str, Any]()
        mesh = mf.make_mesh({"data": -1})

        def meet(name: str) -> None:
            """Waits until both processes have come here."""
            (place.folder / f"{name}-{place.rank}").touch()
            late = time.monotonic() + WAIT
            while not (place.folder / f"{name}-{1 - place.rank}").exists():
                assert time.monotonic() < late, f"the other process has not come to {name}"
                time.sleep(0.01)

        def run(name: str, ds: mf.Dataset) -> None:
            """Loads until an error, and notes it."""
            batches = 0
            try:
                with ds, mf.Loader(ds, mesh, mf.P("data"), batch_size=BATCH, name=name) as loader:
                    for _ in loader:
                        batches += 1
                told[name] = [batches, "", ""]
            except mf.Error as e:
                told[name] = [batches, type(e).__name__, str(e)]
            meet(f"after {name}")

        with mf.open_arrays("hf://org/name/data/w.npy") as stored:
            told["model"] = float(mf.load_array(stored, "w", NamedSharding(mesh, PartitionSpec())))
        hub = mf.open("hf://datasets/org/name/data")
        with mf.open("hf://datasets/org/name/data/000.parquet") as again:
            assert repr(again).splitlines()[-1] == repr(hub).splitlines()[-1]
        told["commit"] = repr(hub).splitlines()[-1]
        run("hub", hub)
        run("versions", mf.open(f"{url}/{place.rank}/{{000..002}}.parquet"))
        run("files", mf.open(f"{url}/0/{{000..{2 + place.rank:03}}}.parquet"))
        meet("weights")
        before = sent(url)
        meet("count")
        with mf.open_arrays(f"{url}/weights.npy") as stored:
            mine = mf.load_array(stored, "weights", NamedSharding(mesh, PartitionSpec("data")))
            told["weights"] = [
                int(np.sum(np.asarray(shard.data), dtype=np.int64))
                for shard in mine.addressable_shards
            ]
        meet("loaded")
        told["sent"] = sent(url) - before
        ds = mf.open(f"{url}/0/{{000..{FILES - 1:03}}}.parquet", cache="memory")
        meet("opened")
        if place.rank == 0:
            urllib.request.urlopen(f"{url}/change").close()
        meet("changed")
        run("changed", ds)
        (place.folder / f"told-{place.rank}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main()
