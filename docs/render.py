"""Renders a guide, a Python file in cells, to a notebook and to one HTML page, with its output.

    python docs/render.py docs/guides/distributed.py [--out FOLDER]

A cell of code begins with `# %%`, a cell of text in comments with `# %% [markdown]`. The cells run
in order in this process. Their printed text and the layouts that they show appear below them.
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import html
import io
import json
import keyword
import re
import tokenize
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STYLE = """
:root { color-scheme: light dark; --text: #1d2733; --page: #fff; --link: #2f6fb0; --code: #f1f4f7;
        --block: #f6f8fa; --bar: #d5dde5; --out: #3b4957; --line: #e4e9ee;
        --keyword: #9a3a6a; --string: #2c6e49; --comment: #6b7885; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e3e9ef; --page: #0f141a; --link: #7fb4ee; --code: #1f2832;
          --block: #171e26; --bar: #3a4654; --out: #b9c4cf; --line: #2a333d;
          --keyword: #e59abf; --string: #8fd0a8; --comment: #8b98a6; }
}
body { font: 16px/1.6 system-ui, sans-serif; color: var(--text); background: var(--page);
       max-width: 58rem; margin: 2.5rem auto 5rem; padding: 0 1.25rem; }
h1 { font-size: 1.9rem; margin-bottom: .4rem; } h2 { font-size: 1.3rem; margin: 3rem 0 .4rem; }
a { color: var(--link); }
code { font: .88em ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; }
p code, li code, td code { background: var(--code); border-radius: 3px; padding: .1em .3em; }
pre { font-size: .86rem; line-height: 1.45; padding: .8rem 1rem; overflow-x: auto; margin: .8rem 0;
      border-radius: 6px; background: var(--block); }
pre.out { background: none; border-left: 3px solid var(--bar); border-radius: 0; color: var(--out);
          white-space: pre-wrap; overflow-wrap: anywhere; }
figure { margin: 1rem 0; padding: .4rem 0; overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0; font-size: .95rem; width: 100%;
        table-layout: fixed; }
th:first-child { width: 54%; } td { overflow-wrap: anywhere; }
th { text-align: left; } th, td { padding: .35rem 1.2rem .35rem 0; vertical-align: top;
     border-bottom: 1px solid var(--line); }
.k { color: var(--keyword); } .s { color: var(--string); } .c { color: var(--comment); }
"""


@dataclass
class Cell:
    """A cell of a guide.

    Attributes:
        kind: "markdown" or "code".
        text: the text, without the comment signs of markdown.
        line: the line of the file at which the text begins, from 0.
        outputs: what the cell printed and showed, in order: ("text" or "svg", content).
    """

    kind: str
    text: str
    line: int
    outputs: list[tuple[str, str]] = field(default_factory=list)


def cells(source: str) -> list[Cell]:
    """Cuts a file into its cells."""
    found = []
    marks = list(re.finditer(r"^# %%( \[markdown\])?\n", source, re.MULTILINE))
    ends = [mark.start() for mark in marks[1:]] + [len(source)]
    for mark, end in zip(marks, ends, strict=True):
        text = source[mark.end() : end].rstrip("\n")
        line = source.count("\n", 0, mark.end())
        if mark[1]:
            text = re.sub(r"^# ?", "", text, flags=re.MULTILINE)
        found.append(Cell("markdown" if mark[1] else "code", text, line))
    return found


def run(path: Path, guide: list[Cell]) -> None:
    """Runs the code cells in order."""
    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
    printed = io.StringIO()
    for cell in guide:
        if cell.kind == "code":
            setattr(builtins, "display", Display(cell, printed).show)  # noqa: B010, as in IPython
            # Blank lines before it let tracebacks and inspect find the lines of the file.
            code = compile("\n" * cell.line + cell.text, str(path), "exec")
            with contextlib.redirect_stdout(printed):
                exec(code, names)
            keep(cell, printed)


def keep(cell: Cell, printed: io.StringIO) -> None:
    """Moves the printed text to the outputs of a cell."""
    if text := printed.getvalue():
        cell.outputs.append(("text", text))
    printed.seek(0)
    printed.truncate()


@dataclass(frozen=True)
class Display:
    """Replaces IPython's `display` while a cell runs."""

    cell: Cell
    printed: io.StringIO

    def show(self, layout: Any) -> None:
        """Adds the picture of a layout below the text printed so far."""
        keep(self.cell, self.printed)
        self.cell.outputs.append(("svg", layout.to_svg()))


