"""One process of the demo's training run. The program has no rank: meshfeed and JAX know it."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "drill"))

import blocks
import jax
import member
import numpy as np
import transformer
from corpus import BATCH, STEPS, mixture, packed
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf

SAVE_EVERY = 20  # steps
SPECS = dict.fromkeys(("tokens", "segment_ids", "positions", "labels"), P("data", "seq"))
SPECS["source"] = P("data")


def main() -> None:
    parser = member.parser(__doc__)
    parser.add_argument("--seq", type=int, required=True, help="the parts of a row")
    args = parser.parse_args()
    member.join(args)
    train(args.folder, args.log, args.seq)
    jax.distributed.shutdown()


def train(folder: Path, log: Path, seq: int) -> None:
    """Trains from the last save, if there is one, to the last step."""
    mesh = mf.make_mesh({"data": -1, "seq": seq})
    sources = mixture(packed(folder))
    options = {"batch_size": BATCH, "epochs": -1, "state": member.last_save(folder)}
    loader = mf.Loader(sources, mesh, SPECS, **options)
    step, replicated = member.steps_done(loader), NamedSharding(mesh, P())
    fresh = transformer.init()
    weights, moments = jax.device_put(member.restored(folder, loader, fresh), replicated)
    with loader, log.open("w") as lines, jax.set_mesh(mesh):
        asked = time.monotonic()
        for batch in loader:
            got = time.monotonic()
            step += 1
            weights, moments, parts = transformer.train_step(weights, moments, step, batch)
            sums, labels = np.asarray(parts).tolist()
            computed = time.monotonic()
            line = {"step": step, "wait": got - asked, "compute": computed - got}
            line |= {"losses": sums, "labels": labels, "blocks": blocks.held(batch)}
            lines.write(json.dumps(line) + "\n")
            lines.flush()
            if step % SAVE_EVERY == 0:
                member.save(folder, loader, (weights, moments))
            if step == STEPS:
                return
            asked = time.monotonic()


if __name__ == "__main__":
    main()
