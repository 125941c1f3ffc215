"""The user's options about the other processes of a job, and the values that processes compare."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from meshfeed._io.arguments import Checks, is_integer
from meshfeed._jobs.agreement import Terms
from meshfeed._jobs.barrier import LiveArrays
from meshfeed._jobs.components import Component
from meshfeed._jobs.coordinator import Coordinator, jax_coordinator
from meshfeed._jobs.shared import Shared, shared
from meshfeed._layout import documents
from meshfeed._native import reports
from meshfeed._version import __version__

if TYPE_CHECKING:
    from meshfeed._native.files import Files

_HINT = "give an object with the five methods of mf.Coordinator, or False for none"


def check_name(check: Checks, name: Any) -> None:
    """Checks a name that is a part of keys."""
    text = check.name("name", name)
    if "/" in text or not text.isprintable():
        raise check.wrong("name", text, 'a printable name without "/"')


def check_coordinator(check: Checks, given: Any) -> None:
    """Checks a coordinator, None or False."""
    if given is not None and given is not False and not isinstance(given, Coordinator):
        raise check.wrong("coordinator", given, "a mf.Coordinator", _HINT)


@dataclass(frozen=True)
class JobOptions:
    """The arguments of `Loader` about the other processes."""

    name: str | None
    coordinator: Coordinator | Literal[False] | None
    agree_timeout: float
    on_peer_error: str
    verify_replicas: str | int
    late_after: float

    def __post_init__(self) -> None:
        check = Checks("mf.Loader")
        if self.name is not None:
            check_name(check, self.name)
        check_coordinator(check, self.coordinator)
        check.seconds("agree_timeout", self.agree_timeout)
        check.choice("on_peer_error", self.on_peer_error, "end", "raise", "abort")
        check.seconds("late_after", self.late_after)
        every = self.verify_replicas
        known = every in ("first", "always", "off") if isinstance(every, str) else is_integer(every)
        if not known or (not isinstance(every, str) and not 1 <= every < 2**31):
            expected = '"first", "always", "off" or an integer k from 1: every k-th step'
            raise check.wrong("verify_replicas", every, expected)

    def communicates(self, processes: Sequence[int], *, simulated: bool) -> bool:
        """Returns whether a loader may have other processes, now or after a remesh.

        `simulated` means that the loader makes the batches of a process of a `layout`. Then the JAX
        job, if there is one, is not used.
        """
        if self.coordinator is not None:
            return self.coordinator is not False
        jax = sys.modules.get("jax")
        in_a_job = jax is not None and jax.distributed.is_initialized()
        return not simulated and (in_a_job or len(processes) > 1)

    def store(self) -> Coordinator:
        """Returns the coordinator with the key-value store that the processes use."""
        given = self.coordinator
        return given if isinstance(given, Coordinator) else jax_coordinator()


@dataclass(frozen=True)
class Evidence:
    """The values that processes compare. They are computed at the first batch, not by a remesh."""

    layout: str  # the loader's layout document
    info: Mapping[str, Any]  # the library's description of this process's batches
    alike: Mapping[str, Any]  # what must be equal and is not in the layout
    flags: Callable[[], Mapping[str, Any]]  # returns the options of JAX that change programs
    components: Callable[[], Component]  # returns what the dataset's fingerprint is made of
    files: Files | None  # the dataset's files, if every byte is compared
    live: LiveArrays  # returns the arrays on devices that the program still uses

    def terms(self, options: JobOptions) -> Terms:
        """Returns what must be equal in all processes, without the position.

        The read-ahead and the memory limit may differ. Defaults that the layout document omits are
        written out, so that errors can name them.
        """
        plan: dict[str, Any] = json.loads(reports.layout_canonical(self.layout))
        return {
            "loading": plan.get("loading", "process"),
            "mesh": {"axes": plan["mesh"]["axes"], "devices": documents.devices(plan["mesh"])},
            "arrays": {n: {"field": n, "spec": [], **a} for n, a in plan["arrays"].items()},
            "batch": {"remainder": "drop", "mask": "valid", "extras": [], **plan["batch"]},
            **self.alike,
            **self.flags(),
            "version": __version__,
            "verify_replicas": options.verify_replicas,
            "fingerprint": "sampled" if self.files is None else "full",
        }

    @functools.cached_property
    def shared(self) -> Shared:
        """The blocks that several processes hold."""
        return shared(self.info, json.loads(self.layout)["mesh"])
