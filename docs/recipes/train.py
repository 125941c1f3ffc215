"""Trains a small model in every process of a job. The recipes in this folder start it.

    python train.py DATA SAVED

DATA is a glob of Arrow files, SAVED a folder for checkpoints of the weights and the loader's state.
All hosts need both. The program contains no rank, and continues from the last checkpoint in SAVED.
If a process gets a SIGTERM, all processes save after the same step and end with the status 75.
"""

import os
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf

STOPPED = 75  # EX_TEMPFAIL: start me again

data, saved = sys.argv[1], Path(sys.argv[2]).absolute()
given = {}
if "PROCESSES" in os.environ:  # set by jobset.yaml; JAX finds the numbers of Slurm and TPUs itself
    given["num_processes"] = int(os.environ["PROCESSES"])
    given["process_id"] = int(os.environ["JOB_COMPLETION_INDEX"])
jax.config.update("jax_enable_preemption_service", True)
jax.distributed.initialize(**given)

mesh = mf.make_mesh({"data": -1})  # all devices of all processes
dataset = mf.open(data)
shape = dataset.schema["x"].shape
weights = {"w": jax.device_put(jnp.zeros(shape), NamedSharding(mesh, P()))}
state = None
manager = ocp.CheckpointManager(saved, options=ocp.CheckpointManagerOptions(max_to_keep=2))
if (last := manager.latest_step()) is not None:
    restore = {"weights": ocp.args.StandardRestore(weights), "state": ocp.args.JsonRestore()}
    found = manager.restore(last, args=ocp.args.Composite(**restore))
    weights, state = found.weights, found.state


@jax.jit
def train(weights, batch):
    def loss(weights):
        return jnp.mean((batch["x"] @ weights["w"] - batch["y"]) ** 2)

    value, slope = jax.value_and_grad(loss)(weights)
    return jax.tree.map(lambda w, s: w - 0.01 * s, weights, slope), value


def save():
    """Saves weights and state in one checkpoint, which appears complete or not at all."""
    save = {"weights": ocp.args.StandardSave(weights), "state": ocp.args.JsonSave(loader.state())}
    manager.save(steps(), args=ocp.args.Composite(**save))


def steps():
    """Returns the number of steps so far, in all epochs."""
    return loader.epoch * loader.steps_per_epoch + loader.step


stopped, loss = False, float("nan")  # if the last checkpoint is from the end, no step is left
with (
    manager,
    mf.Loader(
        dataset, mesh, P("data"), batch_size=8 * mesh.size, shuffle=True, epochs=4, state=state
    ) as loader,
):
    for batch in loader:
        weights, loss = train(weights, batch)
        stopped = multihost_utils.reached_preemption_sync_point(steps())
        if stopped or steps() % 100 == 0:
            save()
        if stopped:
            break
    else:
        save()
    here = f"process {jax.process_index()} of {jax.process_count()}"
    print(f"{here}: step {steps()}, loss {loss:.3f}")

if stopped:
    sys.exit(STOPPED)
