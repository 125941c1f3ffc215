"""Random views of views, compared with NumPy."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pyarrow as pa
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import meshfeed as mf

Arrays = dict[str, np.ndarray[Any, Any]]
N = 20


def stored() -> tuple[mf.Dataset, Arrays]:
    """Returns a dataset with a field of lists, and the same as arrays, one of objects."""
    arrays: Arrays = {
        "x": np.arange(N, dtype=np.float32),
        "y": -np.arange(N, dtype=np.float32),
        "label": np.arange(N) * 10,
        "tokens": np.fromiter(([k] * (k % 4) for k in range(N)), object),
    }
    return mf.from_arrow(pa.table({n: pa.array(a) for n, a in arrays.items()})), arrays


def compose(rng: np.random.Generator, ds: mf.Dataset, arrays: Arrays) -> tuple[mf.Dataset, Arrays]:
    """Puts one random view over a dataset, and does the same to arrays."""
    n, names = len(ds), list(arrays)
    ragged = [name for name in names if arrays[name].dtype == object]

    def rows(at: Any) -> Arrays:
        return {name: array[at] for name, array in arrays.items()}

    match rng.integers(12):
        case 0:
            kept = [str(name) for name in rng.permutation(names)[: rng.integers(1, len(names) + 1)]]
            return ds.select(kept), {name: arrays[name] for name in kept}
        case 1:
            new = {name: f"ü{rng.integers(100)}{i}" for i, name in enumerate(names)}
            known = ds.select(names)  # without columns that are not fields: their names are taken
            return known.rename(new), {new[name]: array for name, array in arrays.items()}
        case 2:
            start = int(rng.integers(n))
            stop = int(rng.integers(start, n)) + 1
            return ds.slice(start, stop), rows(slice(start, stop))
        case 3:
            at = rng.integers(0, n, rng.integers(1, 2 * N))
            return ds.take(at), rows(at)
        case 4:
            mask = rng.random(n) < 0.7
            mask[rng.integers(n)] = True
            return ds.filter(mask), rows(mask)
        case 5:
            at = rng.integers(0, n, 3)
            parts = [ds.take(at), ds, ds.take(at)]
            return mf.concat(parts), rows(np.concatenate([at, np.arange(n), at]))
        case 6 if len(ragged) < len(names):
            length, stride = int(rng.integers(1, min(n, 3) + 1)), int(rng.integers(1, 4))
            at = np.arange(0, n - length + 1, stride)[:, None] + np.arange(length)
            windows = rows(at)
            return ds.window(length, stride), {k: a for k, a in windows.items() if k not in ragged}
        case 7 if len(ragged) < len(names):
            kinds: dict[Any, list[str]] = {}
            for name in names:
                kinds.setdefault((arrays[name].dtype, arrays[name].shape), []).append(name)
            found = [columns for (dtype, _), columns in kinds.items() if dtype.kind != "O"]
            columns = found[rng.integers(len(found))]
            others = {name: array for name, array in arrays.items() if name not in columns}
            stack = np.stack([arrays[name] for name in columns], 1)
            return ds.stack({columns[0]: columns}), {**others, columns[0]: stack}
        case 8 if ragged:
            return padded(ds, arrays, ragged[0])
        case 9 if len(ragged) < len(names):
            name = str(rng.choice([name for name in names if name not in ragged]))
            length = int(np.prod(arrays[name].shape[1:]))
            shape = [(length,), (1, length), (length, 1)][rng.integers(3)]
            reshaped = {**arrays, name: arrays[name].reshape(n, *shape)}
            return ds.reshape(name, shape), reshaped
        case 10 if ragged and sum(map(len, arrays[ragged[0]])):
            return packed(ds, arrays[ragged[0]], ragged[0])
        case 11 if len(ragged) < len(names):
            return mapped(ds, arrays, str(rng.choice([n for n in names if n not in ragged])))
    return ds, arrays


def mapped(ds: mf.Dataset, arrays: Arrays, name: str) -> tuple[mf.Dataset, Arrays]:
    """Doubles a field by a function, which fails for some rows: these are zeros."""

    def bad(rows: Any) -> Any:
        return rows.reshape(len(rows), -1)[:, 0] % 3 == 1

    def double(rows: Any) -> Arrays:
        if bad(rows[name]).any():
            raise ValueError
        return {name: rows[name] * 2}

    field = mf.Field(arrays[name].shape[1:], arrays[name].dtype)
    doubled = arrays[name] * 2
    doubled[bad(arrays[name])] = 0
    return ds.map(double, {name: field}, fields=[name], bad="zero"), {**arrays, name: doubled}


def padded(ds: mf.Dataset, arrays: Arrays, name: str) -> tuple[mf.Dataset, Arrays]:
    """Pads the rows of a field of lists."""
    fixed = np.array([(row + [-1] * 3)[:3] for row in arrays[name]], np.int64)
    lengths = np.array([len(row) for row in arrays[name]], np.int32)
    out: Arrays = {}
    for key, array in arrays.items():
        out |= {key: fixed, f"{name}_length": lengths} if key == name else {key: array}
    return ds.pad(name, length=3, value=-1), out


def packed(ds: mf.Dataset, lists: np.ndarray[Any, Any], name: str) -> tuple[mf.Dataset, Arrays]:
    """Joins all lists, and cuts the result into rows of 4."""
    count = sum(map(len, lists))
    rows = np.zeros((3, -(-count // 4) * 4), np.int64)
    rows[0, :count] = np.concatenate([*lists])
    for row in range(rows.shape[1] // 4):
        at = slice(4 * row, min(4 * row + 4, count))
        document = np.repeat(np.arange(len(lists)), [len(x) for x in lists])[at]
        rows[1, at] = np.unique(document, return_inverse=True)[1] + 1
        rows[2, at] = [np.sum(document[:i] == d) for i, d in enumerate(document)]
    tokens, segments, positions = rows.reshape(3, -1, 4)
    return ds.pack(name, length=4, method="split"), {
        name: tokens,
        "segment_ids": segments.astype(np.int32),
        "positions": positions.astype(np.int32),
    }


def test_views_equal_numpy(seed: int) -> None:
    """The batches equal NumPy's arrays, on meshes of 1, 2 and 4 devices."""
    rng = np.random.default_rng(seed)
    for _ in range(30):
        ds, arrays = stored()
        below = []
        for _ in range(rng.integers(1, 7)):
            below.append(ds)
            ds, arrays = compose(rng, ds, arrays)
            print(ds)
        for name in [name for name, array in arrays.items() if array.dtype == object]:
            ds, arrays = padded(ds, arrays, name)
        for parent in (below[k] for k in rng.permutation(len(below))):
            if parent is not ds:
                parent.close()
        n = len(next(iter(arrays.values())))
        assert list(ds.schema) == list(arrays)
        assert len(ds) == n
        for devices in (1, 2, 4):
            mesh = Mesh(np.array(jax.devices()[:devices]), ("data",))
            size = n - n % 4
            if size:
                with mf.Loader(ds, mesh, P("data"), batch_size=size, shuffle=False) as loader:
                    batch = next(iter(loader))
                for name, array in arrays.items():
                    np.testing.assert_array_equal(np.asarray(batch[name]), array[:size])
