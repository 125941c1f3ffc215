"""The errors about what processes compare, and how messages name processes and batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from meshfeed import errors

OP = "mf.Loader"  # the call that errors name, here and in the process that failed
SAME_STEP = "end the loops of all processes after the same step"
ONE_EPOCH = "one_epoch"  # the call that begins a pass
LISTED = 12  # processes that are named one by one


def named(processes: Sequence[int], one: str = "", many: str = "") -> str:
    """Names processes. `one` follows the name of a single process, `many` follows several names.

    Examples:
        >>> named([2])
        'process 2'
        >>> named([0, 1, 3], "has", "have")
        'processes 0, 1 and 3 have'
    """
    if len(processes) == 1:
        return f"process {processes[0]} {one}".rstrip()
    listed = [str(p) for p in processes[:LISTED]]
    last = f"{len(processes) - LISTED} more" if len(processes) > LISTED else listed.pop()
    return f"processes {', '.join(listed)} and {last} {many}".rstrip()


def counted(batches: int) -> str:
    """Returns a number of batches in words, such as "1 batch"."""
    return "1 batch" if batches == 1 else f"{batches} batches"


def name_is_taken(name: str) -> errors.Error:
    """Makes the error for a name that another open loader has."""
    message = f"name={name!r}: another loader of this process has that name"
    hint = "close it first, or choose another"
    return errors.InvalidStateError(message, op=OP, hint=hint)


def closed(title: str) -> errors.Error:
    """Makes the error for a loader that was closed during an agreement."""
    message = f"loader {title} was closed while it waited for other processes"
    return errors.CancelledError(message, op=OP)


def differ(title: str, differences: Sequence[str], call: str) -> errors.Error:
    """Makes the error for processes with terms (see agreement.py) that differ after a call."""
    message = f"the processes of loader {title} differ: {'; '.join(differences)}"
    hint = "give every process the same data, arguments and state"
    if call == ONE_EPOCH:
        hint = "make the same passes in every process, after the same batches"
    return errors.IncompatibleError(message, op=OP, hint=hint)


def absent(
    title: str, missing: Sequence[int], moved: Mapping[Any, str], seconds: float
) -> errors.Error:
    """Makes the error for processes that are missing in an agreement.

    `moved` are the calls of the processes that have called skip, seek or restore before it, or
    `ONE_EPOCH` for the processes that begin a pass.
    """
    if ONE_EPOCH in moved.values():
        message = f"{named(sorted(map(int, moved)), 'has', 'have')} begun a pass of one_epoch over "
        message += f"loader {title}, and {named(missing, 'has', 'have')} not within {seconds:g} s"
        hint = "run the evaluation in every process, after the same batch; see the logs, or raise "
        error = errors.peer(TimeoutError)(message, op=OP, hint=f"{hint}agree_timeout=")
        return errors.at(error, missing[0])
    message = f"{named(missing, 'has', 'have')} not "
    hint = "every process of the mesh makes the same loaders, and takes their first batches, in "
    hint += "the same order; see its log, "
    if moved:
        callers: dict[str, list[int]] = {}
        for process, call in moved.items():
            callers.setdefault(call, []).append(int(process))
        moves = [f"{named(each, 'has', 'have')} called {call}" for call, each in callers.items()]
        message = f"{', '.join(moves)}, and after it {named(missing, 'has', 'have')} not "
        hint = "call it before the same batch in every process; see the logs, "
    message += f"reached the next batch of loader {title} within {seconds:g} s"
    error = errors.peer(TimeoutError)(message, op=OP, hint=f"{hint}or raise agree_timeout=")
    return errors.at(error, missing[0])


def uneven(taken: Mapping[int, int]) -> str:
    """Describes processes that have closed a loader after different numbers of batches.

    Examples:
        >>> uneven({0: 50, 1: 51, 2: 50}).split(":")[0]
        'processes 0 and 2 have taken 50 batches, and process 1 has taken 51 batches'
    """
    groups = dict[int, list[int]]()
    for process, batches in sorted(taken.items()):
        groups.setdefault(batches, []).append(process)
    each = (f"{named(ps, 'has', 'have')} taken {counted(n)}" for n, ps in groups.items())
    text = f"{', and '.join(each)}: a step may have used different batches in these processes; "
    return f"{text}take the same number of batches in every process"


def skewed(ahead: Sequence[int], behind: Sequence[int], batches: int) -> str:
    """Describes processes that have taken some batches more than others."""
    one, two, where = ahead, behind, "ahead of"
    if len(one) > len(two):
        one, two, where = two, one, "behind"
    text = f"{named(one, 'is', 'are')} {counted(batches)} {where} {named(two)}"
    return f"{text}: a step uses different batches in these processes"


def skew(description: str) -> errors.Error:
    """Makes the error for the processes that `skewed` has described."""
    hint = "take the same number of batches in every process; loader.peek() shows the next one "
    hint += "without taking it; then continue from a saved state in all of them"
    return errors.IncompatibleError(description, op=OP, hint=hint)


def replicas_differ(
    labels: Sequence[str], writer: int, me: int, epoch: int, step: int
) -> errors.Error:
    """Makes the error for replicas that differ between two processes, or within one."""
    more = f" (and {len(labels) - 1} more)" if len(labels) > 1 else ""
    where = f"processes {writer} and {me}" if writer != me else f"devices of process {me}"
    message = f"{labels[0]}{more}, differs between {where} at epoch {epoch}, step {step}"
    hint = "compare what these hosts read: meshfeed verify --hash"
    return errors.DataLossError(message, op=OP, hint=hint)


def files_differ(lead: int, me: int, paths: Sequence[str], here: str, there: str) -> errors.Error:
    """Makes the error for different files; `here` and `there` are the SHA-256 of the first."""
    whose = "their"
    if paths:
        whose = f"{paths[0]}{f' and {len(paths) - 1} more' if len(paths) > 1 else ''}, whose"
    message = f"processes {lead} and {me} read different files: {whose} SHA-256 is {here} on "
    message += f"process {me} and {there} on process {lead}"
    hint = "copy the files again; meshfeed verify --hash prints the SHA-256 of each"
    return errors.IncompatibleError(message, op=OP, hint=hint)
