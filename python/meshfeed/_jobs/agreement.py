"""What all processes of a job must have alike, and how they make sure before the first batch.

The lowest process publishes the plan, every other one answers with what it has instead, and
the lowest publishes the verdict: all go on, or all stop with the same error. Nothing here is a
collective of the devices: it is a handful of small keys in the job's store.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from meshfeed import errors
from meshfeed._io.arguments import cut
from meshfeed._native import library
from meshfeed._plan import documents
from meshfeed.coordinator import Coordinator, patient_get

SLACK = 10.0  # seconds more than the lowest process waits, the others wait for its verdict
FIELDS = 3  # that an error names
PLANS = 8  # different ones that are looked into for it

Document = dict[str, Any]


def document(layout: str, more: Mapping[str, Any]) -> Document:
    """Gives what processes must have alike, from the layout's document and the loader.

    How far to read ahead and what memory to use are the business of each process. What the
    document leaves out because it is the default is written here, so that errors can name it.

    Args:
        layout: the canonical layout document.
        more: what the layout does not say: data, place, length, versions.
    """
    plan: Document = json.loads(layout)
    mesh = {"axes": plan["mesh"]["axes"], "devices": documents.devices(plan["mesh"])}
    arrays = {name: {"field": name, "spec": [], **a} for name, a in plan["arrays"].items()}
    batch = {"remainder": "drop", "extras": [], **plan["batch"]}
    asked = {"mesh": mesh, "arrays": arrays, "batch": batch}
    return {"loading": plan.get("loading", "process"), **asked, **more}


class Agreement:
    """Agrees with the other members of a loader, one round after another.

    Args:
        store: the job's store.
        title: the loader, as errors name it.
        me: this process.
        members: all processes that hold a device of the mesh, in ascending order.
        seconds: how long to wait for one that does not come.
    """

    def __init__(
        self, store: Coordinator, title: str, me: int, members: Sequence[int], seconds: float
    ) -> None:
        self._store, self._title = store, title
        self._me, self._members = me, members
        self._seconds = seconds
        self._moved = False
        self._ended = threading.Event()

    def end(self) -> None:
        """Ends a wait for the others, now or later, with an error."""
        self._ended.set()

    def reach(self, path: str, plan: Document, *, moved: bool = False) -> None:
        """Comes back when every member has the same plan.

        Args:
            path: under which the round's keys stand.
            plan: this process's.
            moved: whether the members have agreed before, and this process has moved since.

        Raises:
            IncompatibleError: they differ, on every process.
            PeerError: a member has not come in time.
            CancelledError: the loader was closed meanwhile.
        """
        self._moved = moved
        text = json.dumps(plan, sort_keys=True).encode()
        lead = self._me == self._members[0]
        verdict = self._judge(path, text) if lead else self._answer(path, text)
        if verdict:
            raise self._error(json.loads(verdict))

    def _answer(self, path: str, mine: bytes) -> bytes:
        lead = self._members[0]
        plan = self._get(f"{path}/plan", self._seconds)
        if plan is None:
            raise self._error(self._absent([lead], [self._me]))
        self._store.set(f"{path}/from/{self._me}", b"" if plan == mine else mine)
        verdict = self._get(f"{path}/verdict", self._seconds + SLACK)
        if verdict is None:
            raise self._error(self._absent([lead], [self._me]))
        if not verdict and plan != mine:  # it had another one, until Ctrl-C cut the round short
            return self._differ({plan: [lead], mine: [self._me]})
        return verdict

    def _judge(self, path: str, mine: bytes) -> bytes:
        asked = self._store.try_get(f"{path}/plan")  # until Ctrl-C cut the round short
        if asked is None:
            self._store.set(f"{path}/plan", asked := mine)
        until = time.monotonic() + self._seconds
        plans, absent = {mine: [self._me]}, list[int]()
        for p in self._members[1:]:
            answer = self._get(f"{path}/from/{p}", until - time.monotonic())
            if answer is None:
                absent.append(p)
            else:
                plans.setdefault(answer or asked, []).append(p)
        verdict = b""
        if absent:
            here = [p for p in self._members if p not in absent]
            verdict = json.dumps(self._absent(absent, here)).encode()
        elif len(plans) > 1:
            verdict = self._differ(plans)
        self._store.set(f"{path}/verdict", verdict)
        return verdict

    def _get(self, key: str, seconds: float) -> bytes | None:
        value = patient_get(self._store, key, time.monotonic() + seconds, self._ended.wait)
        if value is None and self._ended.is_set():
            message = f"loader {self._title} was closed while it waited for other processes"
            raise library.unless_leaving(errors.CancelledError(message, op="mf.Loader"))
        return value

    def _differ(self, plans: Mapping[bytes, Sequence[int]]) -> bytes:
        known = [(processes, json.loads(plan)) for plan, processes in plans.items()]
        return json.dumps({"differ": "; ".join(differences(known))}).encode()

    def _absent(self, processes: list[int], here: list[int]) -> Document:
        return {"absent": processes, **({"moved": here} if self._moved else {})}

    def _error(self, verdict: Document) -> errors.Error:
        if text := verdict.get("differ"):
            message = f"the processes of loader {self._title} differ: {text}"
            hint = "give every process the same data, arguments and state"
            return errors.IncompatibleError(message, op="mf.Loader", hint=hint)
        absent = verdict["absent"]
        message = f"{named(absent)} {_has(absent)} not "
        hint = "every process of the mesh makes the same loaders in the same order; see its log, "
        if moved := verdict.get("moved"):
            message = f"{named(moved)} {_has(moved)} called skip, seek or restore, and after it "
            message += f"{named(absent)} {_has(absent)} not "
            hint = "call it before the same batch in every process; see the logs, "
        message += f"come to the next batch of loader {self._title} within {self._seconds:g} s"
        hint += "or raise agree_timeout="
        error = errors.peer(TimeoutError)(message, op="mf.Loader", hint=hint)
        return error.at(absent[0], -1, -1)


def differences(plans: Sequence[tuple[Sequence[int], Document]]) -> list[str]:
    """Describes the fields in which plans differ, with the processes that have each value.

    Args:
        plans: each with the processes that have it.

    Examples:
        >>> differences([([0, 2], {"seed": 0, "epochs": 3}), ([1], {"seed": 7})])
        ['seed is 0 on processes 0 and 2, 7 on process 1', \
'epochs is 3 on processes 0 and 2, missing on process 1']
    """
    leaves = [(processes, dict(_leaves("", plan))) for processes, plan in plans[:PLANS]]
    fields = dict.fromkeys(field for _, flat in leaves for field in flat)
    told = [text for field in fields if (text := _difference(field, leaves))]
    more = len(told) - FIELDS
    rest = [f"{more} more {'field differs' if more == 1 else 'fields differ'}"] if more > 0 else []
    if others := sorted(p for processes, _ in plans[PLANS:] for p in processes):
        rest.append(f"{named(others)} {'differs' if len(others) == 1 else 'differ'} as well")
    return told[:FIELDS] + rest


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Gives the values of a document by the places where they stand."""
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from _leaves(f"{path}.{key}" if path else key, part)
    elif isinstance(value, list) and any(isinstance(part, list | dict) for part in value):
        for i, part in enumerate(value):
            yield from _leaves(f"{path}[{i}]", part)
    else:
        yield path, value


def _difference(field: str, leaves: Sequence[tuple[Sequence[int], Mapping[str, Any]]]) -> str:
    """Describes who has which value of a field; empty where all have the same."""
    holders: dict[str, list[int]] = {}
    for processes, flat in leaves:
        value = repr(flat[field]) if field in flat else "missing"
        holders.setdefault(value, []).extend(processes)
    if len(holders) == 1:
        return ""
    values = (f"{cut(value)} on {named(sorted(who))}" for value, who in holders.items())
    return f"{field} is {', '.join(values)}"


def _has(processes: Sequence[int]) -> str:
    return "has" if len(processes) == 1 else "have"


def named(processes: Sequence[int]) -> str:
    """Names processes as a sentence does.

    Examples:
        >>> named([2])
        'process 2'
        >>> named([0, 1, 3])
        'processes 0, 1 and 3'
    """
    if len(processes) == 1:
        return f"process {processes[0]}"
    listed = [str(p) for p in processes[:12]]
    last = f"{len(processes) - 12} more" if len(processes) > 12 else listed.pop()
    return f"processes {', '.join(listed)} and {last}"
