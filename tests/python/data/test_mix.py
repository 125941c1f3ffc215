"""`mf.mix`: draws with weights, on other processes, over epochs, after a resume, with errors."""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import pyarrow as pa
import pytest
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import meshfeed as mf

SIZES = {"web": 500, "code": 90, "math": 40}
WEIGHTS = {"web": 6.0, "code": 3.0, "math": 1.0}


def parts() -> dict[str, mf.Dataset]:
    """Returns datasets with rows that tell where they are from."""
    return {
        name: mf.from_arrays({"x": np.arange(n) + 1000 * i})
        for i, (name, n) in enumerate(SIZES.items())
    }


def values(ds: mf.Dataset, epochs: int = 1, **options: Any) -> np.ndarray[Any, Any]:
    with mf.Loader(ds, batch_size=30, epochs=epochs, **options) as loader:
        return np.concatenate([batch["x"] for batch in loader])


def test_each_dataset_has_its_order_and_its_share() -> None:
    """Over several epochs of the mixture, each dataset gives what a loader of it alone gives."""
    datasets = parts()
    drawn = values(mf.mix(datasets, WEIGHTS, seed=4), epochs=3)
    assert len(drawn) == 3 * sum(SIZES.values())
    for i, (name, ds) in enumerate(datasets.items()):
        got = drawn[drawn // 1000 == i]
        assert abs(len(got) - WEIGHTS[name] / 10 * len(drawn)) < 1.68 + 16
        epochs = -(-len(got) // SIZES[name])
        with mf.Loader(ds, batch_size=10, epochs=epochs, shuffle=True, seed=4) as loader:
            alone = np.concatenate([batch["x"] for batch in loader])
        assert np.array_equal(got, alone[: len(got)])


def test_without_shuffle_records_are_in_order() -> None:
    drawn = values(mf.mix(parts(), WEIGHTS, shuffle=False))
    for i, n in enumerate(SIZES.values()):
        got = drawn[drawn // 1000 == i] - 1000 * i
        assert np.array_equal(got, np.arange(len(got)) % n)


@pytest.mark.parametrize("shape", [(1, 8), (2, 4), (8, 1)])
def test_a_mixture_is_the_same_on_any_mesh_and_after_a_resume(shape: tuple[int, int]) -> None:
    ds = mf.mix(parts(), WEIGHTS, source="source")
    expected = [dict(batch) for batch in mf.Loader(ds, batch_size=16, epochs=2)]
    mesh = Mesh(np.array(jax.devices()[:8]).reshape(shape), ("data", "model"))
    specs = {"x": P("data"), "source": P()}
    with mf.Loader(ds, mesh, specs, batch_size=16, epochs=2) as loader:
        batches = iter(loader)
        seen = [next(batches) for _ in range(60)]
        state = loader.state()
    assert len(state) <= 256
    with mf.Loader(ds, mesh, specs, batch_size=16, epochs=2) as loader:
        loader.restore(state)
        seen += list(loader)
    assert len(seen) == len(expected)
    for batch, rows in zip(seen, expected, strict=True):
        assert np.array_equal(batch["x"], rows["x"])
        assert np.array_equal(batch["source"], rows["x"] // 1000)
    assert ds.schema["source"].names == ("web", "code", "math")


def test_a_change_of_weights_comes_at_its_draw() -> None:
    later = {"web": 0, "code": 1, "math": 1}
    before = values(mf.mix(parts(), WEIGHTS))
    after = values(mf.mix(parts(), WEIGHTS, schedule=[(240, later)]))
    assert np.array_equal(before[:240], after[:240])
    assert set(after[240:] // 1000) == {1, 2}
    for i in (1, 2):  # each continues where it was
        drawn, alone = after[after // 1000 == i], before[before // 1000 == i]
        n = min(len(drawn), len(alone))
        assert np.array_equal(drawn[:n], alone[:n])


def test_blocks_of_datasets() -> None:
    """Each dataset is in the order in blocks of a loader over it alone."""
    datasets, order = parts(), mf.Blocks(records=5, window=3)
    drawn = values(mf.mix(datasets, WEIGHTS, seed=4, order=order), epochs=2)
    for i, (name, ds) in enumerate(datasets.items()):
        got = drawn[drawn // 1000 == i]
        epochs = -(-len(got) // SIZES[name])
        with mf.Loader(ds, batch_size=10, epochs=epochs, order=order, seed=4) as loader:
            alone = np.concatenate([batch["x"] for batch in loader])
        assert np.array_equal(got, alone[: len(got)])
    assert len(mf.mix(datasets, WEIGHTS, order="blocks")) == len(mf.mix(datasets, WEIGHTS))


def test_a_state_fits_after_stages_were_appended() -> None:
    """Changes of the weights may be appended behind the state, also with a new dataset."""
    first = [(240, {"web": 0, "code": 1, "math": 1})]
    added = {**parts(), "new": mf.from_arrays({"x": np.arange(9000, 9050)})}

    def mixed(schedule: Any, datasets: Any = None, **options: Any) -> mf.Dataset:
        datasets = datasets or parts()
        weights = {name: WEIGHTS.get(name, 0) for name in datasets}
        stages = [(at, {name: w.get(name, 0) for name in datasets}) for at, w in schedule]
        return mf.mix(datasets, weights, schedule=stages, length=400, **options)

    with mf.Loader(mixed(first), batch_size=16, epochs=-1) as loader:
        batches = iter(loader)
        for _ in range(30):  # 5 batches into epoch 1: draw 480
            next(batches)
        state = loader.state()
        assert (state["epoch"], state["position"]) == (1, 80)
        expected = [next(batches)["x"] for _ in range(2)]
    appended = mixed([*first, (480 + 32, {"new": 1})], added)
    for ds in (appended, appended.rename({"x": "y"}).rename({"y": "x"})):
        with mf.Loader(ds, batch_size=16, state=state) as loader:
            batches = iter(loader)
            assert np.array_equal([next(batches)["x"] for _ in range(2)], expected)
            assert (next(batches)["x"] >= 9000).all()
    mf.Loader(mixed([*first, (480, WEIGHTS)]), batch_size=16, state=state).close()
    with pytest.raises(
        mf.IncompatibleError,
        match="from record 479 of all epochs on, which is record 79 of epoch 1, but the state was "
        "saved without this change at record 80 of epoch 1; let later stages begin where",
    ):
        mf.Loader(mixed([*first, (479, WEIGHTS)]), batch_size=16, state=state)
    changed = mixed([(240, {"web": 1})]), mixed([(241, first[0][1])]), mixed(first, seed=1)
    for ds in (*changed, mixed(first, order="blocks")):
        with pytest.raises(
            mf.IncompatibleError, match="may append stages that begin at record 80 of"
        ):
            mf.Loader(ds, batch_size=16, state=state)
    with mf.Loader(mixed([*first, (600, WEIGHTS)]).slice(8, 392), batch_size=16) as loader:
        loader.seek(epoch=1, position=32)
        cut = loader.state()
    mf.Loader(
        mixed([*first, (600, WEIGHTS), (800, WEIGHTS)]).slice(8, 392), batch_size=16, state=cut
    )


def test_stages_appended_inside_of_another_dataset() -> None:
    """A mixture in another one, or in a concatenation, may get stages behind its own draws."""

    def inner(*schedule: Any) -> mf.Dataset:
        datasets = {name: parts()[name] for name in ("web", "code")}
        return mf.mix(datasets, {"web": 3, "code": 1}, schedule=schedule, length=160)

    def outer(inner: mf.Dataset) -> mf.Dataset:
        return mf.mix(
            {"math": parts()["math"], "inner": inner}, {"math": 1, "inner": 1}, length=200
        )

    def joined(inner: mf.Dataset) -> mf.Dataset:
        return mf.concat([parts()["math"], inner])

    for over, drawn in ((outer, 40), (joined, 40)):  # of the inner one, in 80 records
        with mf.Loader(over(inner()), batch_size=16) as loader:
            batches = iter(loader)
            for _ in range(5):
                next(batches)
            state = loader.state()
            expected = next(batches)["x"]
        later = over(inner((drawn + 30, {"web": 0, "code": 1})))
        with mf.Loader(later, batch_size=16, state=state) as loader:
            assert np.array_equal(next(iter(loader))["x"], expected)
        with pytest.raises(
            mf.IncompatibleError, match=r"was saved without this change at record 80"
        ):
            mf.Loader(over(inner((drawn - 8, {"web": 0, "code": 1}))), batch_size=16, state=state)


def test_certificates_of_before_and_after_an_appended_stage() -> None:
    """Each is checked alone, because they name two datasets."""

    def play(ds: mf.Dataset, state: Any = None) -> tuple[Any, mf.Certificate]:
        with mf.Loader(ds, batch_size=16, state=state) as loader:
            for _ in zip(range(5), loader, strict=False):
                pass
            return loader.state(), loader.certificate()

    state, before = play(mf.mix(parts(), WEIGHTS))
    later = mf.mix(parts(), WEIGHTS, schedule=[(96, dict.fromkeys(SIZES, 1))])
    _, after = play(later, state)
    before.check(first=(0, 0), last=(0, 80))
    after.check(first=(0, 80), last=(0, 160))
    assert not after.complete(first=(0, 79), last=(0, 160))
    with pytest.raises(mf.IncompatibleError, match="different sequences cannot be added: dataset"):
        before + after


def test_lengths() -> None:
    even = dict.fromkeys(SIZES, 1)
    assert len(mf.mix(parts(), even)) == 630
    assert len(mf.mix(parts(), even, length=77)) == 77
    assert 100 <= len(mf.mix(parts(), even, stop="shortest")) <= 140  # 40 draws of one of three
    assert 1470 <= len(mf.mix(parts(), even, stop="longest")) <= 1530


def test_packed_and_filtered_datasets_are_mixed() -> None:
    """A mixture in a mixture, of packed and of filtered rows, is sharded as any dataset."""
    docs = [list(range(1 + i % 7)) for i in range(100)]
    texts = {name: mf.from_arrow(pa.table({"tokens": docs[i:]})) for i, name in enumerate("ab")}
    packed = {name: ds.pack("tokens", length=16) for name, ds in texts.items()}
    kept = packed["a"].filter(np.arange(len(packed["a"])) % 2 == 0)
    inner = mf.mix({"a": kept, "b": packed["b"]}, {"a": 1, "b": 2})
    ds = mf.mix({"inner": inner, "b": packed["b"]}, {"inner": 1, "b": 1})
    rows = ds[:]
    assert rows["tokens"].shape == (len(ds), 16)
    with mf.Loader(ds, batch_size=len(ds)) as loader:
        assert np.array_equal(next(iter(loader))["tokens"], rows["tokens"])


def expect(pattern: str, **arguments: Any) -> None:
    with pytest.raises(mf.InvalidArgumentError, match=re.escape(pattern)):
        mf.mix(**{"datasets": parts(), "weights": WEIGHTS, **arguments})


def test_errors() -> None:
    expect("datasets=[]: expected a dict of datasets", datasets=[])
    expect("datasets['x']=3: expected a dataset", datasets={"x": 3})
    expect("weights has the names ['web'], but the datasets are", weights={"web": 1})
    expect("weights=[1]: expected a weight for each dataset", weights=[1])
    expect("weights['web']=-1: expected a number from 0 on", weights={**WEIGHTS, "web": -1})
    expect("expected a number from 0 on", weights={**WEIGHTS, "web": float("nan")})
    expect("all weights from draw 0 on are 0", weights=dict.fromkeys(SIZES, 0))
    expect("schedule[0]=5: expected the number of a draw, and weights", schedule=[5])
    expect("schedule[0]=0: expected an integer from 1", schedule=[(0, WEIGHTS)])
    expect("list the changes in their order", schedule=[(9, WEIGHTS), (8, WEIGHTS)])
    expect('stop=\'soon\': expected "shortest" or "longest"', stop="soon")
    expect("length=0: expected an integer from 1", length=0)
    expect("follows from the processes of a loader", order="local")
    expect("contradict each other", order="blocks", shuffle=False)
    with pytest.raises(mf.InvalidArgumentError, match="let the mixture shuffle its datasets"):
        mf.Loader(mf.mix(parts(), WEIGHTS), batch_size=8, shuffle=True)
    with pytest.raises(mf.InvalidArgumentError, match="before they are mixed"):
        mf.mix(parts(), WEIGHTS).filter(lambda rows: rows["x"] > 5)
    with pytest.raises(mf.UnsupportedError, match="keep the rows of each dataset before"):
        mf.mix(parts(), WEIGHTS).cache()


def packed(first: int, count: int, seed: int) -> mf.Dataset:
    """Returns packed documents; all tokens are different numbers."""
    lengths = np.random.default_rng(seed).integers(0, 40, count)
    ends = first + np.cumsum(lengths)
    documents = [list(range(end - n, end)) for end, n in zip(ends, lengths, strict=True)]
    table = pa.table({"tokens": pa.array(documents, pa.list_(pa.int32()))})
    return mf.from_arrow(table).pack("tokens", length=32)


def step(loaders: list[mf.Loader], shape: tuple[int, int]) -> dict[str, np.ndarray[Any, Any]]:
    """Returns the next global batch, put together from the blocks of all processes."""
    whole = {name: np.full(shape, -7, np.int32) for name in ("tokens", "segment_ids", "positions")}
    for loader in loaders:
        for name, blocks in next(iter(loader)).items():
            for index, block in blocks:
                whole[name][index] = block
    return whole


def test_a_job_on_tokens_changes_its_processes() -> None:
    """1, 2, 4 and 8 processes in turns deliver the batches of one: each token once in an epoch."""
    parts = {"a": packed(1, 300, 1), "b": packed(10**6, 200, 2)}
    plain = mf.concat(list(parts.values()))
    plain = plain.slice(0, len(plain) // 8 * 8)
    mixed = mf.mix(parts, {"a": 2, "b": 1}, seed=5)
    runs: list[tuple[mf.Dataset, dict[str, Any]]] = [
        (plain, {"shuffle": True, "seed": 5}),
        (mixed, {}),
    ]
    for ds, options in runs:
        size = 8
        axes, spec = {"data": 4, "seq": 2}, mf.P("data", "seq")
        with mf.Loader(ds, batch_size=size, epochs=1, **options) as loader:
            expected = [dict(batch) for batch in loader]
        state: Any = None
        for at, batch in enumerate(expected):
            count = (1, 2, 4, 8)[at % 4]
            lay = mf.layout(axes, spec, ds, batch_size=size, processes=count)
            given = {**options, "state": state}
            loaders = [mf.Loader(ds, layout=lay, process=p, **given) for p in range(count)]
            for name, rows in step(loaders, (size, 32)).items():
                np.testing.assert_array_equal(rows, batch[name])
            state = loaders[-1].state()
            for loader in loaders:
                loader.close()
        assert len(expected) > 20
        if ds is plain:
            delivered, stored = (
                np.concatenate([rows["tokens"] for rows in of]) for of in (expected, [ds[:]])
            )
            np.testing.assert_array_equal(np.sort(delivered, None), np.sort(stored, None))
            assert len(np.unique(stored)) == np.count_nonzero(stored) + 1  # padding
