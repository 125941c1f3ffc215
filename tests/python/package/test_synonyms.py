"""Names of other libraries: each is an error that says what to write here."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from typing import Any

import datasets
import grain
import numpy as np
import pytest

import meshfeed as mf
from meshfeed._io import synonyms

# The public methods of tf.data.Dataset of TensorFlow 2.21, and the arguments of torch 2.15's
# DataLoader and DistributedSampler. Neither library is installed here.
TENSORFLOW = """apply as_numpy_iterator batch bucket_by_sequence_length cache cardinality
choose_from_datasets concatenate counter element_spec enumerate filter flat_map from_generator
from_tensor_slices from_tensors get_single_element group_by_window ignore_errors interleave
list_files load map options padded_batch prefetch ragged_batch random range rebatch reduce
rejection_resample repeat sample_from_datasets save scan shard shuffle skip snapshot sparse_batch
take take_while unbatch unique window with_options zip"""
TORCH = """dataset batch_size shuffle sampler batch_sampler num_workers collate_fn pin_memory
drop_last timeout worker_init_fn multiprocessing_context generator prefetch_factor
persistent_workers pin_memory_device in_order num_replicas rank seed"""

TABLES = [
    synonyms.DATASET,
    synonyms.LOADER,
    synonyms.OPTIONS,
    synonyms.METHODS,
    synonyms.PACKAGE,
]


def dataset() -> mf.Dataset:
    return mf.from_arrays({"x": np.arange(8)})


def public(kind: Any) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def arguments(kind: Any) -> dict[str, set[str]]:
    """Returns the arguments of the public methods of a class."""
    methods = {name: getattr(kind, name) for name in public(kind)}
    return {n: set(inspect.signature(m).parameters) for n, m in methods.items() if callable(m)}


def test_every_argument_of_other_libraries_is_known() -> None:
    ours = arguments(mf.Dataset)
    for kind in (grain.MapDataset, grain.IterDataset, datasets.Dataset, datasets.IterableDataset):
        for name, given in arguments(kind).items():
            assert given - ours.get(name, given) - set(synonyms.METHODS) == set(), name


def test_every_name_of_other_libraries_is_known() -> None:
    ours = public(mf.Dataset)
    kinds = (grain.MapDataset, grain.IterDataset, datasets.Dataset, datasets.IterableDataset)
    for names in (*map(public, kinds), set(TENSORFLOW.split())):
        assert names - ours - set(synonyms.DATASET) == set()
    options = set(inspect.signature(mf.Loader).parameters)
    for names in (set(TORCH.split()), set(inspect.signature(grain.DataLoader).parameters)):
        assert names - options - set(synonyms.OPTIONS) == set()
    attributes = (set(TORCH.split()) - {"num_replicas", "rank"}) | public(grain.DatasetIterator)
    assert attributes - public(mf.Loader) - set(synonyms.LOADER) == set()


def test_advice_names_what_exists() -> None:
    """Every method, function and argument that the advice names exists."""
    options = set(inspect.signature(mf.Loader).parameters)
    options |= set(inspect.signature(mf.open).parameters)
    options = options.union(*arguments(mf.Dataset).values())
    for advice in {text for table in TABLES for text in table.values()}:
        for owner, name in re.findall(r"\b(ds|loader|mf)\.(\w+)", advice):
            kind: Any = {"ds": mf.Dataset, "loader": mf.Loader, "mf": mf}[owner]
            assert hasattr(kind, name), advice
        for name in re.findall(r"\b(\w+)=", advice):
            known = options if "ds.pad" not in advice else {"length"}
            known |= {"epoch"} if "loader.seek(" in advice else set()
            assert name in known, advice


def test_no_name_of_ours_is_in_a_table() -> None:
    with mf.Loader(dataset(), batch_size=2) as loader:
        for table, owner in (
            (synonyms.DATASET, dataset()),
            (synonyms.LOADER, loader),
            (synonyms.PACKAGE, mf),
        ):
            assert [name for name in table if hasattr(owner, name)] == []
    options = set(inspect.signature(mf.Loader).parameters) - {"source"}  # which has no name
    assert options & set(synonyms.OPTIONS) == set()


def test_the_errors() -> None:
    ds: Any = dataset()
    package: Any = mf
    with pytest.raises(AttributeError) as caught:
        ds.repeat(2)
    message = "a Dataset has no 'repeat'; mf.Loader(ds, batch_size=…, epochs=2) repeats it"
    assert str(caught.value) == message
    with mf.Loader(ds, batch_size=2) as loader, pytest.raises(AttributeError) as caught:
        loader.get_state()  # type: ignore[attr-defined]
    assert str(caught.value) == "a Loader has no 'get_state'; loader.state() returns the state"
    with pytest.raises(AttributeError, match=r"has no attribute 'Subset'; ds\.take\(indices\)"):
        package.Subset  # noqa: B018
    with pytest.raises(TypeError) as wrong:
        mf.Loader(ds, batch_size=2, num_workers=4)  # type: ignore[call-overload]
    assert str(wrong.value) == (
        "mf.Loader: unexpected keyword argument 'num_workers'; leave it out: threads of the "
        "library gather rows, and there are no worker processes"
    )
    with pytest.raises(TypeError, match=r"argument 'epoch'; did you mean 'epochs'\?"):
        mf.Loader(ds, batch_size=2, epoch=4)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="give the dataset first"):
        mf.Loader(source=ds, batch_size=2)  # type: ignore[call-overload]
    with pytest.raises(TypeError) as wrong:
        ds.filter(lambda rows: rows["x"] > 3, num_proc=4)
    assert str(wrong.value) == (
        "ds.filter: unexpected keyword argument 'num_proc'; leave it out: threads of the "
        "library gather rows, and there are no worker processes"
    )
    for call, message in {
        "ds.pad('x', lenght=3)": "did you mean 'length'? There are 'field', 'length', 'value', ",
        "ds.sha256(full=True)": "ds.sha256: unexpected keyword argument 'full'; it has none",
        "ds.head(rows=3)": "ds.head: unexpected keyword argument 'rows'; there are 'n'",
    }.items():
        with pytest.raises(TypeError) as wrong:
            eval(call)
        assert message in str(wrong.value)
    with pytest.raises(mf.InvalidArgumentError, match=r"ds\.slice\(0, 5\) has the first 5 records"):
        ds.take(5)
    with pytest.raises(mf.InvalidArgumentError, match=r"ds\.take\(indices\) selects records"):
        ds.select(range(5))


def test_other_names_have_the_error_of_python() -> None:
    ds: Any = dataset()
    with pytest.raises(AttributeError) as caught:
        ds.slise  # noqa: B018
    assert str(caught.value) == "'Dataset' object has no attribute 'slise'"
    assert (caught.value.name, caught.value.obj) == ("slise", ds)

    class Broken(mf.Dataset):
        @property
        def flat_map(self) -> None:
            raise AttributeError("of the property")

    with pytest.raises(AttributeError, match=r"^of the property$"):
        object.__new__(Broken).flat_map  # noqa: B018


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_probes_of_other_code_work(copied: Any) -> None:
    ds = dataset()
    with mf.Loader(ds, batch_size=2) as loader:
        for it in (ds, loader):
            assert not hasattr(it, "flat_map")
            assert getattr(it, "to_device", None) is None
            assert not hasattr(it, "__array__")
            with pytest.raises(mf.InvalidStateError, match="cannot be pickled"):
                copied(it)
            for name in ("_ipython_canary_method_should_not_exist_", "_repr_png_"):  # of IPython
                assert getattr(it, name, None) is None
        assert "<table" in ds._repr_html_()
    new: Any = object.__new__(mf.Dataset)  # such as one that is unpickled by hand
    assert not hasattr(new, "anything")
    assert not hasattr(new, "_facts")
