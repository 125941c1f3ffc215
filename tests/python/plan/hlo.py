"""Reads the collectives of a compiled program out of its HLO text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

OPS = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute|collective-broadcast"
LINE = re.compile(rf"= (?P<type>.*?) (?P<op>(?:ragged-)?(?:{OPS}))(?P<start>-start)?\(")
ARRAY = re.compile(r"([a-z]+\d*[a-z0-9]*)\[([\d,]*)\]")
BITS = {"pred": 8, "bf16": 16}


CHANNEL = re.compile(r"channel_id=(\d+)")


@dataclass(frozen=True)
class Collective:
    """An operation: its name, the bytes of its results, and its groups of mesh positions.

    For a reduce-scatter, the bytes count the whole sum.
    """

    op: str
    bytes: int
    groups: frozenset[frozenset[int]]


def collectives(text: str, devices: int) -> list[Collective]:
    """Lists the collectives of a program. It takes the start of an asynchronous pair.

    XLA for TPUs divides a collective into the operations that run beside it, and repeats it in
    each of them. All have the same channel.
    """
    found: dict[str, Collective] = {}
    for line, c in read(text, devices):
        channel = CHANNEL.search(line)
        found.setdefault(f"{c.op} {channel[1] if channel else len(found)}", c)
    return list(found.values())


def read(text: str, devices: int) -> Iterator[tuple[str, Collective]]:
    scattered = False  # inside a function that cuts a sum, which is a reduce-scatter of TPUs
    for line in text.splitlines():
        if line.endswith("{"):
            scattered = line.startswith("%all-reduce-scatter")
        if found := LINE.search(line):
            arrays = [size(*a) for a in ARRAY.findall(found["type"])]
            if found["start"] and found["op"] != "all-reduce":
                # The type of such a start is (operands, results), then contexts.
                arrays = [size(*a) for a in ARRAY.findall(results(found["type"]))]
            yield (
                line,
                Collective(
                    "reduce-scatter" if scattered else found["op"],
                    sum(arrays),
                    groups(line, devices),
                ),
            )


def results(start: str) -> str:
    """Returns the second element of a tuple type, which may be a tuple itself."""
    depth, parts = 0, [""]
    for c in re.sub(r"\{[^}]*\}", "", start)[1:-1]:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(c, 0)
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts[1]


def size(dtype: str, shape: str) -> int:
    bits = BITS.get(dtype) or int(re.sub(r"^[a-z]+(\d+).*$", r"\1", dtype))
    return int(np.prod([int(n) for n in shape.split(",") if n], dtype=int)) * bits // 8


def groups(line: str, devices: int) -> frozenset[frozenset[int]]:
    """Reads the groups in any of the spellings that XLA prints. Without any, it is one group."""
    if found := re.search(r"replica_groups=\{(\{[\d,{}]*\})\}", line):
        rows = [[int(n) for n in row.split(",")] for row in re.findall(r"\{([\d,]+)\}", found[1])]
        return frozenset(map(frozenset, rows))
    if found := re.search(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", line):
        table = np.arange(devices).reshape(numbers(found[2]))
        if found[3]:
            table = table.transpose(numbers(found[3]))
        return frozenset(map(frozenset, table.reshape(numbers(found[1])).tolist()))
    if found := re.search(r"replica_groups=mesh\[(.*?)\] \{(.*?)\}", line):
        axes = [(n, int(s)) for n, s in re.findall(r"'([^']*)'=(\d+)", found[1])]
        return over(axes, re.findall(r"'([^']*)'", found[2]))
    return frozenset([frozenset(range(devices))])


def over(axes: list[tuple[str, int]], names: list[str]) -> frozenset[frozenset[int]]:
    """Returns the groups of a collective over some axes of a mesh."""
    sizes = [n for _, n in axes]
    table = np.arange(np.prod(sizes, dtype=int)).reshape(sizes)
    inside = [i for i, (name, _) in enumerate(axes) if name in names]
    table = np.moveaxis(table, inside, range(-len(inside), 0)) if inside else table[..., None]
    rows = table.reshape(-1, int(np.prod([sizes[i] for i in inside], dtype=int)))
    return frozenset(map(frozenset, rows.tolist()))


def numbers(text: str) -> list[int]:
    return [int(n) for n in text.split(",")]
