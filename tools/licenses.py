"""Writes THIRD_PARTY_LICENSES: the licenses of all parts that others wrote.

    python tools/licenses.py          # writes the file, after `make page`
    python tools/licenses.py --check  # fails if the file is not current

The parts are Go itself, the Go modules with packages in the library, the command or the modules of
WebAssembly, libjpeg-turbo, and the npm packages in the page. All platforms and build tags count. A
module can have several licenses: those of its folders with linked packages count, and those of the
folders above.
Notices are included, as Apache-2.0 asks. A file without a license that this program knows ends it,
so that a person reads that file.
"""

from __future__ import annotations

import collections
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "THIRD_PARTY_LICENSES"
HEAD = """\
meshfeed is under the Apache License 2.0, in the file LICENSE. The library, the command and the page
contain these parts, which are under their own licenses:
"""

# What is distributed: GOOS, GOARCH and CGO_ENABLED with packages.
BUILDS = (
    ("linux", "amd64", 1, "./capi", "./cmd/meshfeed"),
    ("linux", "arm64", 1, "./capi", "./cmd/meshfeed"),
    ("darwin", "arm64", 1, "./capi", "./cmd/meshfeed"),
    ("windows", "amd64", 0, "./cmd/meshfeed"),
    ("wasip1", "wasm", 0, "./wasm/guest/layout", "./wasm/guest/strategy"),
)

NAMES = re.compile(r"(LICEN[CS]E|COPYING|NOTICE)(\.txt|\.md)?")
APACHE = "Apache License Version 2.0"
MIT = "Permission is hereby granted, free of charge, to any person obtaining"
BSD = "Redistribution and use in source and binary forms"
THIRD_CLAUSE = "endorse or promote products"
IJG = "based in part on the work of the Independent JPEG Group"
ZLIB = "This software is provided 'as-is', without any express or implied warranty."


def go(*arguments: str, **env: object) -> str:
    """Returns what the go command prints."""
    command = [
        "env",
        "GOFLAGS=",
        *(f"{name}={value}" for name, value in env.items()),
        "go",
        *arguments,
    ]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


def modules() -> Iterator[tuple[str, Path, Path]]:
    """Yields the module, its folder and the folder of the package, for every linked package."""
    form = "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}"
    for goos, goarch, cgo, *packages in BUILDS:
        listing = ("list", "-deps", "-tags", "page,xla", "-f", form, *map(str, packages))
        for line in go(*listing, GOOS=goos, GOARCH=goarch, CGO_ENABLED=cgo).splitlines():
            module, top, folder = line.split("\t")
            yield module, Path(top), Path(folder)


def parts() -> dict[str, dict[str, str]]:
    """Returns the texts of every part by the path of their file in the part."""
    found: dict[str, dict[str, str]] = collections.defaultdict(dict)
    go_root = Path(go("env", "GOROOT").strip())
    used = [*modules(), ("Go", go_root, go_root)]
    for name in json.loads((ROOT / "wasm/page/dist/packages.json").read_text()):
        folder = ROOT / "wasm/page/node_modules" / name
        used.append((name, folder, folder))
    printed = subprocess.check_output([sys.executable, ROOT / "tools/libjpeg.py", "--licenses"])
    found["libjpeg-turbo"] = json.loads(printed)
    for name, top, folder in used:
        for above in (folder, *folder.parents):
            if above.is_relative_to(top):
                for file in filter(lambda file: NAMES.fullmatch(file.name), above.iterdir()):
                    found[name][file.relative_to(top).as_posix()] = file.read_text()
        if not found[name]:
            sys.exit(f"licenses: {name} has no file with its license in {top}")
    return found


def kinds(text: str) -> set[str]:
    """Returns the SPDX identifiers of the licenses in a text."""
    flat = " ".join(text.split())
    bsd, bsd3 = flat.count(BSD), flat.count(THIRD_CLAUSE)
    tests = {
        "Apache-2.0": APACHE in flat,
        "BSD-2-Clause": bsd > bsd3,
        "BSD-3-Clause": bsd3 > 0,
        "IJG": IJG in flat,
        "MIT": MIT in flat,
        "Zlib": ZLIB in flat,
    }
    return {name for name, found in tests.items() if found}


def document() -> str:
    """Returns the text of THIRD_PARTY_LICENSES: a table of parts, then each different text once."""
    table: dict[str, str] = {}
    texts: dict[str, list[str]] = collections.defaultdict(list)
    bodies: dict[str, str] = {}
    for name, files in sorted(parts().items()):
        known: set[str] = set()
        for path, text in sorted(files.items()):
            found = kinds(text)
            if not found and not path.endswith("NOTICE"):
                sys.exit(f"licenses: {path} of {name} has no license that this program knows")
            known |= found
            same = " ".join(text.split())
            texts[same].append(f"{name}: {path}")
            bodies.setdefault(same, text)
        table[name] = " AND ".join(sorted(known))
    width = max(map(len, table))
    lines = [HEAD, *(f"  {name:<{width}}  {kind}" for name, kind in table.items())]
    for same, owners in texts.items():
        body = "\n".join(line.rstrip() for line in bodies[same].splitlines())
        lines += ["", "=" * 80, *owners, "=" * 80, "", body.strip("\n")]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> str | None:
    """Returns what is wrong, if anything."""
    if arguments not in ([], ["--check"]):
        return "usage: python tools/licenses.py [--check]"
    now = document()
    if not arguments:
        OUT.write_text(now)
    elif not OUT.exists() or OUT.read_text() != now:
        return "THIRD_PARTY_LICENSES is not current; run: make licenses"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
