"""Images, texts and labels that functions compute rows from: with keys, bad records, and lists."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

import meshfeed as mf

BATCH, STEPS = 32, 8


def write(folder: Path) -> None:
    """Writes images of several sizes, of which some are damaged, with a label and a text."""
    rng = np.random.default_rng(5)
    files = []
    for k in range(BATCH * STEPS):
        file = io.BytesIO()
        pixels = rng.integers(0, 256, (20 + k % 9, 30 + k % 7, 3), np.uint8)
        Image.fromarray(pixels).save(file, ("PNG", "JPEG")[k % 2])
        files.append(file.getvalue()[: 100 if k % 11 == 0 else None])
    texts = ["word " * (k % 13) for k in range(len(files))]
    rows = pa.table({"image": files, "label": np.arange(len(files)), "text": texts})
    pq.write_table(rows, folder / "rows.parquet", row_group_size=20)


def opened(folder: Path) -> mf.Dataset:
    """Opens the images, decoded and cropped by keys, with a signal and tokens of functions."""
    ds = mf.open(folder / "rows.parquet", cache="memory")
    ds = ds.decode_image("image", size=(16, 12), crop="random", flip="random", bad="zero")
    ds = ds.map(_signal, {"signal": mf.Field((16, 2), "float32")}, with_keys=True, bad="zero")
    ds = ds.map(_tokens, {"tokens": mf.Field((None,), "int32")}, fields=["text"], batched=False)
    return ds.select(["image", "label", "signal", "tokens"]).pad("tokens", length=16)


def _signal(rows: Any, keys: Any) -> dict[str, Any]:
    """Fails for some labels. All others have a signal that their key and their image decide."""
    if (rows["label"] % 17 == 3).any():
        raise ValueError("no signal")
    noise = [np.random.default_rng(key).normal(size=(16, 2)) for key in keys]
    return {"signal": (noise + rows["image"].mean((2, 3))[:, :, None]).astype(np.float32)}


def _tokens(row: Any) -> dict[str, Any]:
    return {"tokens": np.frombuffer(row["text"].encode(), np.uint8)[:16].astype(np.int32)}
