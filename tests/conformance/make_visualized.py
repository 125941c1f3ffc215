"""Ask the installed JAX what `jax.debug.visualize_array_sharding` prints.

Writes testdata/visualized.json, the table that tests/python/plan/test_drawing.py reads. JAX needs
the package rich for it, which meshfeed does not need: `pip install rich` first.

    python make_visualized.py            # write the table
    python make_visualized.py --check    # ask again and compare

Every case is a random sharding of an array of one or two dimensions over some of 64 CPU devices in
a random order.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import random
import sys
from pathlib import Path
from typing import Any

DEVICES = 64
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUM_CPU_DEVICES"] = str(DEVICES)

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

TABLE = Path(__file__).parent / "testdata" / "visualized.json"
SEED = 20261123
CASES = 60
NAMES = ["a", "b", "c"]


def case(rng: random.Random) -> dict[str, Any]:
    """Draw a mesh, a spec and a shape, and ask JAX."""
    sizes = [rng.choice([1, 2, 2, 3, 4, 4, 8, 16]) for _ in range(rng.randint(1, 3))]
    while math.prod(sizes) > DEVICES:
        sizes.pop()
    names, left = NAMES[: len(sizes)], NAMES[: len(sizes)]
    rng.shuffle(left)
    spec: list[list[str]] = []
    for _ in range(rng.choice([1, 2, 2])):
        n = rng.randint(0, 2)
        spec.append(left[:n])
        left = left[n:]
    ids = rng.sample(range(DEVICES), math.prod(sizes))
    mesh = Mesh(np.array(jax.devices())[ids].reshape(sizes), names)
    tiles = [math.prod(mesh.shape[axis] for axis in entry) for entry in spec]
    shape = [rng.choice([1, 2, 3, 5, 16, 100]) * n for n in tiles]
    sharding = NamedSharding(mesh, PartitionSpec(*(tuple(entry) or None for entry in spec)))
    parts = sharding.devices_indices_map(tuple(shape))
    spans = {
        device.id: [list(part.indices(n)[:2]) for part, n in zip(index, shape, strict=True)]
        for device, index in parts.items()
    }
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        jax.debug.visualize_sharding(shape, sharding, use_color=False)
    return {"shape": shape, "parts": sorted(spans.items()), "printed": printed.getvalue()}


def main() -> None:
    rng = random.Random(SEED)
    cases = [json.dumps(case(rng), ensure_ascii=False) for _ in range(CASES)]
    text = "[\n" + ",\n".join(cases) + "\n]\n"
    if sys.argv[1:] != ["--check"]:
        TABLE.write_text(text)
    elif TABLE.read_text() != text:
        sys.exit("JAX prints other tables: run make_visualized.py, and look at the difference")


if __name__ == "__main__":
    main()
