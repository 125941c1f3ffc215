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

pytest.importorskip("orbax.checkpoint", reason="orbax-checkpoint is not installed")

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide.md"


def test_the_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (recipe,) = re.findall(r"```python orbax\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    ds = mf.from_arrays({"x": np.arange(1000)})
    options: dict[str, Any] = {"batch_size": 64, "shuffle": True, "seed": 7, "epochs": -1}
    mesh, other = jax.make_mesh((8,), ("data",)), jax.make_mesh((2, 4), ("data", "model"))
    with mf.Loader(ds, mesh, P("data"), **options) as loader:
        for _, _ in zip(loader, range(18), strict=False):
            pass
        state = loader.state()
        names = {"mf": mf, "Path": Path, "ds": ds, "loader": loader, "other": other}
        names |= {"specs": P("data"), "step": 18, "params": {"w": np.arange(8.0)}}
        exec(compile(recipe, "docs/guide.md", "exec"), names)
    restored: Any = names["loader"]
    with restored:
        assert restored.state() == state
        assert state["epoch"] == 1
        records = restored.records(state["epoch"], state["position"])
        np.testing.assert_array_equal(np.asarray(next(iter(restored))["x"]), records)
    saved: Any = names["saved"]
    np.testing.assert_array_equal(saved.params["w"], np.arange(8.0))
