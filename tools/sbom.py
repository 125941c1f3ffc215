"""Writes the SBOM of binaries, in CycloneDX's JSON.

    python tools/sbom.py OUT.cdx.json BINARY...

Lists the Go modules of each binary, Go itself, libjpeg-turbo, and the npm packages of the page. The
build information in the binaries, which may be for any platform, has the versions. The licenses
come from THIRD_PARTY_LICENSES. The same binaries give the same bytes, so there is no time and no
serial number.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LICENSES = ROOT / "THIRD_PARTY_LICENSES"
PACKAGES = ROOT / "wasm/page/dist/packages.json"  # the npm packages of the page
JPEG = ROOT / "tools/libjpeg.txt"

# How Go stores build information in a binary: the version, then lines between two marks.
INFORMATION = re.compile(rb"\xff Go buildinf:.{18}.go([\d.]+).{18}(path\t.*?)\xf92C1", re.DOTALL)
ROW = re.compile(r"  (\S+) +(\S+(?: AND \S+)*)")


def licenses() -> dict[str, str]:
    """Returns the SPDX expression of each part, from the table in THIRD_PARTY_LICENSES."""
    table = LICENSES.read_text().partition("=====")[0]
    return {row[1]: row[2] for line in table.splitlines() if (row := ROW.fullmatch(line))}


def parts(binary: Path) -> list[tuple[str, str, str]]:
    """Returns the name, the version and the package URL of every part of a binary."""
    found = INFORMATION.search(binary.read_bytes())
    if found is None:
        sys.exit(f"sbom: {binary} has no build information of Go")
    version, lines = found[1].decode(), found[2].decode().splitlines()
    used = [("Go", version, f"pkg:golang/stdlib@{version}")]
    for line in lines:
        kind, *cells = line.split("\t")
        if kind == "dep":
            used.append((cells[0], cells[1], f"pkg:golang/{cells[0]}@{cells[1]}"))
        elif kind == "build" and re.fullmatch(r"-tags=.*\blibjpeg\b.*", cells[0]):
            of = re.findall(r"libjpeg-turbo ([\d.]+\d)", JPEG.read_text())[0]
            used.append(("libjpeg-turbo", of, f"pkg:github/libjpeg-turbo/libjpeg-turbo@{of}"))
        if kind == "build" and re.fullmatch(r"-tags=.*\bpage\b.*", cells[0]):
            if not PACKAGES.exists():
                sys.exit(f"sbom: {binary} holds a page without {PACKAGES}; run: make page lib")
            packages = json.loads(PACKAGES.read_text())
            used += [(name, of, f"pkg:npm/{name}@{of}") for name, of in packages.items()]
    return [(n, v, url.replace("npm/@", "npm/%40").replace("+", "%2B")) for n, v, url in used]


def sbom(binaries: list[Path]) -> dict[str, Any]:
    """Returns the SBOM of binaries: meshfeed depends on them, and they depend on their parts."""
    known = licenses()
    version = (ROOT / "VERSION").read_text().strip()
    root = f"pkg:pypi/meshfeed@{version}"
    files, libraries = {}, {}
    edges = {root: [binary.name for binary in binaries]}
    for binary in binaries:
        digest = hashlib.sha256(binary.read_bytes()).hexdigest()
        files[binary.name] = {
            "type": "file",
            "bom-ref": binary.name,
            "name": binary.name,
            "hashes": [{"alg": "SHA-256", "content": digest}],
        }
        for name, number, url in parts(binary):
            if name not in known:
                sys.exit(f"sbom: {name} is not in THIRD_PARTY_LICENSES; run: make licenses")
            libraries[url] = component(name, number, url, known[name])
            edges.setdefault(binary.name, []).append(url)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component("meshfeed", version, root, "Apache-2.0")},
        "components": [*files.values(), *(libraries[url] for url in sorted(libraries))],
        "dependencies": [{"ref": ref, "dependsOn": sorted(on)} for ref, on in edges.items()],
    }


def component(name: str, version: str, url: str, expression: str) -> dict[str, Any]:
    """Returns CycloneDX's description of a library."""
    return {
        "type": "library",
        "bom-ref": url,
        "name": name,
        "version": version,
        "licenses": [{"expression": expression}],
        "purl": url,
    }


def main(arguments: list[str]) -> str | None:
    """Returns what is wrong, if anything."""
    if len(arguments) < 2:
        return "usage: python tools/sbom.py OUT.cdx.json BINARY..."
    out, *binaries = map(Path, arguments)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(sbom(binaries), indent=1) + "\n")
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
