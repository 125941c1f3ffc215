"""The guide's recipe: a state inside an Orbax checkpoint."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from tests.python import ROOT

pytest.importorskip("orbax.checkpoint", reason="orbax-checkpoint is not installed")

GUIDE = ROOT / "docs/guide.md"


def test_the_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (recipe,) = re.findall(r"```python\n([^`]*import orbax[^`]*)```", GUIDE.read_text())
    monkeypatch.chdir(tmp_path)
    ds = mf.from_arrays({"x": np.arange(1000)})
    mesh, other = jax.make_mesh((8,), ("data",)), jax.make_mesh((2, 4), ("data", "model"))
    names: dict[str, Any] = {"mf": mf, "np": np, "ds": ds, "mesh": mesh, "other": other}
    names["specs"] = P("data")
    exec(compile(recipe, "docs/guide.md", "exec"), names)
    saved = names["saved"]
    np.testing.assert_array_equal(saved.params["weights"], np.zeros((64, 10)))
    options: dict[str, Any] = {"batch_size": 64, "shuffle": True, "seed": 7}
    with mf.Loader(ds, other, P("data"), **options, state=saved.data) as loader:
        records = loader.records(saved.data["epoch"], saved.data["position"])
        np.testing.assert_array_equal(np.asarray(next(iter(loader))["x"]), records)
