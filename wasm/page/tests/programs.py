"""Runs the JAX programs that the page generates, and reports what they load.

    python programs.py CASES.json          in an empty folder

A case is {"name", "document", "errors", "bytes", "jax"}: the canonical document, its number of
errors, the bytes of a batch, and the program. Programs run on fake CPU devices and load the first
of their small batches. A program that cannot run, because its layout has errors or needs more
devices, is only planned. This process plays all processes of a layout. The output has, for every
case, the layout document of the program, the specs of arrays outside of the batch, and the shapes
of a batch.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

DEVICES = 128
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import NamedSharding  # noqa: E402

import meshfeed as mf  # noqa: E402

SMALL = 1 << 22  # bytes of a batch that is loaded
HUGE = 1 << 36  # bytes of a batch that no process can hold
MOST = 1 << 40  # records of a dataset

Fields = dict[str, tuple[str, tuple[int, ...]]]


def fields_of(document: Mapping[str, Any]) -> Fields:
    """Returns type and row shape of the fields that a document's arrays use."""
    known = document.get("dataset", {}).get("fields", {})
    found = {name: (f["dtype"], tuple(f["shape"])) for name, f in known.items()}
    for name, a in document["arrays"].items():
        row = [n for n in a["shape"] if not isinstance(n, str)]
        if len(row) == len(a["shape"]):
            continue
        if "columns" in a:
            row[0] = max(stop for _, stop in a["columns"])
        found.setdefault(a.get("field", name), (a["dtype"], tuple(row)))
    return found


def records_of(document: Mapping[str, Any]) -> int:
    """Returns the records of a document's dataset, or enough for two batches."""
    enough = min(2 * int(np.prod(document.get("batch", {}).get("size", 1))), MOST)
    return int(document.get("dataset", {}).get("records", enough))


def dataset(fields: Fields, records: int) -> mf.Dataset:
    """Creates a dataset of any size with rows that share one row in memory."""
    arrays = {}
    for name, (dtype, row) in fields.items():
        one = np.zeros((1,) * (1 + len(row)), jax.numpy.dtype(dtype))
        arrays[name] = np.broadcast_to(one, (records, *row))
    return mf.from_arrays(arrays)


class Loaded:
    """A loader with a loop that ends with the first batch."""

    def __init__(self, loader: mf.Loader, batches: int) -> None:
        self.layout = loader.layout
        self.reshard = loader.reshard
        self.loader = loader
        self.batches = batches

    def __iter__(self) -> Iterator[Any]:
        with self.loader as loader:
            for _, batch in zip(range(self.batches), loader, strict=False):
                yield jax.block_until_ready(batch)

    def save_state(self, path: Path) -> None:
        """Saves nothing, so that the next program begins at the first batch."""


class Planned:
    """Replaces a loader by its layout."""

    def __init__(self, fields: Fields, records: int, arguments: Mapping[str, Any]) -> None:
        given = dict(arguments)
        given["host_bytes"] = given.pop("max_host_bytes", None)
        given.pop("state", None)
        mesh, specs = given.pop("mesh"), given.pop("specs")
        narrow = jax.dtypes.canonicalize_dtype
        held = {name: (str(narrow(dtype)), row) for name, (dtype, row) in fields.items()}
        self.layout = mf.layout(mesh, specs, held, records=records, **given)

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def reshard(self, batch: Any) -> Any:
        """Replaces the loader's method and is never run."""


def run(case: Mapping[str, Any]) -> dict[str, Any]:
    """Runs the program of a case."""
    document = json.loads(case["document"])
    fields, records = fields_of(document), records_of(document)
    many = math.prod(size for _, size in document["mesh"]["axes"]) > DEVICES
    real, real_mesh = mf.Loader, mf.make_mesh
    made: list[Loaded | Planned] = []

    def loader(source: Any, mesh: Any, specs: Any, **rest: Any) -> Loaded | Planned:
        if many or case["errors"] or case["bytes"] > HUGE:
            made.append(Planned(fields, records, {"mesh": mesh, "specs": specs, **rest}))
        else:
            made.append(Loaded(real(source, mesh, specs, **rest), int(case["bytes"] <= SMALL)))
        return made[-1]

    def mesh(axes: Mapping[str, int]) -> Any:
        if many:
            return axes
        return real_mesh(axes, devices=jax.devices()[: math.prod(axes.values())])

    def source(pattern: str) -> mf.Dataset | None:
        return None if many else dataset(fields, records)

    space: dict[str, Any] = {"__name__": "__main__"}
    Path("layout.json").write_text(case["document"], encoding="utf-8")
    program = compile(case["jax"], case["name"], "exec")
    with (
        mock.patch.multiple(mf, open=source, Loader=loader, make_mesh=mesh),
        mock.patch.object(jax.distributed, "initialize"),
    ):
        exec(program, space)
    jax.config.update("jax_enable_x64", False)
    return {
        "layout": json.loads(made[0].layout.to_json()) if made else None,
        "shardings": {name: spec(s) for name, s in space.get("shardings", {}).items()},
        "batch": {name: shapes(array) for name, array in space.get("batch", {}).items()},
    }


def spec(sharding: NamedSharding) -> list[Any]:
    """Returns a sharding's spec in the form of documents."""
    return [list(e) if isinstance(e, tuple) else e for e in sharding.spec]


def shapes(array: jax.Array) -> dict[str, Any]:
    """Returns the shape of an array and of its shards, as in reports."""
    return {
        "global_shape": list(array.shape),
        "shard_shape": list(array.sharding.shard_shape(array.shape)),
    }


def main(path: str) -> None:
    """Runs all cases."""
    cases = json.loads(Path(path).read_text(encoding="utf-8"))
    out = []
    for case in cases:
        try:
            out.append(run(case))
        except Exception as e:
            raise RuntimeError(f"the program of {case['name']!r} failed:\n{case['jax']}") from e
    json.dump(out, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
