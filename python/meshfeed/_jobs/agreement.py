"""How the processes of a loader make sure, before the first batch, that they load the same.

The lowest process publishes its terms. Every other process answers with its own terms if they
differ. The lowest process publishes the verdict: all go on, or all raise the same error. This needs
no collective of the devices, but a few small keys in the job's store.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from meshfeed._io.arguments import cut
from meshfeed._jobs import wording
from meshfeed._jobs.keys import Generation
from meshfeed._jobs.wording import named
from meshfeed._native import library

GRACE = 10.0  # seconds that processes wait for the verdict, after the lowest has waited for them
FIELDS = 3  # that an error names
COMPARED = 8  # different terms that are compared field by field

Terms = dict[str, Any]  # what must be equal in all processes
Verdict = dict[str, Any]  # the arguments of an error; empty if all terms are equal


@dataclass(frozen=True)
class Agreement:
    """Compares the terms of a loader's processes, at the start of a generation."""

    of: Generation
    seconds: float  # to wait for the other processes
    moved: bool  # whether this process has moved since an earlier agreement
    closed: threading.Event  # ends a wait for the others with an error

    def reach(self, terms: Terms) -> None:
        """Returns when every process has published the same terms.

        Raises:
            IncompatibleError: the terms differ; every process raises it.
            PeerError: a process did not answer in time.
            CancelledError: the loader was closed meanwhile.
        """
        mine = json.dumps(terms, sort_keys=True)
        title = self.of.namespace.title
        verdict = self._judge(mine) if self.of.namespace.leads else self._answer(mine)
        if "differ" in verdict:
            raise wording.differ(title, verdict["differ"])
        if verdict:
            raise wording.absent(title, verdict["absent"], verdict["moved"], self.seconds)

    def _answer(self, mine: str) -> Verdict:
        me, lead = self.of.namespace.me, self.of.namespace.lead
        terms = self._get("terms", self.seconds)
        if terms is None:
            return self._absent([lead], [me])
        self.of.set(f"answer/{me}", "" if terms == mine else mine)
        verdict: Verdict | None = self._get("verdict", self.seconds + GRACE)
        if verdict is None:
            return self._absent([lead], [me])
        if not verdict and terms != mine:  # all agreed on what this process answered before Ctrl-C
            return _differ({terms: [lead], mine: [me]})
        return verdict

    def _judge(self, mine: str) -> Verdict:
        published = self.of.get("terms")  # before a Ctrl-C
        if published is None:
            self.of.set("terms", published := mine)
        until = time.monotonic() + self.seconds
        known, absent = {mine: [self.of.namespace.me]}, list[int]()
        for p in self.of.namespace.others:
            answer = self._get(f"answer/{p}", until - time.monotonic())
            if answer is None:
                absent.append(p)
            else:
                known.setdefault(answer or published, []).append(p)
        verdict = _differ(known) if len(known) > 1 else {}
        if absent:
            here = [p for p in self.of.namespace.members if p not in absent]
            verdict = self._absent(absent, here)
        self.of.set("verdict", verdict)
        return verdict

    def _get(self, key: str, seconds: float) -> Any:
        value = self.of.wait(key, seconds, self.closed.is_set)
        if value is None and self.closed.is_set():
            raise library.unless_exiting(wording.closed(self.of.namespace.title))
        return value

    def _absent(self, absent: list[int], here: list[int]) -> Verdict:
        return {"absent": absent, "moved": here if self.moved else []}


def _differ(known: Mapping[str, Sequence[int]]) -> Verdict:
    """Compares different terms, each with the processes that have them."""
    return {"differ": differences([(have, json.loads(text)) for text, have in known.items()])}


def differences(known: Sequence[tuple[Sequence[int], Terms]]) -> list[str]:
    """Describes the fields in which terms differ, with the processes that have each value.

    Args:
        known: terms, each with the processes that have them.

    Examples:
        >>> differences([([0, 2], {"seed": 0, "epochs": 3}), ([1], {"seed": 7})])
        ['seed is 0 on processes 0 and 2, 7 on process 1', \
'epochs is 3 on processes 0 and 2, missing on process 1']
    """
    leaves = [(processes, dict(_leaves("", each))) for processes, each in known[:COMPARED]]
    described = []
    for field in dict.fromkeys(field for _, flat in leaves for field in flat):
        holders: dict[str, list[int]] = {}
        for processes, flat in leaves:
            value = repr(flat[field]) if field in flat else "missing"
            holders.setdefault(value, []).extend(processes)
        if len(holders) > 1:
            values = (f"{cut(value)} on {named(sorted(have))}" for value, have in holders.items())
            described.append(f"{field} is {', '.join(values)}")
    more = len(described) - FIELDS
    rest = [f"{more} more {'field differs' if more == 1 else 'fields differ'}"] if more > 0 else []
    if others := sorted(p for processes, _ in known[COMPARED:] for p in processes):
        rest.append(named(others, "differs as well", "differ as well"))
    return described[:FIELDS] + rest


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yields the values of a document, each with its path."""
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from _leaves(f"{path}.{key}" if path else key, part)
    elif isinstance(value, list) and any(isinstance(part, list | dict) for part in value):
        for i, part in enumerate(value):
            yield from _leaves(f"{path}[{i}]", part)
    else:
        yield path, value
