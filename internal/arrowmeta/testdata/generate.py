"""Writes the Arrow files beside this script, and expected.json: what pyarrow reads from them.

Run it with pyarrow, polars and datasets installed: python generate.py. expected.json
records their versions. Other versions may write other bytes. Of the expected values,
only the positions of buffers then change.
"""

import decimal
import glob
import io
import json
import pathlib
import sys
import tempfile

import datasets
import numpy as np
import polars as pl
import pyarrow as pa

HERE = pathlib.Path(__file__).parent
LIMIT = 4096


def _batch(**columns):
    return pa.record_batch(list(columns.values()), names=list(columns))


def _primitive(n):
    return _batch(
        label=pa.array(range(n), pa.int32()),
        half=pa.array(np.arange(n, dtype="float16")),
        maybe=pa.array([None if i % 3 == 1 else i % 2 == 0 for i in range(n)], pa.bool_()),
        wide=pa.array(range(n), pa.uint64()),
    )


def _fixed(n):
    rows = pa.array(np.arange(n * 12, dtype="float32"))
    inner = pa.FixedSizeListArray.from_arrays(rows, 3)
    return _batch(
        image=pa.FixedSizeListArray.from_arrays(inner, 4),
        tensor=pa.ExtensionArray.from_storage(
            pa.fixed_shape_tensor(pa.float32(), (2, 6), dim_names=["y", "x"], permutation=[1, 0]),
            pa.FixedSizeListArray.from_arrays(rows, 12),
        ),
        bytes=pa.array([b"abcd"] * n, pa.binary(4)),
        holes=pa.array([[1, 2], None, [3, None]][:n], pa.list_(pa.int8(), 2)),
    )


def _nested(n):
    return _batch(
        tokens=pa.array([[1, 2], [], None][:n], pa.list_(pa.int64())),
        large=pa.array([["a"], [None]][:n] + [[]] * max(n - 2, 0), pa.large_list(pa.string())),
        view=pa.array([[1], [2, 3], []][:n], pa.list_view(pa.int16())),
        pair=pa.array(
            [{"a": 1, "b": [0.5]}] * n,
            pa.struct([("a", pa.int8()), ("b", pa.list_(pa.float64()))]),
        ),
        table=pa.array([[("k", 1)], [], None][:n], pa.map_(pa.string(), pa.int32())),
    )


def _text(n):
    words = ["short", None, "much longer than twelve bytes"][:n]
    return _batch(
        view=pa.array(words, pa.string_view()),
        none=pa.nulls(n),
        plain=pa.array(words),
        raw=pa.array([b"x" * 20 * (i + 1) for i in range(n)], pa.binary_view()),
        large=pa.array(words, pa.large_string()),
        after=pa.array(range(n), pa.int16()),
    )


