"""Small images as PNG files, by the standard library alone."""

from __future__ import annotations

import math
import struct
import zlib
from typing import Any

import numpy as np

Pixels = np.ndarray[Any, np.dtype[np.uint8]]

SMALLEST = 8  # pixels of each side of an array that is an image
SIDE = 112  # pixels of the longer side of a thumbnail at most


def thumbnail(pixels: Pixels) -> Pixels:
    """Returns a smaller image. Each of its pixels is the mean of a block of pixels.

    Args:
        pixels: of shape [height, width, channels]. An image that is small enough is returned.
    """
    height, width, channels = pixels.shape
    each = math.ceil(max(height, width) / SIDE)
    if each == 1:
        return pixels
    rows, columns = height // each, width // each
    inner = pixels[: rows * each, : columns * each]
    blocks = inner.reshape(rows, each, columns, each, channels)
    means: Pixels = blocks.mean(axis=(1, 3), dtype=np.float32).round().astype(np.uint8)
    return means


def encode(pixels: Pixels) -> bytes:
    """Returns the PNG file of an image.

    Args:
        pixels: of shape [height, width, channels]: gray (1), RGB (3) or RGB and opacity (4).
    """
    height, width, channels = pixels.shape
    color = {1: 0, 3: 2, 4: 6}[channels]
    lines = np.zeros((height, 1 + width * channels), np.uint8)  # each begins with its filter, 0
    lines[:, 1:] = pixels.reshape(height, -1)
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines.tobytes())),
        (b"IEND", b""),
    ]
    chunks = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
