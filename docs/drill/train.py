"""One process of the drill's training run. No step depends on the number of processes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import member
import numpy as np
from jax.sharding import PartitionSpec as P

import meshfeed as mf

BATCH = 48
SAVE_EVERY = 10  # steps
PACE = 0.05  # seconds, in place of the work of a real step


def main() -> None:
    parser = member.parser(__doc__)
    parser.add_argument("--steps", type=int, required=True, help="the last step")
    args = parser.parse_args()
    member.join(args, heartbeat_timeout_seconds=5)  # after which JAX notices a lost process
    train(args.folder, args.log, args.steps)
    jax.distributed.shutdown()


def train(folder: Path, log: Path, steps: int) -> None:
    """Trains up to step `steps`, from the last save if there is one."""
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    ds = mf.open(folder / "train.arrow")
    loader = mf.Loader(
        ds,
        mesh,
        P("data"),
        batch_size=BATCH,
        shuffle=True,
        seed=1,
        epochs=-1,
        extras=["record"],
        state=member.last_save(folder),
    )
    step, replicated = member.steps_done(loader), jax.sharding.NamedSharding(mesh, P())
    weights = member.restored(folder, loader, np.zeros(8, np.float32))
    params: Any = jax.device_put(weights, replicated)
    with log.open("w") as lines:
        for batch in loader:
            step += 1
            params, loss = update(params, batch)
            note(lines, step, batch["record"], float(loss))
            if step % SAVE_EVERY == 0:
                member.save(folder, loader, params)
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
