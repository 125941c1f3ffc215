"""Stand-ins for the devices of processes that do not exist."""

from __future__ import annotations


class Process:
    """The part of a device's client that JAX uses: the number of this process."""

    platform = "cpu"
    runtime_type = "stand-in"

    def __init__(self, process: int) -> None:
        self.process = process

    def process_index(self) -> int:
        return self.process


class Memory:
    kind = "device"


class Device:
    """A device of a process, imitated as in JAX's own mesh tests."""

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
