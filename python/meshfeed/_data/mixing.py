"""Mixes datasets: draws from several ones with weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from meshfeed._data.dataset import Dataset, origin
from meshfeed._data.joining import joined
from meshfeed._io.arguments import RECORDS, WIDE, Checks
from meshfeed._native import calls

if TYPE_CHECKING:
    from meshfeed._loader.orders import Blocks


def mix(
    datasets: Mapping[str, Dataset],
    weights: Mapping[str, float],
    *,
    shuffle: bool | None = None,
    order: Literal["sequential", "shuffle", "blocks"] | Blocks | None = None,
    seed: int = 0,
    schedule: Iterable[tuple[int, Mapping[str, float]]] = (),
    length: int | None = None,
    stop: Literal["shortest", "longest"] | None = None,
    source: str | None = None,
) -> Dataset:
    """Returns a view that draws its records from several datasets with weights.

    Draws are balanced: after any multiple of 64 draws, each dataset is within 1.68 draws of its
    share. Within 64 draws their order is random, so no device gets rows of one dataset only. A
    dataset that has given all its records begins again, in a new order. The view has a length, and
    the next epoch of a loader continues with the next draws.

    Each draw follows from its number, so a run resumes on any number of processes.

    A loader takes the records in their order: `shuffle` belongs here, and not to the loader.
    Filter, split, pack and cache the datasets before they are mixed.

    Args:
        datasets: the datasets by name. Their fields agree as for `concat`.
        weights: a number from 0 on for each dataset, in any unit.
        shuffle: whether each epoch of each dataset is shuffled, in the order of a loader over the
            dataset alone with ``shuffle=True`` and this seed. It is, unless `order` says other.
        order: the order of each epoch of each dataset, as in `Loader`: "blocks" or `mf.Blocks` is
            for data that are slow to read at random. Windows have up to 128 MiB of rows by default.
        seed: of the draws, and of the shuffles.
        schedule: later changes of the weights: the number of the draw, counted over all epochs, and
            the weights from there on. Step ``n`` begins at draw ``n * batch_size``. Each dataset
            continues where it was. A saved state fits after changes were appended that begin where
            it was saved or later.
        length: the draws of an epoch. By default there are as many as all datasets have records.
        stop: "shortest" ends the epoch when the first dataset has given all its records, "longest"
            when each has, if `length` is not given. Datasets with the weight 0 do not count.
        source: the name of an added field of int32: the number of the dataset of each row.

    Raises:
        InvalidArgumentError: a name, a weight or a position makes no sense, or two datasets have
            different fields.

    Examples:
        >>> import meshfeed as mf, numpy as np
        >>> web, code = (mf.from_arrays({"x": np.arange(n)}) for n in (1000, 50))
        >>> ds = mf.mix({"web": web, "code": code}, {"web": 0.75, "code": 0.25}, source="source")
        >>> with mf.Loader(ds, batch_size=256) as loader:
        ...     np.bincount(next(iter(loader))["source"]).tolist()
        [192, 64]
    """
    with Checks("mf.mix") as check:
        given: Any = datasets
        if not isinstance(given, Mapping) or not given:
            raise check.wrong("datasets", datasets, 'a dict of datasets, such as {"web": web}')
        for name, ds in given.items():
            if not isinstance(ds, Dataset):
                raise check.wrong(f"datasets[{name!r}]", ds, "a dataset")
        names = [check.field("datasets", name) for name in datasets]
        stages = [{"start": 0, "weights": _weights(check, "weights", weights, names)}]
        later: Any = schedule
        for i, stage in enumerate(later):
            what = f"schedule[{i}]"
            if not isinstance(stage, tuple | list) or len(stage) != 2:
                raise check.wrong(what, stage, "the number of a draw, and weights")
            start = check.integer(what, stage[0], 1, RECORDS)
            stages.append({"start": start, "weights": _weights(check, what, stage[1], names)})
        name = check.order(order, shuffle) or "shuffle"
        handle = calls.dataset_view(
            "mix",
            [ds.handle for ds in datasets.values()],
            names=names,
            schedule=stages,
            order=name,
            seed=check.integer("seed", seed, -WIDE, WIDE),
            length=check.optional("length", length, 1, RECORDS),
            stop=None if stop is None else check.choice("stop", stop, "shortest", "longest"),
            source=None if source is None else check.field("source", source),
        )
        shared = joined(check, [origin(ds) for ds in datasets.values()])
        if name.startswith("shuffle") and not shared.scattered:
            shared.scattered = "mix"
        mixed = Dataset(handle, shared)
        shared.repeats *= len(mixed) / max(sum(map(len, datasets.values())), 1)
        return mixed


def _weights(check: Checks, what: str, weights: Any, names: list[str]) -> list[float]:
    """Returns the weights of all datasets, in their order."""
    if not isinstance(weights, Mapping):
        raise check.wrong(what, weights, 'a weight for each dataset, such as {"web": 0.7}')
    if set(weights) != set(names):
        message = f"{what} has the names {list(weights)}, but the datasets are {names}"
        raise check.misfit(message, "give each dataset a weight, 0 for none of its rows")
    values = [(f"{what}[{name!r}]", weights[name]) for name in names]
    found = [check.fraction(label, value) for label, value in values]
    for (label, value), number in zip(values, found, strict=True):
        if not 0 <= number < math.inf:
            raise check.wrong(label, value, "a number from 0 on")
    return found
