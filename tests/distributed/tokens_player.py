"""A process that loads rows of views, split by rows and along their first dimension.

`folder/orders.json` names a module that opens the data, their folder, the number of steps, and a
state to resume from.
The process writes what its devices got to `folder/got-rank.npz`, and its certificate to
`folder/certificate-rank.json`. `tests.distributed.test_tokens` checks them.
"""

from __future__ import annotations

import importlib
import json
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from tests.distributed.process import joined


def main() -> None:
    with joined() as place:
        orders = json.loads((place.folder / "orders.json").read_text())
        rows = importlib.import_module(orders["module"])
        mesh = mf.make_mesh({"data": -1, "seq": orders["seq"]})
        with (
            rows.opened(Path(orders["data"])) as ds,
            mf.Loader(
                ds,
                mesh,
                {
                    name: P("data") if not field.shape else P("data", "seq")
                    for name, field in ds.schema.items()
                },
                batch_size=rows.BATCH,
                epochs=1,
                state=orders["state"],
            ) as loader,
        ):
            blocks: dict[str, Any] = {}
            first = loader.step
            for step, batch in enumerate(islice(loader, orders["steps"]), first):
                for name, array in batch.items():
                    for shard in array.addressable_shards:
                        at = [
                            i.indices(n)[:2] for i, n in zip(shard.index, array.shape, strict=True)
                        ]
                        key = json.dumps([step, name, at, array.shape])
                        blocks[key] = np.asarray(shard.data)
            np.savez(place.folder / f"got-{place.rank}.npz", **blocks)
            certificate = loader.certificate().to_json()
            (place.folder / f"certificate-{place.rank}.json").write_text(certificate)
            loader.save_state(place.folder / "state.json")


if __name__ == "__main__":
    main()
