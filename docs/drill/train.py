"""One process of the drill's training run. No step depends on the number of processes.

A save first writes the weights to a new file, named after the step. Then it replaces the loader's
state atomically. If the process is killed in between, the old state and its weights still exist.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

import meshfeed as mf

BATCH = 48
SAVE_EVERY = 10  # steps
PACE = 0.05  # seconds, in place of the work of a real step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", required=True)
    parser.add_argument("--processes", type=int, required=True)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--steps", type=int, required=True, help="the last step")
    parser.add_argument("--log", type=Path, required=True)
    args = parser.parse_args()
    jax.distributed.initialize(
        args.address,
        num_processes=args.processes,
        process_id=args.rank,
        cluster_detection_method="deactivate",
        heartbeat_timeout_seconds=5,  # after which JAX notices a lost process
    )
    train(args.folder, args.log, args.steps)
    jax.distributed.shutdown()


def train(folder: Path, log: Path, steps: int) -> None:
    """Trains up to step `steps`, from the last save if there is one."""
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    ds = mf.open(folder / "train.arrow")
    state = folder / "state.json"
    loader = mf.Loader(
        ds,
        mesh,
        P("data"),
        batch_size=BATCH,
        shuffle=True,
        seed=1,
        epochs=-1,
        extras=["record"],
        state=state if state.exists() else None,
    )
    step = loader.epoch * loader.steps_per_epoch + loader.step
    weights = np.load(folder / f"weights-{step}.npy") if step else np.zeros(8, np.float32)
    params: Any = jax.device_put(weights, jax.sharding.NamedSharding(mesh, P()))
    with log.open("w") as lines:
        for batch in loader:
            step += 1
            params, loss = update(params, batch)
            note(lines, step, batch["record"], float(loss))
            if step % SAVE_EVERY == 0 and jax.process_index() == 0:
                np.save(folder / f"weights-{step}.npy", params)
                loader.save_state(state)
            if step == steps:
                return
            time.sleep(PACE)


@jax.jit
def update(params: jax.Array, batch: dict[str, jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Computes one step of linear regression; the mean is over the global batch."""

    def loss(w: jax.Array) -> jax.Array:
        return jnp.mean((batch["x"] @ w - batch["y"]) ** 2)

    value, slope = jax.value_and_grad(loss)(params)
    return params - 0.05 * slope, value


def note(lines: Any, step: int, record: jax.Array, loss: float) -> None:
    """Logs which rows of the batch this process read, and their records."""
    rows = {
        shard.index[0].start or 0: np.asarray(shard.data) for shard in record.addressable_shards
    }
    read = {start: data[:, 0].tolist() for start, data in rows.items()}
    lines.write(json.dumps({"step": step, "loss": loss, "read": read}) + "\n")
    lines.flush()


if __name__ == "__main__":
    main()
