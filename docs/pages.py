"""Writes the pages that follow from the code: `make pages`.

tests/python/docs/test_pages.py compares them with the code.

- docs/troubleshooting.md, from docs/troubleshooting.toml, the error classes, and the codes of
  `meshfeed explain`
- docs/opens.md, from opens.py, which opens every kind of data
- docs/pictures, from the code
"""

from __future__ import annotations

import inspect
import re
import subprocess
import textwrap
import tomllib
from collections.abc import Callable
from pathlib import Path

import drawings
import opens

from meshfeed import errors

DOCS = Path(__file__).resolve().parent
COMMAND = DOCS.parent / "python/meshfeed/_bin/meshfeed"

# What to do about an error of a class, beside its own hint.
REMEDIES = {
    "InvalidArgumentError": "correct the argument that the message names",
    "OutOfRangeError": "ask for a record, position or epoch that exists",
    "NotFoundError": "correct the path, the field or the process; the message lists what there is",
    "InvalidStateError": "make another object, or change the order of the calls",
    "IncompatibleError": "continue with what was saved; the message shows both values",
    "DataLossError": "restore the file, then continue from the last state; `meshfeed verify FILE`",
    "ReadError": "look at the disk or the network file system, then continue from the last state",
    "ResourceExhaustedError": "make room, drop references to batches, or raise the limit",
    "UnsupportedError": "do what the message proposes instead",
    "CancelledError": "nothing: another thread or the end of the program closed the object",
    "ForkedError": "start processes with `spawn`",
    "InternalError": "report it: it is a bug of meshfeed",
    "PeerError": "look at the log of the process that it names, then continue from the last state",
}


INTRODUCTION = """\
Search this page for a part of the message that you see. A test provokes most of these messages, and
finds the others in the code. Three commands often show the cause:

```sh
meshfeed doctor                          # what this machine has
meshfeed inspect FILE                    # fields, files, and columns that cannot be arrays
python -m meshfeed selfcheck             # whether loading works on your devices
```
"""


def table(head: list[str], rows: list[list[str]]) -> str:
    """Returns a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def shown(text: str) -> str:
    """Returns a symptom in Markdown: a description in parentheses, or a part of a message."""
    return text[1:-1] if text.startswith("(") else f"`{text.strip()}`"


def symptom(item: dict[str, str]) -> str:
    """Returns an item of the list: what the user sees, the cause, the remedy, what shows more."""
    look = f" See: {item['run']}." if item["run"] else ""
    words = textwrap.wrap(f"{item['why']} {item['do']}{look}", 100, break_on_hyphens=False)
    return "\n  ".join([f"- **{shown(item['see'])}**\\", *words])


def problem_rows() -> list[list[str]]:
    """Returns code, reports and explanation of every problem that a report may have.

    `meshfeed explain` lists the problems first. The reasons to leave out a mesh, the rules and the
    assumptions follow them.
    """
    listed = [line.split()[0] for line in run("explain").splitlines()[1:]]
    rows = []
    for code in dict.fromkeys(listed):
        for part in re.split(rf"^(?={re.escape(code)} \()", run("explain", code), flags=re.M)[1:]:
            head, text = part.split("\n\n", 1)
            if text.startswith("A mesh is left out"):
                return rows
            rows.append([f"`{code}`", head[len(code) + 2 : -1], " ".join(text.split())])
    raise AssertionError("there are no rules behind the problems")


def run(*words: str) -> str:
    """Returns what the command prints."""
    done = subprocess.run([COMMAND, *words], capture_output=True, text=True, check=True)
    return done.stdout


def troubleshooting() -> str:
    """Returns the page of symptoms and codes."""
    groups = tomllib.loads((DOCS / "troubleshooting.toml").read_text())["groups"]
    parts = [
        "# Troubleshooting\n\n<!-- `make pages` writes this page, from troubleshooting.toml -->\n",
        INTRODUCTION,
    ]
    titles = [group["title"] for group in groups] + ["Error classes", "Problems of reports"]
    links = [f"[{title}](#{title.lower().replace(' ', '-')})" for title in titles]
    parts.append("- " + " ·\n  ".join(links) + "\n")
    for group in groups:
        items = "\n".join(map(symptom, group["items"]))
        parts.append(f"## {group['title']}\n\n{items}\n")
    parts.append(f"## Error classes\n\n{classes()}")
    parts.append(
        "## Problems of reports\n\nThe codes of `check`, `plan`, `memory` and `advise`."
        " `meshfeed explain` also lists\nthe rules and assumptions of the planner.\n\n"
        + table(["code", "report of", "meaning and remedy"], problem_rows())
    )
    return "\n".join(parts)


def classes() -> str:
    """Returns the table of error classes."""
    rows = []
    for cls in [*errors.CLASSES.values(), errors.PeerError]:
        meaning, _, _ = (inspect.getdoc(cls) or "").partition("\n\n")
        builtin = [f"`{b.__name__}`" for b in cls.__bases__ if b.__module__ == "builtins"]
        meaning = " ".join(meaning.replace("``", "`").split())
        rows.append([f"`mf.{cls.__name__}`", "".join(builtin), meaning, REMEDIES[cls.__name__]])
    return table(["class", "also a", "meaning", "what to do"], rows)


PAGES: dict[str, Callable[[], str]] = {
    "troubleshooting.md": troubleshooting,
    "opens.md": opens.page,
    "pictures/replicas.svg": drawings.replicas,
    "pictures/record.svg": drawings.record_way,
    "pictures/packages.svg": drawings.packages,
}


def main() -> None:
    """Writes all pages."""
    for name, page in PAGES.items():
        path = DOCS / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(page())


if __name__ == "__main__":
    main()
