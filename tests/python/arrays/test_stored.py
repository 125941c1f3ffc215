"""Weights of files: safetensors, .npy and .npz, against their own libraries."""

from __future__ import annotations

import json
import os
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec
from safetensors import SafetensorError, safe_open
from safetensors import numpy as safetensors

import meshfeed as mf
import meshfeed._arrays.stored as stored_arrays
from meshfeed._native import calls
from tests.python.samples import assert_sharded, mesh_of

P = PartitionSpec
MESH = mesh_of((4, 2))
NAMES = [
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "float32", "float64", "complex64", "bfloat16", "float8_e4m3fn", "float8_e5m2"),
]


def values(name: str, shape: tuple[int, ...] = (8, 4)) -> np.ndarray[Any, Any]:
    """Makes numbers that 32 bits hold."""
    n = int(np.prod(shape))
    return (np.arange(n).reshape(shape) % 13).astype(getattr(ml_dtypes, name, name))


def sharding(*spec: Any) -> NamedSharding:
    return NamedSharding(MESH, P(*spec))


def narrowed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype(jax.dtypes.canonicalize_dtype(array.dtype))


def loads(path: Path, want: dict[str, np.ndarray[Any, Any]], *spec: Any) -> None:
    """Checks that a file has exactly these arrays."""
    with mf.open_arrays(path) as stored:
        assert {name: (a.shape, a.dtype) for name, a in stored.items()} == {
            name: (array.shape, array.dtype) for name, array in want.items()
        }
        targets = {
            name: sharding(*spec) if array.ndim else sharding() for name, array in want.items()
        }
        loaded = mf.load_arrays(stored, targets)
        assert list(loaded) == list(want)
        for name, array in want.items():
            for found in (loaded[name], mf.load_array(stored, name, targets[name])):
                assert_sharded(found, narrowed(array), targets[name])


# ---- formats ----


@pytest.mark.parametrize("spec", [(), ("data",), (None, "model"), ("data", "model")])
def test_safetensors(tmp_path: Path, spec: tuple[Any, ...]) -> None:
    arrays = {name: values(name) for name in NAMES} | {
        "layers.0.scale": np.array(2.5, np.float32),
        "empty": np.zeros((0, 2), np.float32),
    }
    path = tmp_path / "model.safetensors"
    safetensors.save_file(arrays, path, metadata={"format": "np"})
    loads(path, arrays, *spec)


def test_several_files_with_an_index(tmp_path: Path) -> None:
    arrays = {f"w{i}": values("float32") + i for i in range(7)}
    weight_map = {name: f"model-{i % 3 + 1}-of-3.safetensors" for i, name in enumerate(arrays)}
    for file in set(weight_map.values()):
        part = {name: array for name, array in arrays.items() if weight_map[name] == file}
        safetensors.save_file(part, tmp_path / file)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}))
    loads(index, arrays, "data")


@pytest.mark.parametrize("name", [name for name in NAMES if hasattr(np, name)])
def test_numpy(tmp_path: Path, name: str) -> None:
    arrays = {"w": values(name), "v": values(name, (16,)), "s": values(name, ())}
    np.savez(tmp_path / "a.npz", **arrays)  # type: ignore[arg-type]
    loads(tmp_path / "a.npz", arrays, "data")
    np.save(tmp_path / "w.npy", arrays["w"])
    loads(tmp_path / "w.npy", {"w": arrays["w"]}, None, "model")


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions_of_npy(tmp_path: Path, version: tuple[int, int]) -> None:
    with (tmp_path / "w.npy").open("wb") as file:
        np.lib.format.write_array(file, values("float32"), version=version)
    loads(tmp_path / "w.npy", {"w": values("float32")}, "model")


def test_one_dimension_in_fortran_order(tmp_path: Path) -> None:
    """With one dimension, or one long dimension, both orders are the same to NumPy."""
    array = np.asfortranarray(np.arange(8, dtype=np.float32))
    np.save(tmp_path / "w.npy", array)
    loads(tmp_path / "w.npy", {"w": array}, "data")


