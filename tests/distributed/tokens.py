"""Documents of tokens that all differ, packed in two ways and mixed with weights that change.

The two sources have as many rows as an epoch draws from them, so each token comes once.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import meshfeed as mf

LENGTH, BATCH, STEPS = 16, 32, 8
CHANGE = 128  # draws at 3 to 1; then as many at 1 to 1
ROWS = {"fitted": 96 + 64, "joined": 32 + 64}
TOKENS = sum(ROWS.values()) * LENGTH


def write(folder: Path) -> None:
    """Writes a file for each source. Tokens count from 1 on through both."""
    rng = np.random.default_rng(7)
    cuts = rng.integers(1, LENGTH, ROWS["fitted"])
    lengths = rng.permutation([*cuts, *(LENGTH - cuts)])  # each document has one that fits to it
    inside = np.sort(rng.choice(np.arange(1, ROWS["joined"] * LENGTH), 60, replace=False))
    joined = np.diff([0, *inside, ROWS["joined"] * LENGTH])
    first = 1
    for name, each in (("fitted", lengths), ("joined", joined)):
        offsets = np.cumsum([0, *each], dtype=np.int32)
        tokens = np.arange(first, first + offsets[-1], dtype=np.int32)
        lists = pa.ListArray.from_arrays(offsets, tokens)
        pq.write_table(pa.table({"tokens": lists}), folder / f"{name}.parquet", row_group_size=20)
        first += int(offsets[-1])


def opened(folder: Path) -> mf.Dataset:
    """Opens the mixture."""
    fitted, joined = (mf.open(folder / f"{name}.parquet", cache="memory") for name in ROWS)
    sources = {
        "fitted": fitted.pack("tokens", length=LENGTH, labels="labels"),
        "joined": joined.pack("tokens", length=LENGTH, labels="labels", method="split"),
    }
    assert {name: len(ds) for name, ds in sources.items()} == ROWS
    first, later = {"fitted": 0.75, "joined": 0.25}, {"fitted": 0.5, "joined": 0.5}
    return mf.mix(sources, first, seed=3, schedule=[(CHANGE, later)], source="source")
