"""Writes TFRecord with TensorFlow, and compares what tf.data reads with what meshfeed reads.

`python -m tests.python.data.tensorflow_records write FOLDER 20` writes the golden files in
arrowio/testdata/tfrecord. `compare FOLDER N` is the deep test.
"""

from __future__ import annotations

import importlib
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]
NAMES = ("train.tfrecord-00000-of-00002", "train.tfrecord-00001-of-00002")


def rows(n: int) -> list[Row]:
    """Returns records with every kind of feature. None stands for a feature that is missing."""
    rng = random.Random(n)
    return [
        {
            "box": [float(np.float32(rng.gauss(0, 1))) for _ in range(4)],
            "id": rng.randrange(-(2**63), 2**63),
            "image": rng.randbytes(rng.choice([0, 1, 12, 13, 5000])),
            "maybe": rng.choice([None, rng.randrange(100)]),
            "score": float(np.float32(rng.gauss(0, 1))),
            "tokens": [rng.randrange(50_000) for _ in range(rng.randrange(9))],
            "words": [f"wört {k}".encode() for k in range(i % 3)],
        }
        for i in range(n)
    ]


def example(tf: Any, row: Row) -> bytes:
    """Returns a record as TensorFlow serializes it."""

    def feature(value: Any) -> Any:
        values = value if isinstance(value, list) else [value]
        if values and isinstance(values[0], bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        if values and isinstance(values[0], float):
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    given = {name: value for name, value in row.items() if value is not None}
    features = {name: feature(value) for name, value in given.items()}
    if not row["words"]:
        features["words"] = tf.train.Feature(bytes_list=tf.train.BytesList())
    message = tf.train.Example(features=tf.train.Features(feature=features))
    data: bytes = message.SerializeToString()
    return data


def write(tf: Any, folder: Path, n: int) -> None:
    """Writes two files; the second one is compressed, and does not say so."""
    listed = rows(n)
    for name, part, compression in (
        (NAMES[0], listed[: n // 2], ""),
        (NAMES[1], listed[n // 2 :], "GZIP"),
    ):
        with tf.io.TFRecordWriter(str(folder / name), compression) as writer:
            for row in part:
                writer.write(example(tf, row))


def check(row: dict[str, Any], want: Row) -> None:
    """Compares a record that meshfeed reads with what was written."""
    assert set(row) == set(want)
    for name, value in want.items():
        got = row[name]
        if value is None or isinstance(value, bytes):
            assert (None if got is None else bytes(got)) == value, name
        elif name == "words":
            assert [bytes(word) for word in got] == value
        else:
            kind = np.float32 if name in ("box", "score") else np.int64
            assert np.array_equal(np.asarray(got), np.asarray(value, kind)), name
            assert np.asarray(got).dtype == kind


def compare(tf: Any, folder: Path) -> None:
    """Compares every value of tf.data with meshfeed's."""
    import meshfeed as mf

    features = {
        "box": tf.io.FixedLenFeature([4], tf.float32),
        "id": tf.io.FixedLenFeature([], tf.int64),
        "image": tf.io.FixedLenFeature([], tf.string),
        "maybe": tf.io.VarLenFeature(tf.int64),
        "score": tf.io.FixedLenFeature([], tf.float32),
        "tokens": tf.io.VarLenFeature(tf.int64),
        "words": tf.io.VarLenFeature(tf.string),
    }
    with mf.open(folder, cache="memory") as ds:
        got = iter(ds)
        for name, compression in ((NAMES[0], ""), (NAMES[1], "GZIP")):
            for record in tf.data.TFRecordDataset(str(folder / name), compression):
                parsed = tf.io.parse_single_example(record, features)
                want: Row = {}
                for field, value in parsed.items():
                    dense = tf.sparse.to_dense(value) if hasattr(value, "indices") else value
                    want[field] = dense.numpy()
                maybe = want["maybe"].tolist()
                words = [bytes(word) for word in want["words"]]
                scalars = {"maybe": maybe[0] if maybe else None, "words": words}
                check(next(got), want | scalars)
        assert next(got, None) is None


if __name__ == "__main__":
    tensorflow = importlib.import_module("tensorflow")
    verb, to, count = sys.argv[1:]
    write(tensorflow, Path(to), int(count))
    if verb == "compare":
        compare(tensorflow, Path(to))
        print(f"{count} records are equal")
