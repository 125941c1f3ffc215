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
import network
import pieces
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf

SPECS = {"image": P("data", "model"), "label": P("data")}  # the rows of an image over "model"


def main() -> None:
    parser = member.parser(__doc__)
    parser.add_argument("--model", type=int, required=True, help="the parts of an image")
    parser.add_argument("--until", type=int, required=True, help="the step to stop after")
    args = parser.parse_args()
    member.join(args)
    train(args.folder, args.log, args.model, args.until)
    jax.distributed.shutdown()


def train(folder: Path, log: Path, model: int, until: int) -> None:
    """Trains from the last save, if there is one, saves, and counts what the test recognizes."""
    mesh = mf.make_mesh({"data": -1, "model": model})
    loader = mf.Loader(
        pieces.training(folder),
        mesh,
        SPECS,
        batch_size=pieces.BATCH,
        shuffle=True,
        seed=0,
        epochs=-1,
        extras=["key"],
        state=member.last_save(folder),
    )
    step, replicated = member.steps_done(loader), NamedSharding(mesh, P())
    trees = jax.device_put(member.restored(folder, loader, network.init()), replicated)
    with loader, log.open("w") as lines, jax.set_mesh(mesh):
        asked = time.monotonic()
        for batch in loader:
            got = time.monotonic()
            step += 1
            *trees, loss = network.train_step(*trees, step, batch)
            line = {"step": step, "loss": float(loss)}
            line |= {"wait": got - asked, "compute": time.monotonic() - got}
            line["blocks"] = blocks.held(batch)
            if step == until:
                member.save(folder, loader, tuple(trees))
                line["right"] = evaluate(folder, mesh, trees[0])
            lines.write(json.dumps(line) + "\n")
            lines.flush()
            if step == until:
                return
            asked = time.monotonic()


def evaluate(folder: Path, mesh: Mesh, weights: network.Tree) -> int:
    """Returns how many pieces of the test were recognized."""
    found = 0
    options = {"batch_size": pieces.BATCH, "remainder": "pad"}
    with mf.Loader(pieces.testing(folder), mesh, SPECS, **options) as loader:
        for batch in loader.one_epoch():
            found += int(network.right(weights, batch))
    return found


if __name__ == "__main__":
    main()
