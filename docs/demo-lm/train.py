"""One process of the demo's training run. The program has no rank: meshfeed and JAX know it.

A save first writes the weights to a new file, named after the step. Then it replaces the loader's
state atomically. If the process is killed in between, the old state and its weights still exist.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import blocks
import jax
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", required=True)
    parser.add_argument("--processes", type=int, required=True)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--seq", type=int, required=True, help="the parts of a row")
    args = parser.parse_args()
    jax.distributed.initialize(
        args.address,
        num_processes=args.processes,
        process_id=args.rank,
        cluster_detection_method="deactivate",
    )
    train(args.folder, args.log, args.seq)
    jax.distributed.shutdown()


def train(folder: Path, log: Path, seq: int) -> None:
    """Trains from the last save, if there is one, to the last step."""
    mesh = mf.make_mesh({"data": -1, "seq": seq})
    state = folder / "state.json"
    loader = mf.Loader(
        mixture(packed(folder)),
        mesh,
        SPECS,
        batch_size=BATCH,
        epochs=-1,
        state=state if state.exists() else None,
    )
    step = loader.epoch * loader.steps_per_epoch + loader.step
    weights, moments = jax.device_put(restored(folder, step), NamedSharding(mesh, P()))
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
            if step % SAVE_EVERY == 0 and jax.process_index() == 0:
                np.savez(folder / f"weights-{step}.npz", *jax.tree.leaves((weights, moments)))
                loader.save_state(state)
            if step == STEPS:
                return
            asked = time.monotonic()


def restored(folder: Path, step: int) -> Any:
    """Returns weights and moments as they were after a step."""
    fresh = transformer.init()
    if step == 0:
        return fresh
    with np.load(folder / f"weights-{step}.npz") as saved:
        return jax.tree.unflatten(jax.tree.structure(fresh), list(saved.values()))


if __name__ == "__main__":
    main()
