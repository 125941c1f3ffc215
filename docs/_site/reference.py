"""Writes the reference of Go, of the command, of the documents and of the codes."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from docs._site.pages import ROOT, Site

COMMAND = ROOT / "python/meshfeed/_bin/meshfeed"
DOCUMENTS = ("layout", "strategy", "memory", "diagram", "measurements", "diagnosis")


def build(site: Site) -> None:
    """Writes all pages."""
    with tempfile.TemporaryDirectory() as folder:
        _run("go", "run", "./tests/godoc", "-out", f"{folder}/go")
        _run(
            *("go", "test", "-count=1", "-run=^TestReference$", "./cmd/meshfeed"),
            *("-args", f"-reference={folder}/command"),
        )
        for page in Path(folder, "go").iterdir():
            site.write(f"reference/go/{page.name}", page.read_text())
        for page in Path(folder, "command").iterdir():
            site.write(f"reference/command/{page.name}", _verb(page.read_text(), page.name))
    site.write("reference/documents.md", _documents())
    site.write("reference/codes.md", _codes())


def _run(*command: str | Path) -> str:
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


def _verb(page: str, name: str) -> str:
    """Returns a page of cobra with headings and fences for the site."""
    page, _, others = page.partition("### SEE ALSO\n")
    page = re.sub(r"^##(#?) ", r"#\1 ", page, flags=re.MULTILINE)
    page = re.sub(r"^## (Synopsis)$\n", "", page, flags=re.MULTILINE)
    page = re.sub(r"^# (.*)\n\n(\w)", lambda m: f"# {m[1]}\n\n{m[2].upper()}", page)
    fences = iter(range(page.count("```")))
    page = re.sub("```", lambda _: "```" if next(fences) % 2 else "```text", page)
    below = [
        link for link in re.findall(r"\((\w[\w-]*)\.md\)", others) if len(link) > len(name) - 3
    ]
    if not below:
        return page
    verbs = re.sub(r"\t - ", ": ", others)
    return page + f"## Verbs\n{verbs}\n```{{toctree}}\n:hidden:\n\n" + "\n".join(below) + "\n```\n"


def _codes() -> str:
    """Returns a page with a section for each code that the command explains."""
    head, *lines = _run(COMMAND, "explain").splitlines()
    kinds = [
        (code, line[head.index("report of") : head.index("what")].strip())
        for line in lines
        for code in line.split()[:1]
    ]
    page = [
        "# Codes",
        "",
        "Reports name problems, excluded meshes and assumptions by these codes.",
        "`meshfeed explain CODE` prints the same.",
        "",
    ]
    for code, kind in kinds:
        _, _, text = _run(COMMAND, "explain", code).partition("\n\n")
        page += [f"## `{code}`", "", f"In a report of: {kind}.", "", _escaped(text.strip()), ""]
    return "\n".join(page)


def _documents() -> str:
    """Returns a page with the keys of all documents, from their schemas."""
    page = [
        "# Documents",
        "",
        "Go, C, Python, the command and the page read the same JSON documents.",
        "`meshfeed schema KIND` prints the JSON Schema of one.",
        "",
    ]
    for kind in DOCUMENTS:
        (path,) = ROOT.glob(f"core/**/document/{kind}.schema.json")
        schema = json.loads(path.read_text())
        defs = schema["$defs"]
        page += [
            f"(schema-{kind})=",
            f"## {schema['title'].removeprefix('meshfeed ').capitalize()}",
            "",
        ]
        page += [_escaped(schema["description"]), "", *_keys(kind, schema, defs)]
        for name, part in defs.items():
            if "properties" in part or "oneOf" in part:
                page += [
                    f"(schema-{kind}-{name})=",
                    f"### {kind}: {name}",
                    "",
                    _escaped(part.get("description", "")),
                    "",
                ]
                page += _keys(kind, part, defs)
        page += [
            "### " + f"{kind}: JSON Schema",
            "",
            ":::{dropdown} " + f"{kind}.schema.json",
            "```json",
        ]
        page += [json.dumps(schema, indent=2, ensure_ascii=False), "```", ":::", ""]
    return "\n".join(page)


def _keys(kind: str, part: dict[str, Any], defs: dict[str, Any]) -> list[str]:
    """Returns a table of the keys of an object; the keys of objects inside follow theirs."""
    rows: list[str] = []
    _rows(_Names(kind, defs), part, "", rows)
    return ["| key | value | meaning |", "| --- | --- | --- |", *rows, ""] if rows else []


class _Names(NamedTuple):
    """The parts of a schema that have a name."""

    kind: str
    defs: dict[str, Any]

    def has_section(self, name: str) -> bool:
        return "properties" in self.defs[name] or "oneOf" in self.defs[name]

    def text(self, value: dict[str, Any]) -> str:
        """Says which values a key may have."""
        if "$ref" in value:
            name = value["$ref"].rpartition("/")[2]
            if other := re.match(r"urn:meshfeed:(\w+):\d+(#?)", value["$ref"]):
                section = f"schema-{other[1]}-{name}" if other[2] else f"schema-{other[1]}"
                return f"[{other[1]}](#{section})"
            if name not in self.defs:  # a part of the document itself
                return f"as `{name}`"
            if self.has_section(name):
                return f"[{name}](#schema-{self.kind}-{name})"
            return self.text(self.defs[name])
        if "const" in value:
            return f"`{json.dumps(value['const'])}`"
        if "enum" in value:
            return ", ".join(f"`{json.dumps(v)}`" for v in value["enum"])
        if options := value.get("anyOf") or value.get("oneOf"):
            return " or ".join(dict.fromkeys(self.text(option) for option in options))
        if value.get("type") == "array":
            if "prefixItems" in value:
                return rf"\[{', '.join(self.text(v) for v in value['prefixItems'])}\]"
            return f"list of: {self.text(value['items'])}" if "items" in value else "list"
        types = value.get("type", "any value")
        return " or ".join(types) if isinstance(types, list) else types

    def meaning(self, value: dict[str, Any]) -> str:
        """Returns the description of a key, or of the part that it refers to."""
        referred = self.defs.get(value.get("$ref", "").rpartition("/")[2], {})
        text = value.get("description") or referred.get("description", "")
        default = f" Default: `{json.dumps(value['default'])}`." if "default" in value else ""
        return _escaped(text) + default


def _rows(names: _Names, part: dict[str, Any], path: str, rows: list[str]) -> None:
    for key, value in part.get("properties", {}).items():
        if not isinstance(value, dict):
            continue
        needed = ", required" if key in part.get("required", ()) else ""
        rows.append(f"| `{path}{key}` | {names.text(value)}{needed} | {names.meaning(value)} |")
        _rows(names, value, f"{path}{key}.", rows)
    for choice in part.get("oneOf", ()):
        _rows(names, choice, path, rows)


def _escaped(text: str) -> str:
    """Escapes what Markdown would read as markup, outside of code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else re.sub(r"([*_<|\[\]$])", r"\\\1", p) for p in parts)
