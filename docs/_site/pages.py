"""Copies the pages of the site into one folder, and makes their links lead to pages of the site.

Pages link source files by relative paths, so that links work on a repository host too. On the site
a link to a page leads to the page, and a link to another file leads to a page that shows the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Pages outside docs, and their places on the site.
ELSEWHERE = {
    "README.md": "readme.md",
    "RATIONALE.md": "rationale.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "arrowio/README.md": "gathers.md",
    "capi/README.md": "reference/c-library.md",
    "core/loader/README.md": "one-record.md",
    "tests/conformance/README.md": "conformance.md",
}

CODE = re.compile(r"^(`{3,}|~{3,}).*?^\1$", re.DOTALL | re.MULTILINE)
QUOTED = re.compile(r"(`+)(?:(?!`).)+?\1(?!`)")
LINK = re.compile(r"(\[(?:[^\]\[]|\[[^\]]*\])*\])\(([^)\s]+)\)")
GO = re.compile(r"^```go\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TABLE = re.compile(r"^\| level \|.*\n(?:\|.*(?:\n|\Z))+", re.MULTILINE)  # at the top of a guide
LEXERS = {
    ".py": "python",
    ".go": "go",
    ".c": "c",
    ".h": "c",
    ".rs": "rust",
    ".ts": "typescript",
    ".json": "json",
}


class Site:
    """The folder of pages that Sphinx reads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._places = places()
        self._sources: set[str] = set()  # files and folders that pages link
        self._written: set[Path] = set()

    def build(self) -> None:
        """Writes every page that has changed, and removes pages that no longer exist."""
        for name, place in self._places.items():
            source = ROOT / name
            if source.suffix == ".py":
                self._guide(source, place)
            else:
                text = self.linked(source.read_text(), name, place)
                if name == "README.md":  # the start page has the name of the project
                    text = text.replace("# meshfeed\n", "# Overview\n", 1)
                self.write(place, self._with_program(text, source))
        while missing := sorted(n for n in self._sources if f"{shown(n)}.md" not in self):
            for name in missing:
                self._source(name)
        for path in self._folder.rglob("*"):
            if path.is_file() and path not in self._written:
                path.unlink()

    def __contains__(self, place: str) -> bool:
        return self._folder / place in self._written

    def write(self, place: str, text: str) -> None:
        """Writes a page. An unchanged one keeps its time, so that Sphinx does not read it again."""
        path = self._folder / place
        self._written.add(path)
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def linked(self, text: str, name: str, place: str) -> str:
        """Returns the text of a page with links for the site."""
        parts = []
        for code, part in split(text, CODE):
            for quoted, words in split(part, QUOTED) if not code else [(True, part)]:
                parts.append(words if quoted else self._links(words, name, place))
        return "".join(parts)

    def _links(self, text: str, name: str, place: str) -> str:
        def link(match: re.Match[str]) -> str:
            words, target = match.groups()
            path, mark, anchor = target.partition("#")
            if not path or "://" in target or target.startswith("mailto:"):
                return match[0]
            found = os.path.normpath(os.path.join(os.path.dirname(name), path))
            if path.endswith(".svg"):  # a picture of a page
                self.write(
                    os.path.normpath(os.path.join(os.path.dirname(place), path)),
                    (ROOT / found).read_text(),
                )
                return match[0]
            if os.path.basename(found) == "layout.html":  # `make page` builds it
                return f'<a href="layout.html{mark}{anchor}">{words[1:-1]}</a>'
            to = self._places.get(found, "").replace(".py", ".ipynb")
            if not to:
                if not (ROOT / found).exists():
                    return match[0]  # Sphinx reports it
                self._sources.add(found)
                to, mark, anchor = f"{shown(found)}.md", "", ""
            to = os.path.relpath(to, os.path.dirname(place) or ".")
            return f"{words}({to}{mark}{anchor})"

        return LINK.sub(link, text)

    def _guide(self, source: Path, place: str) -> None:
        """Writes a guide as a notebook to execute, as a notebook to download, and as it is."""
        import jupytext  # the quick tests of this module do without it

        guide = jupytext.read(source)
        guide.cells = [c for c in guide.cells if not c.source.startswith("# ruff: noqa")]
        guide.metadata = {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}
        }
        for i, cell in enumerate(guide.cells):
            cell["id"] = f"cell-{i}"
        notebook = place.replace(".py", ".ipynb")
        texts = [cell for cell in guide.cells if cell.cell_type == "markdown"]
        kept = [cell.source for cell in texts]
        for cell in texts:  # a single notebook has no other pages beside it
            cell.source = LINK.sub(
                lambda m: m[0] if m[2][0] == "#" or "://" in m[2] else m[1][1:-1], cell.source
            )
        self.write(f"downloads/{source.stem}.ipynb", jupytext.writes(guide, fmt="ipynb"))
        self.write(f"downloads/{source.name}", source.read_text())
        for cell, text in zip(texts, kept, strict=True):
            cell.source = self.linked(text, str(source.relative_to(ROOT)), place)
        files = {"Notebook": f"{source.stem}.ipynb", "Program": source.name}
        texts[0].source = with_downloads(texts[0].source, files)
        self.write(notebook, jupytext.writes(guide, fmt="ipynb"))

    def _with_program(self, text: str, source: Path) -> str:
        """Returns a guide in Markdown with its program, which its blocks of Go are, to download."""
        blocks = GO.findall(text) if "| level |" in text else []
        if not blocks:
            return text
        self.write(f"downloads/{source.stem}.go", "\n".join(blocks))
        return with_downloads(text, {"Program": f"{source.stem}.go"})

    def _source(self, name: str) -> None:
        """Writes a page that shows a file, or lists a folder."""
        path, place = ROOT / name, f"{shown(name)}.md"
        head = f"---\norphan: true\nnosearch: true\n---\n\n# `{name}`\n\n"
        if path.is_dir():
            inside = sorted(p for p in path.iterdir() if not p.name.startswith((".", "_")))
            lines = [f"- [`{p.name}`]({p.name})" for p in inside if p.is_file()]
            self.write(place, head + self._links("\n".join(lines), f"{name}/x", place) + "\n")
            return
        text = path.read_text()
        fence = "`" * (1 + max((len(m) for m in re.findall("`{3,}", text)), default=2))
        lexer = LEXERS.get(path.suffix, "text")
        code = f"{fence}{{code-block}} {lexer}\n:linenos:\n:force:\n\n{text}\n{fence}\n"
        self.write(place, head + code)


def with_downloads(text: str, files: dict[str, str]) -> str:
    """Returns a guide with links to its files below the table at its top."""
    links = " · ".join(
        f"{{download}}`{words} <../downloads/{name}>`" for words, name in files.items()
    )
    return TABLE.sub(lambda table: f"{table[0]}\n{links}\n", text, count=1)


def places() -> dict[str, str]:
    """Returns the place on the site of every page, by its path in the repository."""
    docs = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/guides/*.py")]
    inside = {str(p.relative_to(ROOT)): str(p.relative_to(ROOT / "docs")) for p in sorted(docs)}
    return {**ELSEWHERE, **inside}


def shown(name: str) -> str:
    """Returns the place of a page that shows a file or a folder, without the suffix."""
    return f"source/{name.rstrip('/')}"


def split(text: str, code: re.Pattern[str]) -> Iterator[tuple[bool, str]]:
    """Yields the parts of a text, and whether they are code."""
    at = 0
    for found in code.finditer(text):
        yield False, text[at : found.start()]
        yield True, found[0]
        at = found.end()
    yield False, text[at:]