def notebook(guide: list[Cell]) -> str:
    """Returns the notebook, in format 4.5."""
    pages = []
    for i, cell in enumerate(guide):
        page: dict[str, Any] = {
            "cell_type": cell.kind,
            "id": f"cell-{i}",
            "metadata": {},
            "source": cell.text,
        }
        if cell.kind == "code":
            page |= {"execution_count": None, "outputs": [output(*o) for o in cell.outputs]}
        pages.append(page)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {
        "cells": pages,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def output(kind: str, content: str) -> dict[str, Any]:
    if kind == "text":
        return {"output_type": "stream", "name": "stdout", "text": content}
    return {"output_type": "display_data", "data": {"image/svg+xml": content}, "metadata": {}}


def page(guide: list[Cell]) -> str:
    """Returns the HTML page."""
    body = []
    for cell in guide:
        if cell.kind == "markdown":
            body.append(blocks(cell.text))
            continue
        body.append(f"<pre>{colored(cell.text)}</pre>")
        for kind, content in cell.outputs:
            if kind == "svg":
                body.append(f"<figure>{content}</figure>")
            else:
                body.append(f'<pre class="out">{html.escape(content.rstrip())}</pre>')
    title = html.escape(guide[0].text.splitlines()[0].lstrip("# "))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title><style>{STYLE}</style></head><body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def blocks(text: str) -> str:
    """Renders markdown as HTML: headings, paragraphs, lists, tables, code."""
    return "\n".join(block(part) for part in re.split(r"\n\n(?!.*\n```$)", fenced(text)) if part)


def fenced(text: str) -> str:
    """Hides blank lines inside code, so that blocks can be split at blank lines."""
    return re.sub(r"```.*?```", lambda m: m[0].replace("\n\n", "\n\0\n"), text, flags=re.DOTALL)


def block(text: str) -> str:
    if text.startswith("```"):
        code = text.split("\n", 1)[1].removesuffix("```").replace("\0", "").rstrip()
        return f"<pre>{colored(code)}</pre>"
    if heading := re.fullmatch(r"(#+) (.*)", text):
        level, name = len(heading[1]), heading[2]
        anchor = re.sub(r"[^a-z0-9]+", "-", name.lower())
        return f'<h{level} id="{anchor}">{inline(name)}</h{level}>'
    if text.startswith("| "):
        head, _, *rows = (row.strip("| ").split(" | ") for row in text.splitlines())
        return f"<table>{row(head, 'th')}{''.join(row(cells, 'td') for cells in rows)}</table>"
    if listed := re.match(r"(- |1\. )", text):
        tag = "ul" if listed[1] == "- " else "ol"
        items = re.split(r"^(?:- |\d+\. )", text, flags=re.MULTILINE)[1:]
        return f"<{tag}>{''.join(f'<li>{inline(item)}</li>' for item in items)}</{tag}>"
    return f"<p>{inline(text)}</p>"


def row(columns: list[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{inline(column)}</{tag}>' for column in columns)}</tr>"


def inline(text: str) -> str:
    text = html.escape(text, quote=False)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)
    return re.sub(r"\[([^]]+)\]\(([^)]+)\)", r'<a href="\2">\1</a>', text)


def colored(code: str) -> str:
    """Renders Python as HTML, with keywords, strings and comments marked."""
    lines, out, at = code.splitlines(keepends=True), [], (1, 0)

    def upto(end: tuple[int, int]) -> str:
        between = lines[at[0] - 1 : end[0]]
        if end[0] <= len(lines):
            between[-1] = between[-1][: end[1]]
        between[0] = between[0][at[1] :]
        return html.escape("".join(between), quote=False)

    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        style = style_of(token)
        if style:
            out.append(upto(token.start))
            at = token.start
            out.append(f'<span class="{style}">{upto(token.end)}</span>')
            at = token.end
    out.append(html.escape("".join([lines[at[0] - 1][at[1] :], *lines[at[0] :]]), quote=False))
    return "".join(out).rstrip()


def style_of(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.NAME and keyword.iskeyword(token.string):
        return "k"
    return {tokenize.STRING: "s", tokenize.COMMENT: "c"}.get(token.type, "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("guide", type=Path)
    parser.add_argument("--out", type=Path, help="the folder to write to; by default the guide's")
    given = parser.parse_args()
    path, out = given.guide.resolve(), (given.out or given.guide.parent).resolve()
    guide = cells(path.read_text(encoding="utf-8"))
    run(path, guide)
    for suffix, text in ((".ipynb", notebook(guide)), (".html", page(guide))):
        (out / path.name).with_suffix(suffix).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
