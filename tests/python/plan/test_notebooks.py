"""What notebooks show for results of the planner, of `mf.memory` and of `mf.draw`."""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from meshfeed import strategy

MESH = AbstractMesh((256, 4), ("data", "model"))
TREE = {f"layer {i}": jax.ShapeDtypeStruct((256, 64), "float32") for i in range(5000)}
MODEL = strategy.preset("llama3-8b")
MANY = strategy.cluster("h100-80", devices=65536)
RESULTS: dict[str, Any] = {
    "advice": mf.advise(
        MODEL, strategy.training(batch=128), strategy.cluster("h100-80", devices=8)
    ),
    "large": mf.advise(MODEL, strategy.training(batch=65536), MANY, search={"pruned": True}),
    "nothing fits": mf.advise(MODEL, {"batch": 1}, {"device": "l4-24", "devices": 1}),
    "memory": mf.memory(TREE, P("data"), mesh=MESH, optimizer="adamw"),
    "names": mf.memory({"<b>&</b>": np.zeros(3)}),
    "problems": mf.memory({"w": np.zeros(3)}, P("data"), mesh=MESH),
    "layout": mf.layout(MESH, P("data"), {"x": ("float32", (4,))}, batch_size=1024),
    "sharding": mf.draw(NamedSharding(MESH, P("data")), shape=(1024, 8)),
    "tree": mf.draw(TREE),
    "diagram": mf.diagram("pipeline", schedule="1f1b", stages=64, micro_batches=256),
}


def shown(result: Any) -> str:
    """Returns the HTML that a notebook shows. If IPython is installed, its formatter returns it."""
    try:
        from IPython.core.formatters import HTMLFormatter
    except ImportError:
        return str(result._repr_html_())
    return str(HTMLFormatter()(result))


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_a_notebook_shows_a_small_element(result: Any) -> None:
    text = shown(result)
    assert len(text) < 1 << 18
    for never in ("<script", "<html", "<body", " onclick", "src=", "@import"):
        assert never not in text
    root = ET.fromstring(f"<div>{text.replace('&nbsp;', ' ')}</div>")  # all tags are closed
    assert len("".join(root.itertext())) > 100
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", ["tree", "advice", "memory"])
def test_a_notebook_shows_text_in_columns(name: str) -> None:
    style, _, text = shown(RESULTS[name]).partition(">")
    assert re.match('<pre style="font-family:monospace;[^"]*white-space:pre"', style)
    assert html.unescape(text.removesuffix("</pre>")) == str(RESULTS[name])


def test_a_notebook_shows_the_numbers() -> None:
    memory = RESULTS["memory"]
    assert "each of 1,024 devices" in shown(memory)
    assert "layer 0 " in shown(memory)
    assert "&lt;b&gt;&amp;&lt;/b&gt;" in shown(RESULTS["names"])
    assert "is split 256 ways" in shown(RESULTS["problems"])
