"""Runs the commands of a guide, and writes their output below them.

    python docs/refresh.py docs/guides/layouts.md

A command is a block of `sh` with a block of `text` below it. It runs in the root of the checkout
with the package's command on PATH. Links to layout.html are also rewritten. The part after "#v1="
contains the layout file that the same line links before it: canonical JSON, deflated, in base64url.
The part after "#strategy.v1=" contains the text of a strategy file in the same way.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path

import meshfeed as mf

ROOT = Path(__file__).resolve().parents[1]
BLOCKS = re.compile(r"^```sh\n(.*?)^```\n\n```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINKS = re.compile(
    r"\(\.\./(layouts|strategies)/([\w-]+\.json)\)(.*?)layout\.html#(?:strategy\.)?v1=([\w-]*)"
)
MARKS = {"layouts": "#v1=", "strategies": "#strategy.v1="}


def refreshed(guide: str) -> str:
    """Returns the guide with new outputs and links."""
    return BLOCKS.sub(lambda m: f"```sh\n{m[1]}```\n\n```text\n{printed(m[1])}```", linked(guide))


def linked(guide: str) -> str:
    """Returns the guide with links that contain the layouts and strategies."""
    return LINKS.sub(_linked, guide)


def _linked(link: re.Match[str]) -> str:
    folder, name, between, fragment = link.groups()
    kept = _kept(document(folder, name), fragment)
    return f"(../{folder}/{name}){between}layout.html{MARKS[folder]}{kept}"


def printed(command: str) -> str:
    """Returns what a command prints, errors included."""
    path = f"{ROOT / 'python/meshfeed/_bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


def _kept(document: str, fragment: str) -> str:
    """Returns the old fragment if it decodes to the document, else a new one.

    Other releases of zlib may compress differently, so a new fragment could differ without need.
    """
    return fragment if document_of(fragment) == document else fragment_of(document)


def document(folder: str, name: str) -> str:
    """Returns the text of a strategy, or the canonical text of a layout."""
    text = (ROOT / "docs" / folder / name).read_text()
    return mf.Layout.from_json(text).to_json() if folder == "layouts" else text


def fragment_of(document: str) -> str:
    """Packs a document as the browser page does for its links."""
    packed = zlib.compress(document.encode(), level=9, wbits=-15)
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def document_of(fragment: str) -> str | None:
    """Unpacks a fragment; returns None if it is invalid."""
    try:
        packed = base64.urlsafe_b64decode(fragment + "=" * (-len(fragment) % 4))
        return zlib.decompress(packed, wbits=-15).decode()
    except (ValueError, zlib.error):
        return None


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(refreshed(path.read_text()))
