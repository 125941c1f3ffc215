"""Trains a small model in every process of a job. The recipes in this folder start it.

    python train.py DATA SAVED

DATA is a glob of Arrow files, SAVED a file for the weights and the loader's state. All hosts need
both. The program contains no rank, and continues from SAVED if that exists. If a process gets a
SIGTERM, all processes save after the same step and end with the status 75.
"""

import json
import os
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf

STOPPED = 75  # EX_TEMPFAIL: start me again

data, saved = sys.argv[1], Path(sys.argv[2])
given = {}
if "PROCESSES" in os.environ:  # set by jobset.yaml; JAX finds the numbers of Slurm and TPUs itself
    given["num_processes"] = int(os.environ["PROCESSES"])
    given["process_id"] = int(os.environ["JOB_COMPLETION_INDEX"])
jax.config.update("jax_enable_preemption_service", True)
jax.distributed.initialize(**given)

mesh = mf.make_mesh({"data": -1})  # all devices of all processes
dataset = mf.open(data)
weights, state = np.zeros(dataset.schema["x"].shape, np.float32), None
if saved.exists():
    with np.load(saved) as file:
        weights, state = file["weights"], json.loads(str(file["state"]))
w = jax.make_array_from_callback(weights.shape, NamedSharding(mesh, P()), weights.__getitem__)


@jax.jit
def train(w, batch):
    def loss(w):
        return jnp.mean((batch["x"] @ w - batch["y"]) ** 2)

    value, slope = jax.value_and_grad(loss)(w)
    return w - 0.01 * slope, value


def save():
    """Process 0 writes weights and state into one file, which appears complete or not at all."""
    host = np.asarray(w)
    if jax.process_index() == 0:
        part = saved.with_suffix(".part.npz")
        np.savez(part, weights=host, state=json.dumps(loader.state()))
        part.replace(saved)


def steps():
    """Returns the number of steps so far, in all epochs."""
    return loader.epoch * loader.steps_per_epoch + loader.step


stopped, loss = False, float("nan")  # if SAVED is from the end, no step is left
with mf.Loader(
    dataset, mesh, P("data"), batch_size=8 * mesh.size, shuffle=True, epochs=4, state=state
) as loader:
    for batch in loader:
        w, loss = train(w, batch)
        if steps() % 100 == 0:
            save()
        stopped = multihost_utils.reached_preemption_sync_point(steps())
        if stopped:
            break
    save()
    here = f"process {jax.process_index()} of {jax.process_count()}"
    print(f"{here}: step {steps()}, loss {loss:.3f}")

if stopped:
    sys.exit(STOPPED)
