"""Writes the pages of the C headers: every comment with the declarations that it describes.

A comment of the headers often describes several declarations, and fields have comments behind them.
Tools that expect one comment for each declaration lose some of them, so the pages show the
declarations as they are.
"""

from __future__ import annotations

import re
import textwrap

from docs._site.pages import ROOT, Site

HEADERS = ("meshfeed.h", "meshfeed_views.h", "meshfeed_certificate.h", "meshfeed_devices.h")
INLINE = re.compile(r"^static inline (.*?) \{\n.*?^\}", re.DOTALL | re.MULTILINE)
SECTION = re.compile(r"^/\* -{4} (.*?) -+ \*/$", re.MULTILINE)
OPENING = re.compile(r"\A/\*\n(.*?)\*/", re.DOTALL)
PREPROCESSOR = re.compile(
    r"^#ifdef __cplusplus\n.*?^#endif$"
    r"|^#(?:ifndef|define) MESHFEED\w*_H$|^#include [^\n]*$|^#endif$",
    re.DOTALL | re.MULTILINE,
)
COMMENT = re.compile(r"^/\* ((?:(?!\*/).)*)\*/\n", re.DOTALL | re.MULTILINE)
FUNCTION = re.compile(r"^(?:typedef )?\w[\w* ]*?\b(mf_\w+)\(", re.MULTILINE)
STRUCT = re.compile(r"^(?:typedef )?struct (\w+)(?: \{|;)|^typedef .*?(\w+);$", re.MULTILINE)
CONSTANT = re.compile(r"^#define (MF_\w+)|\b(MF_\w+) =", re.MULTILINE)


def build(site: Site) -> None:
    """Writes an index, and one page for each header."""
    texts = {
        name: INLINE.sub(r"\1;", (ROOT / "capi/include" / name).read_text()) for name in HEADERS
    }
    places: dict[str, str] = {}
    for header, text in texts.items():
        for name in [*_found(FUNCTION, text), *_found(STRUCT, text), *_found(CONSTANT, text)]:
            places.setdefault(name, _place(header))
    for header, text in texts.items():
        site.write(f"reference/c/{_place(header)}.md", _page(header, text, places))
    toctree = "\n".join(_place(header) for header in HEADERS)
    site.write(
        "reference/c/index.md",
        "# C headers\n\n"
        "Loading needs `meshfeed.h` only. [The C library](../c-library.md) has programs,"
        f" and says how to compile and install them.\n\n```{{toctree}}\n{toctree}\n```\n",
    )


def _page(header: str, text: str, places: dict[str, str]) -> str:
    opening = OPENING.match(text)
    assert opening, f"{header} does not begin with a comment"
    page = [f"# {header}", "", *_opening(opening[1], places), ""]
    first, *sections = SECTION.split(PREPROCESSOR.sub("", text[opening.end() :]))
    for title, body in [("", first), *zip(sections[::2], sections[1::2], strict=True)]:
        if title:
            page += [f"## {title.capitalize()}", ""]
        uncommented, *rest = COMMENT.split(body)
        for comment, code in [("", uncommented), *zip(rest[::2], rest[1::2], strict=True)]:
            if code.strip():
                page += _entry(comment, code.strip(), places)
    return "\n".join(page) + "\n"


def _entry(comment: str, code: str, places: dict[str, str]) -> list[str]:
    """Returns the declarations below one comment, with an anchor for each name."""
    names = [*_found(FUNCTION, code), *_found(STRUCT, code)] or _found(CONSTANT, code)
    every = dict.fromkeys([*names, *_found(CONSTANT, code)])
    title = ", ".join(names) if len(names) < 4 else f"{names[0]} … {names[-1]}"
    text = _text(re.sub(r"^   ", "", comment, flags=re.MULTILINE).rstrip(), places)
    anchors = [f"(c-{name.lower()})=" for name in every]
    return [*anchors, f"### `{title}`", "", "```c", code, "```", "", *text, ""]


def _opening(comment: str, places: dict[str, str]) -> list[str]:
    """Returns the comment at the top of a header. Its paragraphs begin with a title."""
    text = re.sub(r"^ \*(?: |$)", "", comment, flags=re.MULTILINE).strip()
    title = re.compile(r"(?<=\n\n)([A-Z]\w*(?: [a-zA-Z]+){0,2}\.) (?=[A-Z])")
    return title.sub(r"**\1** ", "\n".join(_text(text, places))).splitlines()


def _text(comment: str, places: dict[str, str]) -> list[str]:
    """Returns a comment as Markdown: indented lines are code, and names are links."""
    lines: list[str] = []
    for part in re.split(r"((?:^ {2,}.*\n?)+)", comment, flags=re.MULTILINE):
        if part.startswith("  "):
            lines += ["", "```text", textwrap.dedent(part).rstrip(), "```", ""]
        else:
            lines += _linked(part.strip(), places).splitlines()
    return lines


def _linked(text: str, places: dict[str, str]) -> str:
    def link(name: re.Match[str]) -> str:
        if place := places.get(name[0]):
            return f"[`{name[0]}`]({place}.md#c-{name[0].lower()})"
        return name[0].replace("_", r"\_").replace("*", r"\*")

    parts = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else re.sub(r"[\w*]+", link, p) for p in parts)


def _found(pattern: re.Pattern[str], text: str) -> list[str]:
    """Returns the names that a pattern finds, in order."""
    return [next(filter(None, match.groups())) for match in pattern.finditer(text)]


def _place(header: str) -> str:
    return header.removesuffix(".h")
