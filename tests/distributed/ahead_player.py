"""A process of a job in which some processes have taken more batches than the others.

Each scene is a loop with a collective in its step. The file `ahead` gets, for every scene, the
number of steps and the text of the error that ended them.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import meshfeed as mf
from meshfeed._jobs import skew
from tests.distributed.play import write
from tests.distributed.process import Place, joined

BATCH, STEPS = 8, 400
P = PartitionSpec


@dataclass(frozen=True)
class Scene:
    """A loop in which some processes take more batches.

    Attributes:
        mesh: the shape of the mesh.
        odd: the processes that take more batches.
        more: how many more.
        before: the step before which they take them.
        blocks: whether the program waits for the result of every step.
        verify: the loader's `verify_replicas`.
        again: whether they take them with a new iterator.
        passes: whether all take three batches of a pass there, and these processes more.
        queue: whether another thread takes the batches, and puts them into a queue.
    """

    mesh: tuple[int, ...] = (4,)
    odd: tuple[int, ...] = ()
    more: int = 1
    before: int = 0
    blocks: bool = False
    verify: str = "first"
    again: bool = False
    passes: bool = False
    queue: bool = False


SCENES = {
    "alike": Scene(),
    "ahead": Scene(odd=(0,)),
    "ahead with replicas": Scene(mesh=(2, 2), odd=(0,), verify="always"),
    "a loop of its own": Scene(odd=(1,), again=True, blocks=True),
    "behind": Scene(odd=(0, 1, 3), more=3, before=5, verify="always"),
    "later": Scene(odd=(3,), before=100, blocks=True),
    "a longer pass": Scene(odd=(1,), more=2, before=5, passes=True),
    "alike, by queues": Scene(queue=True, blocks=True),
    "lost in a queue": Scene(odd=(1,), before=20, blocks=True, queue=True),
    "lost in a queue, always": Scene(odd=(3,), before=20, queue=True, verify="always"),
}


def step_on(mesh: Mesh) -> Callable[[Any, Any], Any]:
    """Returns a step with a collective: the sum over the global batch."""

    @jax.jit
    def step(total: Any, batch: Any) -> Any:
        total = total + batch["n"].sum()
        return jax.lax.with_sharding_constraint(total, NamedSharding(mesh, P()))

    return step


def ahead(loader: mf.Loader) -> Iterator[Any]:
    """Yields the batches, or the error, that a thread has taken."""
    batches: queue.Queue[Any] = queue.Queue(4)

    def take() -> None:
        try:
            for batch in loader:
                batches.put(batch)
        except mf.Error as e:
            batches.put(e)

    thread = threading.Thread(target=take)
    thread.start()
    try:
        while not isinstance(taken := batches.get(), mf.Error):
            yield taken
        raise taken
    finally:
        loader.close()
        while thread.is_alive():
            with contextlib.suppress(queue.Empty):
                batches.get(timeout=0.01)


def play(place: Place, scene: Scene) -> tuple[int, str]:
    axes = ("data", "model")[: len(scene.mesh)]
    mesh = Mesh(np.array(jax.devices()).reshape(scene.mesh), axes)
    step = step_on(mesh)
    total: Any = jax.device_put(jnp.float32(0), NamedSharding(mesh, P()))
    options: dict[str, Any] = {"batch_size": BATCH, "epochs": 1, "verify_replicas": scene.verify}
    taken = 0
    with (
        mf.from_arrays({"n": np.arange(2 * BATCH * STEPS, dtype=np.int32)}) as ds,
        mf.Loader(ds, mesh, {"n": P("data")}, **options) as loader,
    ):
        loop = ahead(loader) if scene.queue else iter(loader)
        try:
            while taken < STEPS:
                if taken == scene.before and scene.passes:
                    n = 3 + scene.more * (place.rank in scene.odd)
                    for batch in itertools.islice(loader.one_epoch(), n):
                        total = step(total, batch)
                elif taken == scene.before and place.rank in scene.odd:
                    for _ in range(scene.more):
                        next(iter(loader) if scene.again else loop)
                total = step(total, next(loop))
                taken += 1
                if scene.blocks:
                    total.block_until_ready()
        except mf.IncompatibleError as e:
            return taken, str(e)
        finally:
            total.block_until_ready()
    return taken, ""


if __name__ == "__main__":
    skew.SECONDS = 0.02  # so that barriers come every hundred steps
    skew.PATIENT = 0.2  # so that a stop takes less time
    with joined() as place:
        write(place, "ahead", {name: play(place, scene) for name, scene in SCENES.items()})
