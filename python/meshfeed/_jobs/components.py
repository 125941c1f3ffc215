"""Names the component that differs between the datasets of two processes.

A fingerprint is made of a tree of components (see `mf_loader_components` in meshfeed.h), such as a
filter over files, which have record batches and bytes. If fingerprints differ, the processes
publish their trees. Each has up to 2,048 components, so errors name one of 1,000 files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from meshfeed._jobs.wording import named

Component = Mapping[str, Any]  # "label", "hash", perhaps the "name" of a file, and those "below"


def difference(here: Component, there: Component) -> str:
    """Returns the first component that differs, while the components below it are equal.

    Examples:
        >>> files = {"label": "files", "hash": "1"}
        >>> kept = [{"label": "filter", "hash": n, "below": [files]} for n in "23"]
        >>> difference(*kept)
        'the filter'
        >>> a, b = ({"label": "bytes", "hash": n} for n in "ab")
        >>> both = [{"label": "files", "hash": str(n), "below": n} for n in ([a, b], [b, a])]
        >>> difference(*both)
        'the order of the files'
        >>> difference(kept[0], files)
        'the filter, which is files there'
        >>> c, d = (a | {"name": "x.parquet", "stamp": f'ETag "{n}"'} for n in (1, 2))
        >>> difference(c, d | {"hash": "d"})
        'the bytes (x.parquet: ETag "1" and ETag "2")'
    """
    label, below = here["label"], (here.get("below", []), there.get("below", []))
    if label != there["label"]:
        return f"the {label}, which is {there['label']} there"
    if len(below[0]) != len(below[1]):
        return f"the number of the {label}: {len(below[0])} and {len(below[1])}{_only(*below)}"
    hashes = [[each["hash"] for each in part] for part in below]
    differing = [i for i, pair in enumerate(zip(*hashes, strict=True)) if len(set(pair)) > 1]
    if not differing:
        told = [_joined(here, there, key) for key in ("name", "stamp")]
        what = ": ".join(filter(None, told))
        return f"the {label} ({what})" if what else f"the {label}"
    if sorted(hashes[0]) == sorted(hashes[1]):
        return f"the order of the {label}"
    first = differing[0]
    inner = difference(below[0][first], below[1][first])
    return f"{inner} in dataset {first}" if label == "concatenation" else inner


def _joined(here: Component, there: Component, key: str) -> str:
    """Returns what both components have under a key, once if it is equal."""
    return " and ".join(dict.fromkeys(c[key] for c in (here, there) if key in c))


def _only(*below: Sequence[Component]) -> str:
    """Names the first file that only one of two lists has."""
    names = [[c["name"] for c in part if "name" in c] for part in below]
    more = next(
        (name for part in names for name in part if name not in names[0] or name not in names[1]),
        None,
    )
    return "" if more is None else f", and only one has {more}"


def described(groups: Sequence[tuple[Sequence[int], Component]]) -> list[str]:
    """Describes how the datasets of groups of processes differ from the first group's datasets."""
    (here, mine), *others = groups
    return [
        f"dataset differs in {difference(mine, theirs)}, between {named(here)} and {named(there)}"
        for there, theirs in others
        if theirs["hash"] != mine["hash"]
    ]
