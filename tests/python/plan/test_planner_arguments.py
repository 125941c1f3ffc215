"""Every argument of the planner's functions, with values of every kind that users have at hand."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

import meshfeed as mf
from meshfeed import strategy


class Rude:
    """An object with attributes that cannot be read."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")


class Silent:
    """An object without a text."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


def itself(times: int) -> list[Any]:
    out: list[Any] = []
    out.extend([out] * times)
    return out


def deep() -> list[Any]:
    out: list[Any] = []
    for _ in range(5000):
        out = [out]
    return out


MESH = jax.make_mesh((8,), ("data",))
ABSTRACT = AbstractMesh((8,), ("data",))
SPEC = PartitionSpec("data")
STRUCT = jax.ShapeDtypeStruct((8, 16), "float32")
LAYOUT = mf.layout({"data": 8}, mf.P("data"), {"x": ("float32", (4,))}, batch_size=8)
SIZES: dict[str, Any] = {
    "layers": 2, "hidden": 64, "heads": 4, "ffn": 128, "vocab": 100, "sequence": 16,
}  # fmt: skip
MODEL = strategy.transformer(**SIZES)
TRAINING = strategy.training(batch=8)
CLUSTER = strategy.cluster("h100-80", devices=8)
three: Any = 3
ADVICE = mf.advise(MODEL, TRAINING, CLUSTER)

VALUES: dict[str, Any] = {
    "none": None, "true": True, "minus": -1, "zero": 0, "one": 1, "half": 2.5, "whole": 2.0,
    "huge": 1e300, "nan": float("nan"), "infinite": float("inf"), "long": 10**5000, "i64": 2**63,
    "empty": "", "text": "x", "nul": "a\0b", "surrogate": "\ud800", "bytes": b"x",
    "wide": "é" * 999, "list": [], "nones": [None], "ints": [1, 2], "texts": ["data"],
    "tuple": (), "floats": (0.5, 0.1), "dict": {}, "item": {"x": 1}, "numbers": {1: 2},
    "nothing": {None: []}, "nested": {"x": {"y": [{}]}}, "set": {1}, "object": object(),
    "function": len, "class": object, "range": range(3), "generator": iter([1]),
    "int8": np.int8(-1), "uint64": np.uint64(2**64 - 1), "float32": np.float32("nan"),
    "bool": np.bool_(True), "date": np.datetime64("2026-01-01"), "void": np.void(b"1"),
    "array": np.array([1, 2]), "scalar": np.array(3), "string": np.array("x"),
    "objects": np.array([{}]), "dtype": np.dtype("float32"), "complex": 1j,
    "NA": pd.NA, "NaT": pd.NaT, "series": pd.Series([1, 2]), "frame": pd.DataFrame({"x": [1]}),
    "time": pd.Timestamp("2026"), "category": pd.Categorical(["x"]),
    "decimal": Decimal("0.1"), "fraction": Fraction(1, 3), "path": Path("x"),
    "jax": jnp.ones(2), "jax scalar": jnp.int32(2), "key": jax.random.key(0), "struct": STRUCT,
    "mesh": MESH, "abstract": ABSTRACT, "spec": SPEC, "P": mf.P("data"), "P of 3": mf.P(three),
    "unconstrained": PartitionSpec(PartitionSpec.UNCONSTRAINED),
    "sharding": NamedSharding(MESH, SPEC), "devices": jax.devices(), "device": jax.devices()[0],
    "layout": LAYOUT, "advice": ADVICE, "model": MODEL, "cluster": CLUSTER,
    "itself": itself(1), "twice itself": itself(2), "deep": deep(), "silent": Silent(),
    "rude": Rude(), "rudes": [Rude()], "of rude": {"x": Rude()},
}  # fmt: skip

diagrams: dict[str, dict[str, Any]] = {
    "mesh": {"mesh": {"data": 8}},
    "matmul": {
        "mesh": {"data": 4},
        "x": {"shape": (8, 8), "spec": SPEC},
        "w": {"shape": (8, 8), "spec": mf.P()},
        "dtype": "bfloat16",
    },
    "pipeline": {"schedule": "interleaved", "stages": 2, "micro_batches": 4, "chunks": 2,
                 "forward": 1, "backward": 2, "weight": 1},
    "collective": {"op": "all-reduce", "devices": 4, "algorithm": "ring"},
    "memory": {"bars": [{"label": "a", "weights": 1}], "capacity": 10, "title": "t"},
    "loading": {"layout": LAYOUT},
}  # fmt: skip


def diagram(kind: str) -> Callable[..., Any]:
    return lambda **members: mf.diagram(kind, **members)  # type: ignore[arg-type]


def keywords(function: Callable[..., Any]) -> dict[str, Any]:
    """Returns the arguments of a function with their defaults."""
    kinds = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in kinds if p.kind is not p.VAR_KEYWORD}


best = ADVICE.best
assert best is not None
CALLS: dict[str, tuple[Callable[..., Any], Mapping[str, Any]]] = {
    "mf.strategy.transformer": (strategy.transformer, keywords(strategy.transformer) | SIZES),
    "mf.strategy.preset": (strategy.preset, {"name": "gpt2", "inputs": None, "layers": 2}),
    "mf.strategy.parameters": (strategy.parameters, keywords(strategy.parameters) | {"count": 9}),
    "mf.strategy.tree": (strategy.tree, keywords(strategy.tree) | {"tree": {"w": STRUCT}}),
    "mf.strategy.training": (strategy.training, keywords(strategy.training) | {"batch": 8}),
    "mf.strategy.cluster": (strategy.cluster, keywords(strategy.cluster) | {"devices": 8}),
    "mf.advise": (
        mf.advise,
        keywords(mf.advise) | {"model": MODEL, "training": TRAINING, "cluster": CLUSTER},
    ),
    "mf.Advice": (mf.Advice, {"document": "{}"}),
    "Candidate.make_mesh": (best.make_mesh, {"axes": (), "devices": None, "axis_types": None}),
    "mf.memory": (mf.memory, keywords(mf.memory) | {"tree": {"w": STRUCT}}),
    "mf.draw": (mf.draw, keywords(mf.draw) | {"x": {"w": STRUCT}}),
    "mf.diagram": (mf.diagram, {}),
}
CASES = [
    (call, function, arguments, name)
    for call, (function, arguments) in CALLS.items()
    for name in arguments
] + [
    ("mf.diagram", diagram(kind), members, name)
    for kind, members in diagrams.items()
    for name in members
]
POINTER = re.compile(r"(^|\s)/(model|training|cluster|search|input|diagram|arrays|mesh)/")


@pytest.mark.filterwarnings("ignore:Python iterable type:DeprecationWarning")
@pytest.mark.parametrize(
    ("call", "function", "arguments", "name"),
    [pytest.param(*case, id=f"{case[0]}-{case[3]}") for case in CASES],
)
def test_no_value_raises_another_error(
    call: str, function: Callable[..., Any], arguments: Mapping[str, Any], name: str
) -> None:
    found = []
    for kind, value in VALUES.items():
        try:
            function(**{**arguments, name: value})
        except mf.Error as error:
            text = str(error)
            if not text.startswith(f"{call}: ") or POINTER.search(text) or len(text) > 1500:
                found.append(f"{kind}: {text}")
        except TypeError as error:
            if "unexpected keyword argument" not in str(error):
                found.append(f"{kind}: TypeError: {error}")
        except Exception as error:
            found.append(f"{kind}: {type(error).__name__}: {error}")
    if found:  # an assertion would print the values, of which some have no text
        pytest.fail("\n".join(found), pytrace=False)
