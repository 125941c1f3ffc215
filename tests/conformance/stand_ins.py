"""Stand-ins for the devices of processes that are not there."""

from __future__ import annotations


class Process:
    """What JAX asks of a device's client: which process this is."""

    platform = "cpu"
    runtime_type = "stand-in"

    def __init__(self, process: int) -> None:
        self.process = process

    def process_index(self) -> int:
        return self.process


class Memory:
    kind = "device"


class Device:
    """A device of some process, as JAX's own mesh tests imitate them."""

    platform = "cpu"
    device_kind = "stand-in"

    def __init__(self, process: int, number: int, me: Process) -> None:
        self.process_index, self.id, self.client = process, number, me

    def default_memory(self) -> Memory:
        return Memory()

    def addressable_memories(self) -> list[Memory]:
        return [Memory()]

    def memory(self, kind: str) -> Memory:
        return Memory()
