"""The options of a loader: what the user typed, checked, as the C library reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from meshfeed._feed.feeds import Request
from meshfeed._io.arguments import DEPTH, WIDE, Checks, State
from meshfeed.dataset import Dataset
from meshfeed.planning import Layout


class Options:
    """The options that do not say what a batch is; see `Loader` for their meaning.

    Attributes:
        epochs: how many there are in all, or None.
        state: what to continue from, or None.
        device_prefetch: how many batches to send ahead, or None for the default.
        max_host_bytes: what batches may take, or None.
    """

    def __init__(
        self,
        check: Checks,
        source: Dataset,
        *,
        order: Any,
        shuffle: Any,
        seed: Any,
        epochs: Any,
        prefetch: Any,
        device_prefetch: Any,
        max_host_bytes: Any,
        state: Any,
        dataset: Any,
        fill: Any,
        loading: Any,
    ) -> None:
        self._order = check.order(order, shuffle)
        self._seed = check.optional("seed", seed, -WIDE, WIDE)
        self.epochs = check.epochs(epochs)
        self._prefetch = check.optional("prefetch", prefetch, 0, DEPTH)
        self.state: State | None = None if state is None else check.state(state)
        self._ignores = check.ignores(dataset)
        self._fill = check.fills(
            fill, tuple(source.schema), {s.name: s.reason for s in source.skipped}
        )
        self.max_host_bytes = check.optional("max_host_bytes", max_host_bytes, 1, WIDE)
        self.device_prefetch = check.optional("device_prefetch", device_prefetch, 0, DEPTH)
        self._loading = check.loading(loading)

    def request(
        self, source: Dataset, mesh: Any, specs: Any, batch: dict[str, Any], mask_name: str
    ) -> Request:
        """Gives what a loader of whole batches is asked for.

        Args:
            source: the dataset.
            mesh: the mesh, or None.
            specs: the tree of specs, or None.
            batch: the layout document's part of that name.
            mask_name: the name of the mask, where there is one.
        """
        return Request(
            source,
            mesh,
            specs,
            batch,
            mask_name=mask_name,
            order=self._order,
            seed=self._seed or 0,
            prefetch=2 if self._prefetch is None else self._prefetch,
            loading=self._loading,
        )

    def document(self, process: int, run: int | None) -> dict[str, Any]:
        """Gives what the C library takes: what was given, and the process.

        Args:
            process: the process whose blocks to load.
            run: how many processes there are; None for those of the layout.
        """
        options: dict[str, Any] = {
            "order": self._order,
            "seed": self._seed,
            "epochs": -1 if self.epochs is None else self.epochs,  # loops end here, not in C
            "prefetch": self._prefetch,
            "state": self.state,
            "ignore_dataset": self._ignores,
            "fill": self._fill,
            "max_host_bytes": self.max_host_bytes,
            "process": process,
            "processes": run,
        }
        return {key: value for key, value in options.items() if value is not None}

    @property
    def alike(self) -> Mapping[str, Any]:
        """What no layout says and all processes of a job must have alike."""
        return {"epochs": self.epochs, "fill": self._fill}


def check_kinds(check: Checks, source: Any, layout: Any, process: Any) -> None:
    """Refuses what is no dataset or no layout, and a process without a layout."""
    if not isinstance(source, Dataset):
        hint = "make one with mf.open, mf.from_arrow or mf.from_arrays"
        raise check.wrong("source", source, "a meshfeed.Dataset", hint)
    if layout is not None and not isinstance(layout, Layout):
        raise check.wrong("layout", layout, "a meshfeed.Layout", "make one with mf.layout")
    check.optional("process", process, 0, 2**31 - 1)
    if layout is None and process is not None:
        hint = "without layout= a loader loads for the process it runs in"
        raise check.wrong("process", process, "a layout= beside it", hint)
