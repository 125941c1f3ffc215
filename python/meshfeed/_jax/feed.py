"""Batches of global arrays, for the loaders with a mesh."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding

from meshfeed._feed.feed import Build, Feed, Mark
from meshfeed._jax.meshes import partition_spec
from meshfeed._jax.placer import DevicePlacer, Placer
from meshfeed._jax.reshard import Move, resharder
from meshfeed._jax.runtime import check_untraced, is_profiling, program_flags
from meshfeed._layout.blocks import Blocks
from meshfeed._native.owner import Owner


class ShardedFeed(Feed):
    """Makes batches of global arrays.

    Args:
        build: builds the batch's tree from the arrays of the layout, in their order.
        blocks: for every array its blocks in the memory of a batch.
        mesh: the mesh.
        shardings: for every array the user's own sharding, or None.
        loading: "process", "global", "device" or "reshard", as in `Loader`.
    """

    def __init__(
        self,
        build: Build,
        blocks: Sequence[Blocks],
        mesh: Mesh,
        shardings: Sequence[NamedSharding | None],
        loading: str,
    ) -> None:
        kind = DevicePlacer if loading == "device" else Placer
        wanted = [
            sharding or NamedSharding(mesh, partition_spec(b.target))
            for b, sharding in zip(blocks, shardings, strict=True)
        ]
        self.build, self._mesh = build, mesh
        self._placers = [kind(b, sharding) for b, sharding in zip(blocks, wanted, strict=True)]
        self.element_spec = build([placer.struct() for placer in self._placers])
        # A CPU needs no transfer: JAX aliases the memory. So no batch is sent ahead. All devices of
        # a mesh have one platform.
        self.platform = str(mesh.devices.flat[0].platform)
        self.devices = sum(d.process_index == jax.process_index() for d in mesh.devices.flat)
        self.ahead = 0 if self.platform == "cpu" else 1
        moves = build([Move(sharding) for sharding in wanted]) if loading == "reshard" else None
        self._reshard = None if moves is None else resharder(moves)

    def make(self, owner: Owner) -> Any:
        """Makes a batch over the memory that its owner exports and keeps alive."""
        arrays = []
        for placer in self._placers:  # before Python 3.12 a list comprehension is one more call
            arrays.append(placer(owner))  # noqa: PERF401
        return self.build(arrays)

    def reshard(self, batch: Any) -> Any:
        """Moves the arrays of a batch to the sharding that the specs ask for."""
        return batch if self._reshard is None else self._reshard(batch)

    def marks(self) -> Mark | None:
        """Returns the annotations of JAX's profiler; None if it records no trace.

        Raises:
            InvalidStateError: JAX records a program, which would contain this batch as a constant.
        """
        check_untraced("mf.Loader")
        return jax.profiler.TraceAnnotation if is_profiling() else None

    def sent(self, batch: Any) -> set[int]:
        """Returns the arrays of a batch by `id`."""
        return {id(array) for array in jax.tree.leaves(batch)}

    def works(self, sent: Collection[int]) -> bool:
        """Returns whether an array is not ready that is not in `sent`: whether devices compute."""
        return any(not array.is_ready() and id(array) not in sent for array in jax.live_arrays())

    def settle(self) -> None:
        """Waits until the computations dispatched to the local devices of the mesh are over.

        A device runs its computations in the order of their dispatch. An empty computation is
        therefore over after all of them. It is polled, because Ctrl-C does not end a wait in JAX.
        """
        here = [d for d in self._mesh.devices.flat if d.process_index == jax.process_index()]
        with jax.transfer_guard_host_to_device("allow"):
            last = [jax.lax.bitwise_not(jax.device_put(np.uint8(0), device)) for device in here]
        while not all(array.is_ready() for array in last):  # type: ignore[attr-defined]
            time.sleep(0.001)

    def flags(self) -> Mapping[str, Any]:
        """Returns the options of JAX that change the programs of the devices."""
        return program_flags()

    def live(self) -> list[jax.Array]:
        """Returns the arrays that the program still uses, finished or not."""
        arrays: list[jax.Array] = jax.live_arrays()
        return arrays
