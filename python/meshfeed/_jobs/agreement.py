"""The check that all processes of a loader load the same data, or begin the same pass over it.

Terms are the values that must be equal, such as options and fingerprints. The process with the
lowest number publishes its terms. Every other process publishes an answer: "" if its terms are
equal, else its terms. If its dataset is another, it publishes what its fingerprint is made of. The
lowest process compares the answers and publishes the verdict. Then all processes go on, or all
raise the same error.

This needs no collective operation of the devices, only a few small keys in the job's store.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from meshfeed import errors
from meshfeed._io.arguments import cut
from meshfeed._jobs import early, failures, wording
from meshfeed._jobs.components import Component, described
from meshfeed._jobs.keys import Generation
from meshfeed._jobs.wording import named
from meshfeed._native import library

GRACE = 10.0  # seconds to wait for the verdict, after the time that the lowest process waits
FIELDS = 3  # the largest number of fields that an error names
COMPARED = 8  # the largest number of different terms that are compared field by field
TAKEN = "batches taken"  # a term; None, if a process does not know it, is equal to any number

log = logging.getLogger("meshfeed")

Terms = dict[str, Any]  # what must be equal in all processes
Verdict = dict[str, Any]  # the arguments of an error; empty if all terms are equal


@dataclass(frozen=True)
class Agreement:
    """Compares the terms of a loader's processes, at the start of a generation or of a pass.

    A generation begins before the first batch, and after every skip, seek or restore. A pass of
    `one_epoch` begins with its first batch.
    """

    of: Generation  # the keys, used by this agreement alone
    seconds: float  # to wait for the other processes
    call: str  # the call that the agreement follows, such as "skip"; "" at the first one
    closed: threading.Event  # set when the loader is closed, which ends a wait with an error
    components: Callable[[], Component]  # returns the dataset's components
    check: Callable[[], object] = lambda: None  # raises failures of other processes

    def reach(self, terms: Terms) -> None:
        """Waits until every process has published the same terms.

        Raises:
            IncompatibleError: the terms differ; every process raises it.
            PeerError: a process did not answer in time, or has failed.
            CancelledError: the loader was closed meanwhile.
        """
        mine = json.dumps(terms, sort_keys=True)
        if self.call:
            self.of.set(f"called/{self.of.namespace.me}", self.call)
        title = self.of.namespace.title
        verdict = self._lead(mine) if self.of.namespace.leads else self._follow(mine)
        if "differ" in verdict:
            raise wording.differ(title, verdict["differ"], self.call)
        if "failed" in verdict:
            raise failures.error_of(verdict["failed"])
        if verdict:
            raise wording.absent(title, verdict["absent"], verdict["moved"], self.seconds)

    def _follow(self, mine: str) -> Verdict:
        """Publishes the answer of this process, and waits for the verdict."""
        me, lead = self.of.namespace.me, self.of.namespace.lead
        terms = self._get("terms", self.seconds, [lead])
        if terms is None:
            return self._absent([lead], [me])
        if terms != mine:
            mine = _comparable(mine, terms)
        if terms != mine and _dataset(terms) != _dataset(mine):
            self.of.set(f"components/{me}", self._components())
        self.of.set(f"answer/{me}", "" if terms == mine else mine)
        verdict: Verdict | None = self._get("verdict", self.seconds + GRACE, [lead])
        if verdict is None:
            return self._absent([lead], [me])
        # A Ctrl-C may have ended an earlier call, which had published other terms of this process.
        if not verdict and terms != mine:
            return self._differ({terms: [lead], mine: [me]})
        return verdict

    def _lead(self, mine: str) -> Verdict:
        """Publishes the terms of this process, compares the answers, and publishes the verdict."""
        published = self.of.get("terms")  # by an earlier call, which a Ctrl-C has ended
        if published is None:
            self.of.set("terms", published := mine)
        until, others = time.monotonic() + self.seconds, self.of.namespace.others
        known, absent = {mine: [self.of.namespace.me]}, list[int]()
        for i, p in enumerate(others):
            answer = self._get(f"answer/{p}", until - time.monotonic(), others[i:])
            if answer is None:
                absent.append(p)
            else:
                known.setdefault(answer or published, []).append(p)
        verdict = self._differ(known) if len(known) > 1 else {}
        if absent:
            here = [p for p in self.of.namespace.members if p not in absent]
            verdict = self._absent(absent, here)
        self.of.set("verdict", verdict)
        return verdict

    def _get(self, key: str, seconds: float, of: Sequence[int]) -> Any:
        """Waits for a key, until one of the processes that have to set it has failed."""
        ended = early.Failures(self.of.namespace.store, of).any

        def over() -> bool:
            self.check()
            return self.closed.is_set() or ended()

        value = self.of.wait(key, seconds, over)
        if value is None and self.closed.is_set():
            raise library.unless_exiting(wording.closed(self.of.namespace.title))
        return value

    def _absent(self, absent: list[int], here: list[int]) -> Verdict:
        """Makes the verdict for processes that are absent."""
        if failed := early.Failures(self.of.namespace.store, absent).first():
            return {"failed": failed}
        called = self.of.by_process("called") if self.call else {}
        return {"absent": absent, "moved": {p: called[p] for p in here if p in called}}

    def _differ(self, known: Mapping[str, Sequence[int]]) -> Verdict:
        """Makes the verdict for different terms, given with the processes that have them."""
        terms = [(have, json.loads(text)) for text, have in known.items()]
        return {"differ": differences(terms, self._datasets(terms))}

    def _datasets(self, known: Sequence[tuple[Sequence[int], Terms]]) -> list[str]:
        """Describes how datasets differ, if some do and all have published their components."""
        holders = {terms.get("dataset"): have for have, terms in reversed(known[:COMPARED])}
        if len(holders) < 2:
            return []
        found = self.of.by_process("components") | {self.of.namespace.me: self._components()}
        groups = [(have, found.get(have[0])) for have in reversed(holders.values())]
        return described([(have, each) for have, each in groups if each is not None])

    def _components(self) -> Component | None:
        """Returns the components of this dataset; None if that fails, which ends no agreement."""
        try:
            return self.components()
        except errors.Error as e:
            log.debug("loader %s: no components: %s", self.of.namespace.title, e)
            return None


def differences(
    known: Sequence[tuple[Sequence[int], Terms]], datasets: Sequence[str] = ()
) -> list[str]:
    """Describes the fields that differ between terms, with the processes that have each value.

    Args:
        known: terms, each with the processes that have them.
        datasets: describes how the datasets differ, in place of their fingerprints.

    Examples:
        >>> differences([([0, 2], {"seed": 0, "epochs": 3}), ([1], {"seed": 7})])
        ['seed is 0 on processes 0 and 2, 7 on process 1', \
'epochs is 3 on processes 0 and 2, not set on process 1']
    """
    leaves = [(processes, dict(_leaves("", each))) for processes, each in known[:COMPARED]]
    described = [*datasets]
    for field in dict.fromkeys(field for _, flat in leaves for field in flat):
        holders: dict[str, list[int]] = {}
        for processes, flat in leaves:
            value = _shown(field, flat[field]) if field in flat else "not set"
            holders.setdefault(value, []).extend(processes)
        if len(holders) > 1 and not (datasets and field == "dataset"):
            values = (f"{cut(value)} on {named(sorted(have))}" for value, have in holders.items())
            described.append(f"{field} is {', '.join(values)}")
    more = len(described) - FIELDS
    rest = [f"{more} more {'field differs' if more == 1 else 'fields differ'}"] if more > 0 else []
    if others := sorted(p for processes, _ in known[COMPARED:] for p in processes):
        rest.append(named(others, "differs as well", "differ as well"))
    return described[:FIELDS] + rest


def _shown(field: str, value: Any) -> str:
    """Returns the text of a value."""
    if field.startswith("mesh.devices"):
        process, device = value
        return f"(process {process}, device {device})"
    return repr(value)


def _dataset(text: str) -> Any:
    """Returns the fingerprint of the dataset in the text of terms."""
    return json.loads(text).get("dataset")


def _comparable(mine: str, terms: str) -> str:
    """Returns `mine` with `TAKEN` as in the other terms, if one of both does not know it."""
    ours, theirs = json.loads(mine), json.loads(terms)
    if TAKEN in ours and None in (ours[TAKEN], theirs.get(TAKEN)):
        ours[TAKEN] = theirs.get(TAKEN)
    return json.dumps(ours, sort_keys=True)


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yields the values of a document that are set, each with its path."""
    if value is None:
        return
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from _leaves(f"{path}.{key}" if path else key, part)
    elif isinstance(value, list) and any(isinstance(part, list | dict) for part in value):
        for i, part in enumerate(value):
            yield from _leaves(f"{path}[{i}]", part)
    else:
        yield path, value
