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
from typing import Any

from meshfeed import errors
from meshfeed._io.arguments import cut
from meshfeed._jobs.keys import Namespace
from meshfeed._jobs.text import named
from meshfeed._native import library
from meshfeed.coordinator import patient_get

SLACK = 10.0  # seconds that processes wait for the verdict, after the lowest has waited for them
FIELDS = 3  # that an error names
COMPARED = 8  # different terms that are compared field by field

Terms = dict[str, Any]  # what must be equal in all processes


class Agreement:
    """Compares the terms of a loader's processes, once per generation.

    Args:
        namespace: the loader's keys.
        seconds: how long to wait for the other processes.
    """

    def __init__(self, namespace: Namespace, seconds: float) -> None:
        self._namespace, self._store = namespace, namespace.store
        self._me, self._lead = namespace.me, namespace.lead
        self._seconds = seconds
        self._moved = False
        self._ended = threading.Event()

    def end(self) -> None:
        """Ends a wait for the others, now or later, with an error."""
        self._ended.set()

    def reach(self, path: str, mine: Terms, *, moved: bool = False) -> None:
        """Returns when every process has published the same terms.

        Args:
            path: the prefix of the generation's keys.
            mine: this process's terms.
            moved: whether this is a later agreement, after a change of this process's position.

        Raises:
            IncompatibleError: the terms differ; every process raises it.
            PeerError: a process did not answer in time.
            CancelledError: the loader was closed meanwhile.
        """
        self._moved = moved
        text = json.dumps(mine, sort_keys=True).encode()
        verdict = self._judge(path, text) if self._me == self._lead else self._answer(path, text)
        if verdict:
            raise self._error(json.loads(verdict))

    def _answer(self, path: str, mine: bytes) -> bytes:
        theirs = self._get(f"{path}/terms", self._seconds)
        if theirs is None:
            raise self._error(self._absent([self._lead], [self._me]))
        self._store.set(f"{path}/answer/{self._me}", b"" if theirs == mine else mine)
        verdict = self._get(f"{path}/verdict", self._seconds + SLACK)
        if verdict is None:
            raise self._error(self._absent([self._lead], [self._me]))
        if not verdict and theirs != mine:  # the verdict is on terms from before a Ctrl-C here
            return self._differ({theirs: [self._lead], mine: [self._me]})
        return verdict

    def _judge(self, path: str, mine: bytes) -> bytes:
        asked = self._store.try_get(f"{path}/terms")  # from before a Ctrl-C
        if asked is None:
            self._store.set(f"{path}/terms", asked := mine)
        until = time.monotonic() + self._seconds
        known, absent = {mine: [self._me]}, list[int]()
        for p in self._namespace.others:
            answer = self._get(f"{path}/answer/{p}", until - time.monotonic())
            if answer is None:
                absent.append(p)
            else:
                known.setdefault(answer or asked, []).append(p)
        verdict = b""
        if absent:
            here = [p for p in self._namespace.members if p not in absent]
            verdict = json.dumps(self._absent(absent, here)).encode()
        elif len(known) > 1:
            verdict = self._differ(known)
        self._store.set(f"{path}/verdict", verdict)
        return verdict

    def _get(self, key: str, seconds: float) -> bytes | None:
        value = patient_get(self._store, key, time.monotonic() + seconds, self._ended.wait)
        if value is None and self._ended.is_set():
            message = f"loader {self._namespace.title} was closed while it waited for other "
            error = errors.CancelledError(f"{message}processes", op="mf.Loader")
            raise library.unless_exiting(error)
        return value

    def _differ(self, known: Mapping[bytes, Sequence[int]]) -> bytes:
        parsed = [(processes, json.loads(text)) for text, processes in known.items()]
        return json.dumps({"differ": "; ".join(differences(parsed))}).encode()

    def _absent(self, processes: list[int], here: list[int]) -> dict[str, Any]:
        return {"absent": processes, **({"moved": here} if self._moved else {})}

    def _error(self, verdict: Mapping[str, Any]) -> errors.Error:
        title = self._namespace.title
        if text := verdict.get("differ"):
            message = f"the processes of loader {title} differ: {text}"
            hint = "give every process the same data, arguments and state"
            return errors.IncompatibleError(message, op="mf.Loader", hint=hint)
        absent = verdict["absent"]
        message = f"{named(absent, 'has', 'have')} not "
        hint = "every process of the mesh makes the same loaders in the same order; see its log, "
        if moved := verdict.get("moved"):
            message = f"{named(moved, 'has', 'have')} called skip, seek or restore, and after it "
            message += f"{named(absent, 'has', 'have')} not "
            hint = "call it before the same batch in every process; see the logs, "
        message += f"reached the next batch of loader {title} within {self._seconds:g} s"
        hint += "or raise agree_timeout="
        error = errors.peer(TimeoutError)(message, op="mf.Loader", hint=hint)
        return error.at(absent[0], -1, -1)


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
    fields = dict.fromkeys(field for _, flat in leaves for field in flat)
    described = [text for field in fields if (text := _difference(field, leaves))]
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


def _difference(field: str, leaves: Sequence[tuple[Sequence[int], Mapping[str, Any]]]) -> str:
    """Describes which processes have which value of a field; empty if all have the same."""
    holders: dict[str, list[int]] = {}
    for processes, flat in leaves:
        value = repr(flat[field]) if field in flat else "missing"
        holders.setdefault(value, []).extend(processes)
    if len(holders) == 1:
        return ""
    values = (f"{cut(value)} on {named(sorted(have))}" for value, have in holders.items())
    return f"{field} is {', '.join(values)}"
