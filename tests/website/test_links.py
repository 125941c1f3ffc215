"""Every link of the built site leads somewhere, and the site needs no network.

`make site` builds it. MESHFEED_DEEP=1 permits the tests, which are part of `make test-deep`.
"""

from __future__ import annotations

import functools
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

SITE = Path(__file__).resolve().parents[2] / "site"
LAYOUT_PAGE = SITE / "layout.html"  # its own tests check it; a fragment of it is a document
LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("source", "src"), ("iframe", "src")}
# What a link element may name without loading it.
NAMED = {"next", "prev", "search", "index", "author", "canonical", "help"}

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(os.environ.get("MESHFEED_DEEP") != "1", reason="MESHFEED_DEEP=1"),
]


class Page(HTMLParser):
    """The links of a page, the files that it loads, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keeps the attributes that lead to something."""
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.anchors.append(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        for name in ("src", "href"):
            if (tag, name) in LOADED and name in given and given.get("rel") not in NAMED:
                self.loaded.append(given[name])


@functools.cache
def page(path: Path) -> Page:
    return Page(path)


def pages() -> list[Path]:
    all_pages = {*SITE.rglob("*.html")} - {LAYOUT_PAGE, *SITE.glob("_static/**/*.html")}
    found = sorted(all_pages)
    assert len(found) > 100, "make site"
    return found


def wrong(path: Path, link: str) -> str | None:
    """Says what is wrong with a link, or returns None."""
    parts = urlsplit(link)
    if parts.scheme in ("http", "https"):
        return None if re.fullmatch(r"[\w.-]+\.\w+(:\d+)?", parts.netloc) else "has no host"
    if parts.scheme == "mailto":
        return None
    if parts.scheme or parts.netloc or link.startswith("/"):
        return "is neither relative nor of the web"
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_file():
        return "leads to no file"
    has_anchors = target.suffix == ".html" and target != LAYOUT_PAGE
    if parts.fragment and has_anchors and unquote(parts.fragment) not in page(target).anchors:
        return "leads to no anchor"
    return None


def test_every_link_leads_somewhere() -> None:
    broken = [
        f"{path.relative_to(SITE)}: {link} {problem}"
        for path in pages()
        for link in page(path).links
        if (problem := wrong(path, link))
    ]
    assert broken == []


def test_a_broken_link_is_noticed() -> None:
    index = SITE / "index.html"
    assert wrong(index, "absent.html") == "leads to no file"
    assert wrong(index, "choose.html#absent") == "leads to no anchor"
    assert wrong(index, "http://") == "has no host"
    assert wrong(index, "choose.html") is None


def test_the_site_loads_nothing_from_elsewhere() -> None:
    outside = [
        f"{path.relative_to(SITE)}: {name}"
        for path in pages()
        for name in page(path).loaded
        if not name.startswith("data:")
        and (urlsplit(name).netloc or wrong(path, name.partition("?")[0]) is not None)
    ]
    assert outside == []
    for style in SITE.rglob("*.css"):
        found = re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//[^)\"']*", style.read_text())
        assert found == [], style


def test_an_anchor_is_on_a_page_once() -> None:
    for path in pages():
        anchors = [a for a in page(path).anchors if not a.startswith("pst-")]
        assert sorted(set(anchors)) == sorted(anchors), path.relative_to(SITE)


def test_every_guide_can_be_downloaded() -> None:
    guides = sorted((SITE.parent / "docs/guides").iterdir())
    for guide in guides:
        named = page(SITE / "guides" / f"{guide.stem}.html").links
        for suffix in (".go",) if guide.suffix == ".md" else (".py", ".ipynb"):
            (link,) = [x for x in named if x.endswith(f"/{guide.stem}{suffix}")]
            assert wrong(SITE / "guides" / "x.html", link) is None