def test_random_arrays(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    for i in range(20):
        shape = tuple(draw.choice([1, 3, 8, 16, 40]) for _ in range(draw.randint(1, 4)))
        entries: list[Any] = [None] * len(shape)
        for axis, size in (("data", 4), ("model", 2)):
            fit = [d for d, n in enumerate(shape) if n % size == 0 and entries[d] is None]
            if fit and draw.random() < 0.8:
                entries[draw.choice(fit)] = axis
        name = draw.choice(NAMES)
        path = tmp_path / f"{i}.safetensors"
        safetensors.save_file({"x": values(name, shape), "y": values("uint8", (3,))}, path)
        with mf.open_arrays(path) as stored:
            target, whole = sharding(*entries), narrowed(values(name, shape))
            assert_sharded(mf.load_array(stored, "x", target), whole, target)


# ---- many arrays at once ----


def test_arrays_of_several_meshes(tmp_path: Path) -> None:
    """The mapping may name some of the arrays, on any mesh, in any order."""
    arrays = {name: values("float32") + i for i, name in enumerate("abcd")}
    safetensors.save_file(arrays, tmp_path / "x.safetensors")
    half = mf.make_mesh({"model": -1}, devices=jax.devices()[4:])
    other = NamedSharding(half, P("model"))
    targets = {"d": sharding("data"), "a": other, "c": sharding(None, "data")}
    with mf.open_arrays(tmp_path / "x.safetensors") as stored:
        loaded = mf.load_arrays(stored, targets)
        assert list(loaded) == ["d", "a", "c"]
        for name, target in targets.items():
            assert_sharded(loaded[name], arrays[name], target)
        with jax.set_mesh(MESH):
            everything = mf.load_arrays(stored, P("model"))
        assert mf.load_arrays(stored, {}) == {}
    assert list(everything) == list(stored)
    for name, array in everything.items():
        assert_sharded(array, arrays[name], sharding("model"))


def test_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays are read together up to a number of bytes or arrays; a larger one is read alone."""
    sizes = [3, 3, 3, 20, 1, 9, 1, *[1] * 12]
    whole = {f"x{i:02}": np.full((n, 4), i, np.int8) for i, n in enumerate(sizes)}
    safetensors.save_file(whole, tmp_path / "x.safetensors")
    made: list[list[str]] = []
    create = calls.loader_create

    def watched(dataset: int, layout: str, options: Any) -> Any:
        made.append(list(json.loads(layout)["arrays"]))
        return create(dataset, layout, options)

    monkeypatch.setattr(calls, "loader_create", watched)
    monkeypatch.setattr(stored_arrays, "TOGETHER", 40)
    monkeypatch.setattr(stored_arrays, "MOST", 5)
    with mf.open_arrays(tmp_path / "x.safetensors") as stored:
        loaded = mf.load_arrays(stored, sharding())
    for name, array in whole.items():
        assert_sharded(loaded[name], array, sharding())
    assert [[int(name[1:]) for name in names] for names in made] == [
        *([0, 1, 2], [3], [4, 5], [6, 7, 8, 9, 10], [11, 12, 13, 14, 15], [16, 17, 18])
    ]


def test_many_arrays(tmp_path: Path) -> None:
    """There may be more than a layout has, which is 1,024."""
    arrays = {f"x{i}": np.full(8, i, np.int32) for i in range(1100)}
    safetensors.save_file(arrays, tmp_path / "x.safetensors")
    with mf.open_arrays(tmp_path / "x.safetensors") as stored:
        loaded = mf.load_arrays(stored, sharding("data"))
    assert {name: int(array[0]) for name, array in loaded.items()} == {
        f"x{i}": i for i in range(1100)
    }


@pytest.mark.parametrize(
    ("shardings", "kind", "text"),
    [
        (
            {"v": P()},
            mf.NotFoundError,
            "the file has no array 'v'; there are 'w'",
        ),
        (
            {"w": None},
            mf.InvalidArgumentError,
            "shardings['w']=None: expected a NamedSharding or a PartitionSpec; "
            "PartitionSpec() puts the whole array on every device",
        ),
        (
            sharding("data", "model", None),
            mf.InvalidArgumentError,
            "spec P('data', 'model', None) of array \"w\" has 3 entries, but shape (8, 4) has "
            "rank 2; give at most one entry per dimension",
        ),
        (
            {"w": np.zeros(2)},
            mf.InvalidArgumentError,
            "array([0., 0.]) is not a NamedSharding over devices; use NamedSharding(mesh, spec)",
        ),
        (
            P("data"),
            mf.InvalidArgumentError,
            "a PartitionSpec was given without a mesh; use NamedSharding(mesh, spec), or call "
            "jax.set_mesh(mesh) first",
        ),
    ],
)
def test_wrong_shardings(tmp_path: Path, shardings: Any, kind: Any, text: str) -> None:
    np.savez(tmp_path / "a.npz", w=values("float32"))
    with mf.open_arrays(tmp_path / "a.npz") as stored, pytest.raises(kind) as caught:
        mf.load_arrays(stored, shardings)
    assert str(caught.value) == f"mf.load_arrays: {text}"


def test_only_stored_arrays(tmp_path: Path) -> None:
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.load_arrays(mf.from_arrays({"w": values("float32")}), P())  # type: ignore[arg-type]
    assert str(caught.value).startswith("mf.load_arrays: stored=")
    assert str(caught.value).endswith("expected stored arrays; open them with mf.open_arrays")


def test_loading_is_no_part_of_a_program(tmp_path: Path) -> None:
    """Inside of jit, the array would be a constant."""
    np.savez(tmp_path / "a.npz", w=values("float32"))
    with mf.open_arrays(tmp_path / "a.npz") as stored:
        ways: dict[str, Callable[[], Any]] = {
            "mf.load_array": lambda: mf.load_array(stored, "w", sharding()),
            "mf.load_arrays": lambda: mf.load_arrays(stored, sharding())["w"],
        }
        for call, load in ways.items():
            with pytest.raises(mf.InvalidStateError) as caught:
                jax.jit(lambda x, load=load: x + load())(1.0)
            assert str(caught.value) == (
                f"{call}: an array would be loaded inside of a function that JAX traces: the "
                "program would hold it as a constant; load arrays outside of jax.jit, scan and "
                "the like, and pass them as arguments"
            )
            assert jax.grad(lambda x, load=load: x * load()[0, 0])(1.0) == 0


# ---- what the file may not have ----


def entry(begin: int, end: int, **other: Any) -> dict[str, Any]:
    return {"dtype": "U8", "shape": [end - begin], "data_offsets": [begin, end], **other}


@pytest.mark.parametrize(
    "header",
    [
        {"x": entry(4, 8)},
        {"x": entry(0, 4), "y": entry(6, 8)},
        {"x": entry(0, 4)},
        {"x": entry(0, 4), "y": entry(2, 8)},
        {"x": entry(0, 8), "y": entry(0, 8)},
        {},
        {"x": entry(0, 8), "y": entry(4, 4)},
        {"x": entry(0, 8), "y": entry(8, 8)},
        {"x": entry(4, 8), "y": entry(0, 4)},
        {"x": entry(0, 8, shape=[9])},
        {"x": entry(0, 8, shape=[-8])},
        {"x": entry(0, 8, shape=[8.0])},
        {"x": entry(0, 8, dtype="F32", shape=[2])},
        {"x": entry(0, 8, data_offsets=[8, 0])},
        {"x": entry(0, 8, data_offsets=[0, 8, 8])},
        {"x": entry(0, 8), "__metadata__": {"a": 1}},
        {"x": entry(0, 8), "__metadata__": {"a": "1"}},
        {"x": entry(0, 8), "__metadata__": None},
        {"x": entry(0, 8), "__metadata__": "a"},
        [],
    ],
    ids=str,
)
def test_the_reference_accepts_the_same_files(tmp_path: Path, header: Any) -> None:
    text = json.dumps(header).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))
    try:
        with safe_open(path, "np") as file:
            want = sorted(file.keys())
    except SafetensorError:
        want = None
    try:
        with mf.open_arrays(path) as stored:
            got = sorted(stored)
    except mf.DataLossError:
        got = None
    assert got == want


# ---- what is delivered ----


def test_64_bits(tmp_path: Path) -> None:
    """With x64 numbers are as stored, without it they are narrowed or refused."""
    path = tmp_path / "x.safetensors"
    arrays = {"i": np.array([1, 2**40]), "f": np.array([0.1, -2.5])}
    safetensors.save_file(arrays, path)
    with mf.open_arrays(path) as stored:
        assert mf.load_array(stored, "f", sharding()).dtype == np.float32
        with pytest.raises(mf.OutOfRangeError) as caught:
            mf.load_array(stored, "i", sharding())
        assert str(caught.value) == (
            'mf.load_array: array "i" holds 1099511627776, which int32 cannot; deliver it as int64 '
            '(in JAX: jax.config.update("jax_enable_x64", True)), or store smaller values'
        )
        jax.config.update("jax_enable_x64", True)
        try:
            for name, array in arrays.items():
                loaded = mf.load_array(stored, name, sharding("model"))
                assert_sharded(loaded, array, sharding("model"))
        finally:
            jax.config.update("jax_enable_x64", False)


def test_memory(tmp_path: Path) -> None:
    """Replicas share memory, which is aligned as JAX needs it; the file may be closed."""
    safetensors.save_file({"x": values("float32", (64, 64))}, tmp_path / "x.safetensors")
    with mf.open_arrays(tmp_path / "x.safetensors") as stored:
        array = mf.load_array(stored, "x", sharding("data"))
    (tmp_path / "x.safetensors").unlink()
    pointers = {shard.data.unsafe_buffer_pointer() for shard in array.addressable_shards}
    assert len(pointers) == 4
    assert all(pointer % 64 == 0 for pointer in pointers)
    assert np.array_equal(np.asarray(array), values("float32", (64, 64)))


def read_bytes() -> int:
    """Returns how many bytes this process has read by system calls."""
    return int(Path("/proc/self/io").read_text().split()[1])


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="needs Linux")
def test_only_the_part_is_read(tmp_path: Path) -> None:
    """Every byte is read once, whatever the sharding; other arrays are not read.

    tests/distributed/test_check_replicas.py has the same for the parts of processes.
    """
    array = np.arange(2**20, dtype=np.int32).reshape(256, 4096)
    safetensors.save_file({"other": array, "x": array}, tmp_path / "x.safetensors")
    with mf.open_arrays(tmp_path / "x.safetensors") as stored:
        mf.load_array(stored, "x", sharding())  # imports modules, which are files too
        for spec in ((), ("data",), (None, "data"), ("data", "model")):
            before = read_bytes()
            mf.load_array(stored, "x", sharding(*spec)).block_until_ready()
            assert array.nbytes <= read_bytes() - before <= array.nbytes + 2**16


def test_a_spec_in_a_context(tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", values("float32"))
    with jax.set_mesh(MESH), mf.open_arrays(tmp_path / "w.npy") as stored:
        assert mf.load_array(stored, "w", P("data")).sharding == sharding("data")


def test_shapes_are_known_before_loading(tmp_path: Path) -> None:
    """The mapping has what `mf.memory` needs."""
    safetensors.save_file({"w": values("float32"), "b": values("bfloat16")}, tmp_path / "x.st")
    with mf.open_arrays(tmp_path / "x.st") as stored:
        assert mf.memory(dict(stored)).totals["parameter_bytes"] == 8 * 4 * (4 + 2)
        assert "w" in stored
        assert stored["w"] == mf.StoredArray("w", (8, 4), np.dtype(np.float32))


# ---- errors ----


def test_skipped(tmp_path: Path) -> None:
    arrays = {
        "big": values("float32").astype(">f4"),
        "fortran": np.asfortranarray(values("float32")),
        "text": np.array(["a"]),
        "good": values("float32"),
    }
    np.savez(tmp_path / "a.npz", **arrays)  # type: ignore[arg-type]
    with mf.open_arrays(tmp_path / "a.npz") as stored:
        assert list(stored) == ["good"]
        assert str(stored) == (
            "1 stored array\n"
            "  good: float32[8, 4]\n"
            "  big: not loaded, its byte order is foreign; "
            'save array.astype(array.dtype.newbyteorder("="))\n'
            "  fortran: not loaded, its elements are in Fortran order; "
            "save numpy.ascontiguousarray(array)\n"
            "  text: not loaded, its type <U1 stands for text, which JAX does not have; "
            "save numbers"
        )
        with pytest.raises(mf.UnsupportedError) as caught:
            mf.load_array(stored, "fortran", sharding())
        with pytest.raises(mf.UnsupportedError) as all_of_them:
            mf.load_arrays(stored, sharding())
        assert list(mf.load_arrays(stored, dict.fromkeys(stored, sharding()))) == ["good"]
    assert str(caught.value) == (
        "mf.load_array: array 'fortran' cannot be loaded: its elements are in Fortran order; "
        "save numpy.ascontiguousarray(array)"
    )
    assert str(all_of_them.value) == (
        "mf.load_arrays: array 'big' cannot be loaded: its byte order is foreign; "
        'save array.astype(array.dtype.newbyteorder("=")); '
        "dict.fromkeys(stored, sharding) loads the others"
    )


def test_compressed(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", w=values("float32"))
    with mf.open_arrays(tmp_path / "a.npz") as stored:
        assert [s.reason for s in stored.skipped] == [
            "it is compressed; write the file with numpy.savez"
        ]


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        (
            {"field": "lable"},
            mf.NotFoundError,
            "the file has no array 'lable'; did you mean 'label'? There are 'label'",
        ),
        (
            {"record": 0},
            mf.InvalidArgumentError,
            "record and fill are for datasets; leave them out",
        ),
        (
            {"sharding": None},
            mf.InvalidArgumentError,
            "sharding=None: expected a NamedSharding or a PartitionSpec; "
            "PartitionSpec() puts the whole array on every device",
        ),
        ({"fill": 0}, mf.InvalidArgumentError, "record and fill are for datasets; leave them out"),
        (
            {"sharding": sharding(None, None, "model")},
            mf.InvalidArgumentError,
            "spec P(None, None, 'model') of array \"label\" has 3 entries, but shape (8, 4) has "
            "rank 2; give at most one entry per dimension",
        ),
    ],
)
def test_refused(tmp_path: Path, arguments: dict[str, Any], kind: Any, text: str) -> None:
    np.savez(tmp_path / "a.npz", label=values("float32"))
    given = {"field": "label", "sharding": sharding(), **arguments}
    with mf.open_arrays(tmp_path / "a.npz") as stored, pytest.raises(kind) as caught:
        mf.load_array(stored, **given)
    assert str(caught.value) == f"mf.load_array: {text}"


def test_a_path_is_no_source() -> None:
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.load_array("w.npy", "w", sharding())  # type: ignore[arg-type]
    assert str(caught.value) == (
        "mf.load_array: source='w.npy': expected a meshfeed.Dataset or stored arrays; "
        "make them with mf.open, mf.from_arrow, mf.from_arrays or mf.open_arrays"
    )


def test_no_array_that_can_be_loaded(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", w=values("float32"))
    with (
        mf.open_arrays(tmp_path / "a.npz") as stored,
        pytest.raises(mf.NotFoundError) as caught,
    ):
        mf.load_array(stored, "x", sharding())
    assert str(caught.value) == (
        "mf.load_array: the file has no array 'x', and none that can be loaded; "
        "print(stored.skipped) lists the others"
    )


def test_pickle(tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", values("float32"))
    with mf.open_arrays(tmp_path / "w.npy") as stored, pytest.raises(mf.InvalidStateError) as e:
        pickle.dumps(stored)
    assert str(e.value) == (
        "mf.open_arrays: stored arrays cannot be pickled: they belong to this process; "
        "send the path, and open it in the other process"
    )


@pytest.mark.parametrize("path", ["", 3, None, "a\0b", []])
def test_no_path(path: Any) -> None:
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.open_arrays(path)
    assert str(caught.value) == f"mf.open_arrays: path={path!r}: expected the path of a file"


def test_a_directory(tmp_path: Path) -> None:
    with pytest.raises(mf.UnsupportedError) as caught:
        mf.open_arrays(tmp_path)
    assert str(caught.value) == (
        f"mf.open_arrays: {tmp_path}: this is a directory; "
        "give one file of it, or the index: model.safetensors.index.json"
    )


def test_strange_names(tmp_path: Path) -> None:
    names = ["a" * 400, 'q"uo/te', "\n", "naïve", "a\0b", "\x7f", "a.b[0]"]
    arrays = {name: np.full(4, i, np.int8) for i, name in enumerate(names)}
    safetensors.save_file(arrays, tmp_path / "x.safetensors")
    loads(tmp_path / "x.safetensors", arrays, "data")


def test_damaged(tmp_path: Path) -> None:
    """A file is damaged when it is opened, or later."""
    path = tmp_path / "x.safetensors"
    safetensors.save_file({"x": values("float32", (512, 512))}, path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-8])
    with pytest.raises(mf.DataLossError) as caught:
        mf.open_arrays(path)
    assert str(caught.value) == (
        f"mf.open_arrays: {path}: array 'x' is at the bytes [0, 1048576) of 1048568; "
        "write or fetch the file again"
    ).replace("'x'", '"x"')
    path.write_bytes(whole)
    with mf.open_arrays(path) as stored:
        with path.open("r+b") as file:
            file.truncate(len(whole) // 2)
        with pytest.raises(mf.DataLossError, match=r"x\.safetensors"):
            mf.load_array(stored, "x", sharding())


@pytest.mark.deep
def test_more_than_2_gib(tmp_path: Path) -> None:
    """The rows of weights have no limit of their own."""
    shape = 3, 2**30 + 64
    entry = {"dtype": "U8", "shape": shape, "data_offsets": [0, shape[0] * shape[1]]}
    header = json.dumps({"x": entry}).encode()
    path = tmp_path / "x.safetensors"
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + shape[0] * shape[1])
        file.seek(-5, os.SEEK_END)
        file.write(b"\7")
    with mf.open_arrays(path) as stored:
        array = mf.load_array(stored, "x", sharding(None, "data"))
        ends = {int(np.asarray(shard.data)[2, -5]) for shard in array.addressable_shards}
    assert ends == {0, 7}


def test_closed(tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", values("float32"))
    stored = mf.open_arrays(tmp_path / "w.npy")
    stored.close()
    stored.close()
    assert list(stored) == ["w"]
    with pytest.raises(mf.InvalidStateError):
        mf.load_array(stored, "w", sharding())
