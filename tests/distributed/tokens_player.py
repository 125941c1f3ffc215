"""A process that loads packed and mixed rows, split by rows and along the sequence.

`folder/orders.json` names the folder of the data, the number of steps, and a state to resume from.
The process writes what its devices got to `folder/got-rank.npz`, and its certificate to
`folder/certificate-rank.json`. `tests.distributed.test_tokens` checks them.
"""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from tests.distributed import tokens
from tests.distributed.process import joined


def main() -> None:
    with joined() as place:
        orders = json.loads((place.folder / "orders.json").read_text())
        mesh = mf.make_mesh({"data": -1, "seq": orders["seq"]})
        with (
            tokens.opened(Path(orders["data"])) as ds,
            mf.Loader(
                ds,
                mesh,
                {name: P("data") if name == "source" else P("data", "seq") for name in ds.schema},
                batch_size=tokens.BATCH,
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
                        blocks[json.dumps([step, name, at])] = np.asarray(shard.data)
            np.savez(place.folder / f"got-{place.rank}.npz", **blocks)
            certificate = loader.certificate().to_json()
            (place.folder / f"certificate-{place.rank}.json").write_text(certificate)
            loader.save_state(place.folder / "state.json")


if __name__ == "__main__":
    main()
