"""Writes deltas.arrow: a file whose dictionary grows, which Arrow's Go library cannot write.

Run it with pyarrow installed: python generate.py
"""

import pathlib

import pyarrow as pa

INDICES = [[1, 0, 1, 1], [2, 0, 3, 2], [3, 1, 0, 2]]
VALUES = [[10, 11], [10, 11, 12, 13], [10, 11, 12, 13]]


def _batch(indices: list[int], values: list[int]) -> pa.RecordBatch:
    column = pa.DictionaryArray.from_arrays(
        pa.array(indices, pa.int16()), pa.array(values, pa.float32())
    )
    pairs = pa.FixedSizeListArray.from_arrays(column, 2)
    return pa.record_batch([column[: len(pairs)], pairs], names=["x", "pair"])


def main() -> None:
    """Writes the file beside this script."""
    batches = [_batch(i, v) for i, v in zip(INDICES, VALUES, strict=True)]
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    path = pathlib.Path(__file__).with_name("deltas.arrow")
    with pa.ipc.new_file(path, batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)


if __name__ == "__main__":
    main()
