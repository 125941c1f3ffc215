"""The options of a loader after their check, and the form in which the C library reads them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Options:
    """The options that do not define the contents of a batch. None is the default; see `Loader`.

    Attributes:
        order: the name of the order, which may be a short one such as "local".
        seed: the seed of the order.
        epochs: the number of epochs, -1 for no end. None: every loop is one epoch.
        prefetch: the number of batches to read ahead.
        device_prefetch: the number of batches to send to their devices ahead.
        max_host_bytes: the largest memory of all batches of this process.
        state: the text of the state to continue from.
        ignore_dataset: whether the state may belong to another dataset.
        fill: the values that replace nulls, by field.
    """

    order: str | None
    seed: int | None
    epochs: int | None
    prefetch: int | None
    device_prefetch: int | None
    max_host_bytes: int | None
    state: bytes | None
    ignore_dataset: bool
    fill: Mapping[str, Any] | None

    def document(self, process: int, run: int | None) -> dict[str, Any]:
        """Returns the options of `mf_loader_create`, as JSON values.

        Args:
            process: the process whose blocks to load.
            run: the number of processes of the run; None for the number in the layout.
        """
        given = dataclasses.asdict(self) | {"process": process, "processes": run}
        del given["device_prefetch"]
        # With None the C loader has no end, and `Batches` ends every loop after one epoch.
        given["epochs"] = -1 if self.epochs is None else self.epochs
        return {key: value for key, value in given.items() if value is not None}

    @property
    def alike(self) -> Mapping[str, Any]:
        """The options that no layout contains and that must be equal in all processes of a job."""
        return {"epochs": self.epochs, "fill": self.fill}
