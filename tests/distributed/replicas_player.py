"""The program of a job of four processes that compare arrays, some of which are corrupted.

Devices of the processes 0 and 2 hold the same parts of arrays that are split over "fsdp", and so do
the devices of 1 and 3. The processes also load an array of a file. Each process writes its results,
by the name of the scene, to a file `got`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import meshfeed as mf
from meshfeed._jax.runtime import coordination_client
from tests.distributed.play import write
from tests.distributed.process import Place, joined

P = PartitionSpec
ODD = 2  # this process has corrupted arrays
SHORT = 4.0  # seconds to wait for a process that never calls; the others call at once

Array = np.ndarray[Any, Any]


def rows(seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=(16, 8)).astype(np.float32)


def trained(step: int) -> Array:
    """Returns weights after some steps."""
    return rows() * np.float32(0.5**step)


def kinds(error: Exception) -> str:
    """Returns the names of the error's class and of its bases."""
    return " ".join(kind.__name__ for kind in (type(error), *type(error).__bases__))


class Scenes:
    """The scenes. Each returns what this process compares."""

    def __init__(self, place: Place) -> None:
        self.odd = place.rank == ODD
        devices = np.array(jax.devices())
        self.mesh = Mesh(devices.reshape(2, 4), ("replica", "fsdp"))
        other = devices.reshape(2, 4)[::-1] if self.odd else devices.reshape(2, 4)
        self.reordered = Mesh(other, ("replica", "fsdp"))
        self.all: dict[str, Callable[[], Any]] = {
            "sharded": lambda: {"w": self.put(rows(), "fsdp"), "b": self.put(rows(), None, "fsdp")},
            "replicated": lambda: [self.put(rows(seed)) for seed in range(3)],
            "mixed": self.mixed,
            "unique": lambda: self.put(rows(), ("replica", "fsdp")),
            "one bit inside": partial(self.one_bit, jax.local_devices()[1:]),
            "a part of one process": self.part_of_one,
            "one bit everywhere": self.one_bit_everywhere,
            "one bit across": partial(self.one_bit, jax.local_devices()),
            "swapped batches": self.swapped,
            "a step ahead": lambda: {"w": self.put(trained(4 if self.odd else 3), "fsdp")},
            "permuted rows": self.permuted,
            "another dtype": lambda: {"w": self.put(rows().astype(self.dtype()))},
            "another shape": lambda: {"w": self.put(rows()[:8] if self.odd else rows())},
            "another spec": lambda: {"w": self.put(rows(), "replica" if self.odd else "fsdp")},
            "another mesh order": lambda: {"w": self.put(rows(), "fsdp", mesh=self.reordered)},
            "another kind": lambda: {"w": rows() if self.odd else self.put(rows())},
            "missing leaf": self.missing,
            "another seed": lambda: {"w": self.put(rows(seed=1 if self.odd else 0), "fsdp")},
            "a payload of NaN": self.payload,
            "truncated": self.truncated,
            "step counter": lambda: {"step": jnp.int32(8 if self.odd else 7)},
            "half": lambda: {"w": self.put(rows() + (jax.process_index() > 1))},
            "deleted": self.deleted,
            "on one process": lambda: {"v": self.first(1), "w": self.put(rows())},
        }
        self.wrong: dict[str, dict[str, Any]] = {
            "no data": {"tree": {"w": rows(), "name": "adam"}},
            "no order": {"tree": {"w": rows(), 1: 2}},
            "timeout": {"timeout": 0},
            "step": {"step": 0.5},
            "coordinator": {"coordinator": 3},
        }

    def put(self, data: Array, *spec: Any, mesh: Mesh | None = None) -> jax.Array:
        """Makes a global array of which this process holds its parts of `data`."""
        sharding = NamedSharding(mesh or self.mesh, P(*spec))
        return jax.make_array_from_callback(data.shape, sharding, lambda index: data[index])

    def first(self, processes: int) -> jax.Array:
        """Makes an array of which each device of the first processes has a copy."""
        mesh = Mesh(np.array(jax.devices()[: 2 * processes]), ("fsdp",))
        data, whole = rows(), NamedSharding(mesh, P())
        return jax.make_array_from_callback(
            data.shape, whole, lambda index: data[index], dtype=data.dtype
        )

    def mixed(self) -> Any:
        """Arrays of all kinds, as in the state of a training program."""
        keys = jax.random.split(jax.random.key(3), 4)
        whole = NamedSharding(self.mesh, P())
        bfloat = rows().astype(ml_dtypes.bfloat16)
        return {
            "params": {"w": self.put(rows(), "fsdp"), "b": self.put(bfloat)},
            "float8": self.put(rows().astype(ml_dtypes.float8_e4m3fn), None, "fsdp"),
            "int4": self.put(np.arange(8).astype(ml_dtypes.int4)),
            "nan": self.put(np.full(4, np.nan, np.float32)),
            "scalar": self.put(np.array(3, np.float32)),
            "empty": self.put(np.zeros((0, 3), np.float32)),
            "rng": jax.make_array_from_callback((4,), whole, lambda index: keys[index]),
            "local": (jnp.arange(3), np.arange(4), 5, np.float64(0.1), None),
        }

    def one_bit(self, devices: list[Any]) -> Any:
        """Flips a bit in the copies of these devices of the odd process."""
        return {"w": self.flipped(self.put(rows()), devices if self.odd else [])}

    def one_bit_everywhere(self) -> Any:
        """Flips the same bit in every process, so that all processes have the same content."""
        return {"w": self.flipped(self.put(rows()), jax.local_devices()[1:])}

    def part_of_one(self) -> Any:
        """Flips a bit in an array that has copies of its parts inside of one process only."""
        mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("fsdp", "replica"))
        array = self.put(rows(), "fsdp", mesh=mesh)
        return {"w": self.flipped(array, jax.local_devices()[1:] if self.odd else [])}

    def flipped(self, array: jax.Array, devices: list[Any]) -> jax.Array:
        """Flips a bit in the shards on some devices."""
        parts = []
        for shard in array.addressable_shards:
            copy = np.array(shard.data)
            if shard.device in devices:
                copy.view(np.uint8)[1, 3] ^= 4
            parts.append(jax.device_put(copy, shard.device))
        return jax.make_array_from_single_device_arrays(array.shape, array.sharding, parts)

    def swapped(self) -> Any:
        first, second = (1, 0) if self.odd else (0, 1)
        return [self.put(rows(seed), "fsdp") for seed in (first, second)]

    def permuted(self) -> Any:
        data = rows()
        if self.odd:
            data[[4, 6]] = data[[6, 4]]  # in the part of its second device
        return {"w": self.put(data, "fsdp")}

    def dtype(self) -> Any:
        return np.float16 if self.odd else np.float32

    def missing(self) -> Any:
        tree = {"w": self.put(rows()), "bias": self.put(rows()), "scale": self.put(rows())}
        if self.odd:
            del tree["bias"]
        return tree

    def payload(self) -> Any:
        data = np.full((4, 4), np.nan, np.float32)
        if self.odd:
            data.view(np.uint32)[1, 2] |= 1
        return {"loss": self.put(data, "fsdp")}

    def truncated(self) -> Any:
        data = rows()
        if self.odd:
            data[15, 2:] = 0
        return {"w": self.put(rows(1)), "x": self.put(data)}

    def deleted(self) -> Any:
        array = self.put(rows())
        if self.odd:
            array.delete()
        return {"w": array}

    def play(self, name: str) -> Any:
        """Compares the arrays of a scene."""
        return checked(self.all[name](), name="scene")

    def mistaken(self, name: str) -> Any:
        """The odd process gives a wrong argument, and then a right one."""
        tree = {"w": self.put(rows())}
        options = {"tree": tree, **(self.wrong[name] if self.odd else {})}
        return [checked(**options, name="scene"), checked(tree, name="scene")]

    def left_out_with_steps(self) -> Any:
        """The odd process leaves out the first of two calls."""
        step = 200 if self.odd else 100
        return checked({"w": self.put(trained(step), "fsdp")}, name="steps", step=step)

    def left_out(self) -> Any:
        """As before, but without step=. The calls are at different lines."""
        options: dict[str, Any] = {"name": "lines"}
        try:
            if not self.odd:
                mf.check_replicas(self.put(rows(), "fsdp"), **options)
            else:
                mf.check_replicas(self.put(rows(1), "fsdp"), **options)
        except mf.Error as e:
            return [kinds(e), str(e)]
        return None

    def left_out_of_a_loop(self) -> Any:
        """As before, but with a step in between that waits for the other processes."""
        step = jax.jit(lambda x: x + x.sum(), out_shardings=NamedSharding(self.mesh, P()))
        weights = self.put(rows(), "fsdp")
        step(weights).block_until_ready()  # compiled
        tree = {"w": step(weights) if self.odd else self.put(rows())}
        got = checked(tree, name="loop", timeout=SHORT)
        coordination_client().wait_at_barrier("test/loop", 60_000)
        if not self.odd:
            step(weights).block_until_ready()  # the odd process waits in the same step
        return got

    def on_some_processes(self) -> Any:
        """The last two processes hold no part, and call when the others have called three times."""
        client, first = coordination_client(), jax.process_index() < 2
        tree = {"w": self.first(2), "local": rows(self.odd)}
        got = [checked(tree, name="half") for _ in range(3 if first else 0)]
        client.wait_at_barrier("test/half", 60_000)
        return got or [checked(tree, name="half")]

    def never(self) -> Any:
        """The odd process calls after the others have given up."""
        tree = {"w": self.put(rows())}
        client = coordination_client()
        client.wait_at_barrier("test/never", 60_000)
        if self.odd:
            client.blocking_key_value_get("test/gave-up", 60_000)
        try:
            mf.check_replicas(tree, name="late", timeout=SHORT)
        except mf.PeerError as e:
            if not self.odd:
                client.key_value_set("test/gave-up", "yes", allow_overwrite=True)
            return [kinds(e), str(e), e.process]
        return None


