"""Compares the copies of arrays that the processes of a job hold, by digests.

Every process publishes a record: a hash of the names, shapes, types and shardings of its arrays,
and one hash for each set of processes that hold the same parts. It also has the step and the line
of the call, to find calls that do not belong together. The lowest process compares the records.
Only if some differ, it asks for the facts of an array or the digests of its parts, each from one
of the processes that agree. Then it publishes the verdict, and all processes return, or raise the
same error. A record has some hundred bytes, whatever the size of the arrays.

If a call fails in a process, the failure is its record. So every call has a number, and calls with
the same number belong together.

| key | writer | reader | when | the wait ends with the value, or |
| --- | --- | --- | --- | --- |
| record/P | process P | lowest process; the lowest one's: all | when P calls | timeout |
| message/N | lowest process | all others | after all records, or answers | timeout + 10 s |
| answer/N/P | process P | lowest process | when message N names P | timeout |

The lowest process deletes the keys of a call after all processes have made the next one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
import weakref
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Protocol

from meshfeed import errors
from meshfeed._jobs import early, failures, wording
from meshfeed._jobs.coordinator import Coordinator
from meshfeed._jobs.keys import Generation, Namespace, group
from meshfeed._jobs.wording import named
from meshfeed._native.lock import Lock

HOST = -1  # this and lower numbers stand for devices that are not known, or host memory
GRACE = 10.0  # seconds to wait for a message, after the time that the lowest process waits
SHORTEST, LONGEST = 0.0005, 0.01  # pauses in seconds while the arrays are computed
ASKED = 8  # the largest number of different values that are compared in detail
DIGITS = 16  # in a digest of an answer
FIELDS = 3  # the largest number of arrays that an error about trees names

Index = tuple[tuple[int, int], ...]
Copies = list[tuple[int, int]]  # pairs of process and device
Facts = Mapping[str, Mapping[str, Any]]


@dataclasses.dataclass
class Block:
    """A part of an array that this process holds.

    Attributes:
        array: the number of the array.
        index: the part, as [start, stop) of every dimension.
        holders: the processes that hold it, in ascending order.
        digests: the digests of the copies of this process, by device.
        size: the bytes of a copy.
    """

    array: int
    index: Index
    holders: tuple[int, ...]
    digests: dict[int, bytes] = dataclasses.field(default_factory=dict)
    size: int = 0

    @property
    def agrees(self) -> bool:
        """Whether the copies of this process are equal."""
        return len(set(self.digests.values())) == 1

    def hashed(self) -> bytes:
        """Returns the bytes to hash: one digest if all are equal, else the digests of all."""
        found = sorted(self.digests.items())
        return found[0][1] if self.agrees else b"".join(digest for _, digest in found)


class Arrays(Protocol):
    """The arrays of this process."""

    names: list[str]
    me: int

    def computed(self) -> bool:
        """Returns whether all arrays are computed, so that hashing them waits for no process."""

    def facts(self) -> Facts:
        """Returns what must be equal in all processes besides the bytes, by array."""

    def copies(self, array: int) -> dict[Index, Copies]:
        """Returns the copies of every part of an array, in all processes."""

    def blocks(self) -> list[Block]:
        """Returns the parts that this process holds and that have several copies, hashed."""


# ---- keys ----

_lock = Lock()
_calls: weakref.WeakKeyDictionary[Coordinator, Counter[tuple[int, str]]]
_calls = weakref.WeakKeyDictionary()


def next_call(
    store: Coordinator, name: str, me: int, members: Sequence[int]
) -> tuple[Generation, Generation]:
    """Returns the keys of the next call with this name, and of the call before.

    The n-th call of a process belongs to the n-th call of the others. Calls of other sets of
    processes are counted apart.
    """
    path = f"meshfeed-replicas/{name}.{group(members)}"
    with _lock:
        calls = _calls.setdefault(store, Counter())
        number = calls[me, path]
        calls[me, path] += 1
    title = f"call {number + 1} with name={name!r}"
    namespace = Namespace(store, path, title, me, members)
    return namespace.generation(number), namespace.generation(number - 1)


# ---- the comparison ----


def compare_inside(arrays: Arrays) -> list[Block]:
    """Hashes the parts of this process, and compares only the copies that it holds itself.

    Raises:
        DataLossError: copies differ.
    """
    blocks, found = arrays.blocks(), dict[int, str]()
    for block in blocks:
        if not block.agrees and block.array not in found:
            digests = {(arrays.me, device): d.hex() for device, d in block.digests.items()}
            found[block.array] = _differing(arrays.names[block.array], block.index, digests)
    if found:
        raise _error(**_different(found))
    return blocks


Record = dict[str, Any]
Verdict = dict[str, Any]  # the arguments of an error; empty if all copies are equal


class Comparison:
    """Compares the arrays of the processes, in one call of each.

    Args:
        keys: the keys of this call and of the call before.
        arrays: the arrays of this process.
        seconds: how long to wait for the other processes.
        step: the step of the call, if the user gave it.
        line: the line of the user's program that makes the call.
    """

    def __init__(
        self,
        keys: tuple[Generation, Generation],
        arrays: Arrays,
        seconds: float,
        *,
        step: int | None = None,
        line: str = "",
    ) -> None:
        self._keys, self._earlier = keys
        self._arrays, self._seconds = arrays, seconds
        self._step, self._line = step, line
        self._sent = 0  # messages
        self._facts: Facts = {}
        self._sets: dict[str, list[Block]] = {}

    def run(self) -> list[Block]:
        """Hashes the parts of this process and compares them.

        Raises:
            DataLossError: copies differ.
            IncompatibleError: the processes have different trees, or make different calls.
            PeerError: a process did not call in time, or could not read its arrays.
        """
        try:
            self._facts = self._arrays.facts()
            self._await_computation()
            blocks = self._arrays.blocks()
        except BaseException as e:
            self._fail(*_code_and_text(e))
            raise
        self._sets = _sets(blocks)
        self._keys.set(f"record/{self._me}", self._record())
        if self._keys.namespace.leads:
            try:
                verdict = self._lead()
            except BaseException as e:  # such as Ctrl-C: the others need not wait
                self._send({"verdict": _failed({self._me: {"failed": _code_and_text(e)}})})
                raise
        else:
            verdict = self._follow()
            # The lowest process may call later, and must not compare this record.
            if verdict.get("code") == errors.Code.Timeout:
                self._fail(verdict["code"], verdict["message"])
        if verdict:
            raise _error(**verdict)
        return blocks

    @property
    def _me(self) -> int:
        return self._keys.namespace.me

    def _fail(self, code: int, message: str) -> None:
        """Publishes that the call failed here, in place of the record."""
        self._keys.set(f"record/{self._me}", {"failed": (code, message)})

    def _await_computation(self) -> None:
        """Waits for the arrays. Their computation may wait for a process that is in a call."""
        pause, until = SHORTEST, time.monotonic() + self._seconds
        while not self._arrays.computed():
            if time.monotonic() > until:
                message = f"in {self._keys.namespace.title}, the arrays were not computed within "
                message += f"{self._seconds:g} s: the computation may wait for another process"
                hint = "make the same steps and calls in every process, or raise timeout="
                raise errors.at(errors.peer(TimeoutError)(message, hint=hint), self._me)
            time.sleep(pause)
            pause = min(1.3 * pause, LONGEST)

    def _record(self) -> Record:
        tree = hashlib.sha256(json.dumps(self._facts).encode()).hexdigest()
        sets = {key: _combined(blocks) for key, blocks in self._sets.items()}
        inner = [key for key, blocks in self._sets.items() if not all(b.agrees for b in blocks)]
        call = {"step": self._step, "line": self._line}
        return {**call, "tree": tree, "sets": sets, "inner": inner}

    # ---- all processes but the lowest ----

    def _follow(self) -> Verdict:
        """Answers the messages of the lowest process, and returns its verdict."""
        lead = self._keys.namespace.lead
        record = self._wait(f"record/{lead}", self._seconds, [lead])
        if record is None:
            return self._absent([lead])
        if failed := _failed({lead: record}):
            return failed
        for n in count():
            message = self._wait(f"message/{n}", self._seconds + GRACE, [lead])
            if message is None:
                return self._absent([lead])
            if "verdict" in message:
                return dict(message["verdict"])
            if self._me in message["from"]:
                self._keys.set(f"answer/{n}/{self._me}", self._answer(message))
        raise AssertionError

    def _answer(self, message: Mapping[str, Any]) -> Any:
        """Returns the facts, or the digests of the parts that some sets of processes hold."""
        if "sets" not in message:
            return self._facts
        return {key: _digests(self._sets.get(key, [])) for key in message["sets"]}

    # ---- the lowest process ----

    def _lead(self) -> Verdict:
        until = time.monotonic() + self._seconds
        records: dict[int, Record] = {}
        for i, p in enumerate(members := self._keys.namespace.members):
            record = self._wait(f"record/{p}", until - time.monotonic(), members[i:])
            if record is not None:
                records[p] = record
        absent = [p for p in self._keys.namespace.members if p not in records]
        if not absent:  # all processes have returned from the call before
            self._keys.namespace.store.delete(self._earlier.path)
        verdict = _failed(records) or (self._absent(absent) if absent else {})
        verdict = verdict or self._judge(records)
        self._send({"verdict": verdict})
        return verdict

    def _send(self, message: Mapping[str, Any]) -> None:
        """Publishes the next message."""
        self._keys.set(f"message/{self._sent}", message)
        self._sent += 1

    def _judge(self, records: Mapping[int, Record]) -> Verdict:
        """Compares the records."""
        if len(steps := _by(records, "step")) > 1:
            return _other_steps(self._keys.namespace.title, steps)
        wrong = self._wrong(records)
        trees = list(_by(records, "tree").values())
        if len(trees) == 1 and not wrong:
            return {}
        if len(lines := _by(records, "line")) > 1:
            return _other_lines(self._keys.namespace.title, lines)
        if len(trees) > 1:
            known = self._ask({}, [processes[0] for processes in trees[:ASKED]])
            return _other_trees([(have, known.get(have[0])) for have in trees])
        wrong = dict(list(wrong.items())[:ASKED])
        asked = {processes[0] for groups in wrong.values() for processes in groups[:ASKED]}
        return self._other_bytes(wrong, self._ask({"sets": list(wrong)}, sorted(asked)))

    def _wrong(self, records: Mapping[int, Record]) -> dict[str, list[list[int]]]:
        """Returns the sets of processes with copies that differ, in groups with equal hashes."""
        wrong: dict[str, list[list[int]]] = {}
        for key in sorted({key for record in records.values() for key in record["sets"]}):
            have = {p: r["sets"][key] for p, r in records.items() if key in r["sets"]}
            inner = any(key in record["inner"] for record in records.values())
            if len(groups := _grouped(have)) > 1 or inner:
                wrong[key] = list(groups.values())
        return wrong

    def _ask(self, message: Mapping[str, Any], processes: Sequence[int]) -> dict[int, Any]:
        """Asks processes for details. Without an answer in time a process is left out."""
        number = self._sent
        self._send({**message, "from": processes})
        until = time.monotonic() + self._seconds
        answers = {}
        for p in processes:
            if p == self._me:
                answers[p] = self._answer(message)
            elif found := self._wait(f"answer/{number}/{p}", until - time.monotonic(), [p]):
                answers[p] = found
        return answers

    def _other_bytes(
        self, wrong: Mapping[str, Sequence[Sequence[int]]], answers: Mapping[int, Any]
    ) -> Verdict:
        """Names the first part with copies that differ, and how many more arrays differ."""
        found: dict[int, str] = {}  # the description of the first such part, by array
        for key, groups in wrong.items():
            by = {p: answers[have[0]][key] for have in groups if have[0] in answers for p in have}
            for i, (array, index, copies) in enumerate(self._parts(key)):
                digests = dict(_copy_digests(i, copies, by))
                if len(set(digests.values())) > 1 and array not in found:
                    found[array] = _differing(self._arrays.names[array], index, digests)
        if not found:  # a process has not answered
            found[-1] = f"copies differ on processes {' and '.join(wrong)}"
        verdict = _different(found)
        return verdict if self._step is not None else {**verdict, "hint": _HINT + _OTHER_CALL}

    def _parts(self, key: str) -> Iterator[tuple[int, Index, Copies]]:
        """Yields the parts that a set of processes holds, in the order of their digests."""
        for array in range(len(self._arrays.names)):
            for index, copies in sorted(self._arrays.copies(array).items()):
                holders = sorted({process for process, _ in copies})
                if len(copies) > 1 and group(holders) == key:
                    yield array, index, copies

    def _absent(self, missing: Sequence[int]) -> Verdict:
        title = self._keys.namespace.title
        if failed := early.Failures(self._keys.namespace.store, missing).first():
            error = failures.error_of(failed)
            code, message = errors.Code.Timeout, f"in {title}, {error.message}"
            return {"code": code, "message": message, "hint": error.hint, "process": error.process}
        message = f"{named(missing, 'has', 'have')} not made {title} within {self._seconds:g} s"
        hint = f"{_SAME_CALLS}; see its log, or raise timeout="
        code, process = errors.Code.Timeout, missing[0]
        return {"code": code, "message": message, "hint": hint, "process": process}

    def _wait(self, key: str, seconds: float, of: Sequence[int]) -> Any:
        """Waits for a key, until one of the processes that have to set their keys has failed."""
        return self._keys.wait(key, seconds, early.Failures(self._keys.namespace.store, of).any)


_HINT = "restore the arrays from a checkpoint, and call it after every step to find the cause"
_OTHER_CALL = "; copies also differ if a process left out a call: pass step= to know"
_SAME_CALLS = "every process that holds a part makes the same calls in the same order"


def _error(code: int, message: str, hint: str, process: int | None = None) -> errors.Error:
    if process is None:
        return errors.CLASSES[code](message, hint=hint)
    origin = TimeoutError if code == errors.Code.Timeout else errors.CLASSES[code]
    return errors.at(errors.peer(origin)(message, hint=hint), process)


def _sets(blocks: Sequence[Block]) -> dict[str, list[Block]]:
    """Groups parts by the processes that hold them."""
    found: dict[str, list[Block]] = defaultdict(list)
    for block in blocks:
        found[group(block.holders)].append(block)
    return found


def _combined(blocks: Sequence[Block]) -> str:
    return hashlib.sha256(b"".join(block.hashed() for block in blocks)).hexdigest()


def _digests(blocks: Sequence[Block]) -> dict[str, Any]:
    """Returns the digests of parts, and of all devices in ascending order if they differ.

    Another process with the same hash has the same digests on devices of its own.
    """
    inner = {
        str(i): [digest.hex()[:DIGITS] for _, digest in sorted(block.digests.items())]
        for i, block in enumerate(blocks)
        if not block.agrees
    }
    firsts = (next(iter(block.digests.values())).hex()[:DIGITS] for block in blocks)
    return {"digests": "".join(firsts), "inner": inner}


def _copy_digests(part: int, copies: Copies, by: Mapping[int, Any]) -> Iterator[tuple[Any, str]]:
    """Yields every copy of a part with its digest, if its process has answered."""
    for process in by.keys() & {process for process, _ in copies}:
        devices = sorted(device for holder, device in copies if holder == process)
        digests = by[process]["inner"].get(str(part))
        if digests is None:
            digests = [by[process]["digests"][DIGITS * part : DIGITS * (part + 1)]] * len(devices)
        if len(digests) != len(devices):  # the devices of a local array of another process
            devices = [HOST - i for i in range(len(digests))]
        for device, digest in zip(devices, digests, strict=True):
            yield (process, device), digest


def _by(records: Mapping[int, Record], field: str) -> dict[Any, list[int]]:
    return _grouped({p: record[field] for p, record in records.items()})


def _grouped(values: Mapping[int, Any]) -> dict[Any, list[int]]:
    """Groups processes by value: the largest group first, then by process."""
    groups: dict[Any, list[int]] = {}
    for process, value in sorted(values.items()):
        groups.setdefault(value, []).append(process)
    return dict(sorted(groups.items(), key=lambda group: (-len(group[1]), group[1])))


# ---- messages ----


def _code_and_text(e: BaseException) -> tuple[int, str]:
    """Returns the code and the text of an error for the other processes."""
    if isinstance(e, errors.Error):
        return errors.Code.Timeout if isinstance(e, TimeoutError) else e.code, e.message
    return errors.Code.Internal, f"{type(e).__name__}: {e}".removesuffix(": ")


def _different(found: Mapping[int, str]) -> Verdict:
    """Returns the verdict about copies that differ, from a description by array."""
    first, *more = sorted(found)
    text = found[first]
    if more:
        text += f"; {len(more)} more array{'s differ' if len(more) > 1 else ' differs'}"
    return {"code": errors.Code.DataLoss, "message": text, "hint": _HINT}


def _failed(records: Mapping[int, Record]) -> Verdict:
    """Returns the verdict about a process that could not read its arrays, if there is one."""
    for process, record in records.items():
        if "failed" in record:
            code, text = record["failed"]
            hint = "see its log"
            text = f"process {process}: {text}"
            return {"code": code, "message": text, "hint": hint, "process": process}
    return {}


def _other_steps(title: str, groups: Mapping[int | None, Sequence[int]]) -> Verdict:
    """Returns the verdict about a call that is for other steps in some processes."""
    each = (f"step={step} on {named(have)}" for step, have in groups.items())
    message = f"{title} has {', '.join(each)}"
    hint = f"{_SAME_CALLS}, with the same step="
    if None not in groups:
        first = min(step for step in groups if step is not None)
        others = sorted(p for step, have in groups.items() if step != first for p in have)
        message += f": {named(others, 'has', 'have')} left out the call of step {first}"
    return {"code": errors.Code.Incompatible, "message": message, "hint": hint}


def _other_lines(title: str, groups: Mapping[str, Sequence[int]]) -> Verdict:
    """Returns the verdict about a call that some processes make at another line."""
    each = (f"{line} on {named(have)}" for line, have in groups.items())
    message = f"{title} is made at {', '.join(each)}, and their arrays differ"
    hint = f"{_SAME_CALLS}; give calls at different lines names of their own"
    return {"code": errors.Code.Incompatible, "message": message, "hint": hint}


def _other_trees(known: Sequence[tuple[Sequence[int], Facts | None]]) -> Verdict:
    """Returns the verdict about trees that differ, given with the processes that have each."""
    told = [(processes, facts) for processes, facts in known if facts is not None]
    found = []
    for name in dict.fromkeys(name for _, facts in told for name in facts):
        without = sorted(p for processes, facts in told if name not in facts for p in processes)
        if without:
            found.append(f"array {name!r} is missing on {named(without)}")
            continue
        have = [(processes, facts[name]) for processes, facts in told]
        fields = dict.fromkeys(field for _, each in have for field in each)
        for field in fields:
            values: dict[str, list[int]] = defaultdict(list)
            for processes, each in have:
                values[str(each.get(field, "none"))] += processes
            if len(values) > 1:
                texts = (
                    f"{value} on {named(sorted(processes))}" for value, processes in values.items()
                )
                found.append(f"array {name!r} has the {field} {', '.join(texts)}")
                break
    if not found:
        found.append("the arrays have another order")
    if len(found) > FIELDS:
        found[FIELDS:] = [f"{len(found) - FIELDS} more"]
    message = f"the processes have different trees: {'; '.join(found)}"
    hint = "give every process the same tree, with the same shardings"
    return {"code": errors.Code.Incompatible, "message": message, "hint": hint}


def _differing(name: str, index: Index, digests: Mapping[tuple[int, int], str]) -> str:
    """Describes a part if its copies differ, and names the copies that differ from most."""
    part = f", index [{', '.join(f'{a}:{b}' for a, b in index)}]" if index else ""
    groups: dict[str, Copies] = defaultdict(list)
    for copy, digest in digests.items():
        groups[digest].append(copy)
    *odd, most = sorted(groups.values(), key=len)
    if 2 * len(most) > len(digests):
        first = sorted(copy for copies in odd for copy in copies)
        others = f"the other {len(most)} copies"
    else:  # no copy has a majority
        first, *rest = sorted(map(sorted, groups.values()))
        others = " and from ".join(_located(copies) for copies in rest)
    verb = "differs" if len({process for process, _ in first}) == 1 else "differ"
    return f"array {name!r}{part}: {_located(first)} {verb} from {others}"


def _located(copies: Copies) -> str:
    """Names processes and their devices, such as "process 2 (devices 4 and 5)"."""
    devices: dict[int, list[int]] = defaultdict(list)
    for process, device in sorted(copies):
        devices[process] += [device] if device > HOST else []
    each = []
    for process, ids in list(devices.items())[: wording.LISTED]:
        *rest, last = map(str, ids) if ids else [""]
        text = f"devices {', '.join(rest)} and {last}" if rest else f"device {last}"
        each.append(f"process {process} ({text})" if ids else f"process {process}")
    if len(devices) > len(each):
        each.append(f"{len(devices) - len(each)} more processes")
    *rest, last = each
    return f"{', '.join(rest)} and {last}" if rest else last