def _unions(n):
    kinds = pa.array([i % 2 for i in range(n)], pa.int8())
    numbers, words = pa.array(range(n), pa.int32()), pa.array(["w"] * n)
    offsets = pa.array([i // 2 for i in range(n)], pa.int32())
    return _batch(
        dense=pa.UnionArray.from_dense(kinds, offsets, [numbers, words]),
        sparse=pa.UnionArray.from_sparse(kinds, [numbers, words]),
        runs=pa.RunEndEncodedArray.from_arrays(pa.array([1, n], pa.int16()), pa.array([0.5, 1.5])),
        after=pa.array(range(n), pa.int64()),
    )


def _temporal(n):
    d = decimal.Decimal("1.25")
    return _batch(
        day=pa.array([1] * n, pa.date32()),
        ms=pa.array([86400000] * n, pa.date64()),
        t32=pa.array([1] * n, pa.time32("s")),
        t64=pa.array([1] * n, pa.time64("ns")),
        at=pa.array([1] * n, pa.timestamp("us", "UTC")),
        local=pa.array([1] * n, pa.timestamp("s")),
        span=pa.array([1] * n, pa.duration("ms")),
        interval=pa.array([(1, 2, 3)] * n, pa.month_day_nano_interval()),
        d32=pa.array([d] * n, pa.decimal32(5, 2)),
        d64=pa.array([d] * n, pa.decimal64(10, 2)),
        d128=pa.array([d] * n, pa.decimal128(20, 2)),
        d256=pa.array([d] * n, pa.decimal256(50, 2)),
    )


def _dictionaries(*words):
    return _batch(
        word=pa.array(words).dictionary_encode(),
        inside=pa.array([["x", "y"]] * len(words), pa.list_(pa.dictionary(pa.int8(), pa.string()))),
        after=pa.array(range(len(words)), pa.int8()),
    )


def _write(name, batches, stream=False, **options):
    sink = io.BytesIO()
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(sink, batches[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for b in batches:
            writer.write_batch(b)
    return {name: sink.getvalue()}


def _polars_files():
    text = ["a", "longer than twelve bytes"]
    frame = pl.DataFrame({"x": [1.5, 2.5], "s": text, "l": [[1], [2, 3]]})
    a, b = io.BytesIO(), io.BytesIO()
    frame.write_ipc(a)
    frame.write_ipc_stream(b)
    return {"polars.arrow": a.getvalue(), "polars.stream": b.getvalue()}


def _hugging_face():
    features = datasets.Features(
        image=datasets.Array2D((2, 3), "float32"),
        open=datasets.Array3D((None, 2, 1), "uint8"),
        label=datasets.ClassLabel(names=["cat", "dog"]),
        tokens=datasets.List(datasets.Value("int32"), length=4),
        ragged=datasets.List(datasets.Array2D((2, 2), "int8")),
        box=datasets.List(datasets.List(datasets.Value("float32"), length=2), length=2),
        shape={"shape": datasets.Value("string"), "length": datasets.Value("int8")},
    )
    rows = 2
    data = {
        "image": np.zeros((rows, 2, 3), "float32"),
        "open": np.ones((rows, 3, 2, 1), "uint8"),
        "label": [0, 1],
        "tokens": [[1, 2, 3, 4]] * rows,
        "ragged": [[np.zeros((2, 2), "int8")]] * rows,
        "box": [[[0, 1], [2, 3]]] * rows,
        "shape": [{"shape": "s", "length": 1}] * rows,
    }
    with tempfile.TemporaryDirectory() as folder:
        datasets.Dataset.from_dict(data, features=features).save_to_disk(folder)
        (path,) = glob.glob(folder + "/*.arrow")
        return {"huggingface.stream": pathlib.Path(path).read_bytes()}


def _files():
    out = {}
    for make in (_fixed, _nested, _text, _unions, _temporal):
        out |= _write(make.__name__[1:] + ".arrow", [make(3), make(2)])
    out |= _write("primitive.arrow", [_primitive(5), _primitive(0), _primitive(9)])
    out |= _write("primitive.stream", [_primitive(5), _primitive(0), _primitive(9)], stream=True)
    out |= _write("nothing.arrow", [_primitive(0)])
    out |= _write("nothing.stream", [pa.record_batch([], names=[])], stream=True)
    out |= _write("text.stream", [_text(3), _text(1)], stream=True)
    out |= _write("lz4.arrow", [_fixed(3)], compression="lz4")
    out |= _write("zstd.stream", [_fixed(3)], stream=True, compression="zstd")
    v4 = pa.ipc.MetadataVersion.V4
    out |= _write("unions_v4.stream", [_unions(3)], stream=True, metadata_version=v4)
    legacy = {"metadata_version": v4, "use_legacy_format": True}
    out |= _write("legacy.stream", [_primitive(5)], stream=True, **legacy)
    out |= _write("legacy.arrow", [_primitive(5)], metadata_version=v4, use_legacy_format=True)
    out |= _write("dictionary.arrow", [_dictionaries("a", "b"), _dictionaries("a", "b")])
    delta = [_dictionaries("a", "b"), _dictionaries("a", "b", "c")]
    out |= _write("delta.stream", delta, stream=True, emit_dictionary_deltas=True)
    out |= _write("replaced.stream", [_dictionaries("a"), _dictionaries("z")], stream=True)
    return out | _polars_files() | _hugging_face()


NAMES = {"halffloat": "float16", "float": "float32", "double": "float64"}


def _spell(t):
    """Returns the type as text, in the form in which package arrowmeta prints it."""
    if isinstance(t, pa.BaseExtensionType):
        return _spell(t.storage_type)
    if isinstance(t, pa.DictionaryType):
        return f"dictionary<values={_spell(t.value_type)}, indices={_spell(t.index_type)}>"
    if isinstance(t, pa.MapType):
        return f"map<{_spell(t.key_type)}, {_spell(t.item_type)}>"
    if pa.types.is_fixed_size_list(t):
        return f"fixed_size_list<{_spell(t.value_type)}>[{t.list_size}]"
    if pa.types.is_struct(t):
        return "struct<" + ", ".join(f"{f.name}: {_spell(f.type)}" for f in t) + ">"
    if pa.types.is_union(t):
        parts = [f"{t[i].name}: {_spell(t[i].type)}={t.type_codes[i]}" for i in range(t.num_fields)]
        return f"{t.mode}_union<" + ", ".join(parts) + ">"
    if pa.types.is_run_end_encoded(t):
        ends, values = _spell(t.run_end_type), _spell(t.value_type)
        return f"run_end_encoded<run_ends: {ends}, values: {values}>"
    if t.num_fields == 1:
        return str(t).split("<")[0] + f"<{_spell(t.value_type)}>"
    return NAMES.get(str(t), str(t))


def _describe(name, data):
    base = pa.py_buffer(data)
    if name.endswith(".arrow"):
        reader = pa.ipc.open_file(base)
        batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
    else:
        reader = pa.ipc.open_stream(base)
        batches = list(reader)
    plain = not name.startswith(("lz4", "zstd"))

    def places(column):
        storage = column.storage if isinstance(column, pa.ExtensionArray) else column
        buffers = storage.buffers()
        return [[b.address - base.address, b.size] if b and b.size else None for b in buffers]

    return {
        "fields": [[f.name, _spell(f.type), f.nullable] for f in reader.schema],
        "rows": [b.num_rows for b in batches],
        "nulls": [[c.null_count for c in b.columns] for b in batches],
        "buffers": [[places(c) for c in b.columns] for b in batches] if plain else None,
    }


def _main():
    versions = {m.__name__: m.__version__ for m in (pa, pl, datasets)}
    expected = {}
    for name, data in sorted(_files().items()):
        if len(data) > LIMIT:
            sys.exit(f"{name} has {len(data)} bytes, more than {LIMIT}")
        (HERE / name).write_bytes(data)
        expected[name] = _describe(name, data)
    lines = [f"  {json.dumps(n)}: {json.dumps(e)}" for n, e in expected.items()]
    head = '{"versions": ' + json.dumps(versions) + ',\n "files": {\n'
    text = head + ",\n".join(lines) + "\n}}\n"
    (HERE / "expected.json").write_text(text)


if __name__ == "__main__":
    _main()