def checked(tree: Any, **options: Any) -> Any:
    """Compares arrays. Returns the result, or the class and text of an error."""
    try:
        return dataclasses.asdict(mf.check_replicas(tree, **options))
    except (mf.Error, ValueError) as e:
        return [kinds(e), str(e)]


def loaded(place: Place, mesh: Mesh) -> dict[str, tuple[int, bool]]:
    """Loads an array of a file in several ways.

    Returns the bytes that were read for each, and whether the elements are right.
    """
    specs = [P("fsdp"), P("fsdp"), P(("replica", "fsdp")), P(None, "fsdp"), P()]
    found = {}
    with mf.open_arrays(place.folder / "w.safetensors") as stored:
        for spec in specs:  # the first one imports modules, which are read too
            before = read_bytes()
            array = mf.load_arrays(stored, {"w": NamedSharding(mesh, spec)})["w"]
            size, whole = read_bytes() - before, np.arange(2**20, dtype=np.int32).reshape(256, -1)
            shards = array.addressable_shards
            right = all(np.array_equal(shard.data, whole[shard.index]) for shard in shards)
            found[str(tuple(spec))] = size, right
    return found


def read_bytes() -> int:
    """Returns how many bytes this process has read by system calls."""
    return int(Path("/proc/self/io").read_text().split()[1])


def main() -> None:
    with joined() as place:
        scenes = Scenes(place)
        stored = loaded(place, scenes.mesh)
        got = {name: scenes.play(name) for name in scenes.all}
        got["wrong"] = {name: scenes.mistaken(name) for name in scenes.wrong}
        got["left out, with steps"] = scenes.left_out_with_steps()
        got["left out"] = scenes.left_out()
        got["left out of a loop"] = scenes.left_out_of_a_loop()
        got["on some processes"] = scenes.on_some_processes()
        got["never"] = scenes.never()
        got["alike again"] = scenes.play("replicated")
        client = coordination_client()
        client.wait_at_barrier("test/over", 60_000)
        got["calls"] = len(scenes.all) + 2 * len(scenes.wrong) + 1  # with the name "scene"
        got["keys"] = [key for key, _ in client.key_value_dir_get_bytes("meshfeed-replicas")]
        got["stored"] = stored
        write(place, "got", got)


if __name__ == "__main__":
    main()
