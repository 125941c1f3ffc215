"""Changes that the site makes to what Sphinx reads and writes."""

from __future__ import annotations

import importlib
import itertools
import re
from pathlib import Path
from typing import Any

from docs._site.pages import ROOT

# Pictures follow the scheme of the system. On the site, the reader may choose another one.
DARK = "@media (prefers-color-scheme:dark){"
ARGUMENTS = re.compile(r'<dl>\n((?:<dd><em class="sig-param">.*?</dd>\n)+)</dl>')
PICTURE = re.compile(r"<svg .*?</svg>", re.DOTALL)
IMAGE = re.compile(r'<p>(?=<img [^>]*\.svg"[^>]*/></p>)')
NAME = re.compile(r'(\sid="|href="#|url\(#)')
BUTTON = '<summary><span class="toctree-toggle"'
LAYOUT_PAGE = 'href="layout.html'  # in a notebook, the page is beside it
CHOSEN = 'html[data-theme="dark"] {'

PRIVATE = re.compile(r"\b_types\.(\w+)")
CHOICES: dict[str, str] = dict(
    re.findall(
        r"^ {4}(\w+) = (Literal\[.*\])$",
        (ROOT / "python/meshfeed/_types.py").read_text(),
        re.MULTILINE,
    )
)

# The options of the loader, in groups. Each group is a section of its docstring on the site.
OPTIONS = {
    "What to load": "source mesh specs batch_size layout process loading extras fill arrow",
    "In which order": "shuffle order seed epochs remainder mask_name mask_spec",
    "How far ahead": "prefetch device_prefetch max_host_bytes",
    "Where to continue": "state dataset",
    "With other processes": (
        "name coordinator agree_timeout on_peer_error verify_replicas late_after"
    ),
}
SECTIONS = [(title, "params_style") for title in OPTIONS]

# Code in a text that is a name of the reference: `mf.layout(…)`, `loader.report()`.
NAMED = re.compile(r"(mf|loader)\.(\w+(?:\.\w+)*)(?:\(.*\))?")
MODULES = {"mf": "meshfeed", "loader": "meshfeed.Loader"}

CODE = re.compile(r"``.*?``|`(?P<code>[^`]+)`|[*|]|_(?=\W)", re.DOTALL)


def setup(app: Any) -> None:
    app.connect("autodoc-process-signature", show_signature)
    app.connect("doctree-resolved", link_names)
    app.connect("build-finished", name_buttons)
    # Both come before napoleon, which reads the sections of a docstring.
    app.connect("autodoc-process-docstring", mark_code, priority=100)
    app.connect("autodoc-process-docstring", group_options, priority=101)
    app.connect("html-page-context", finish)


def show_signature(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: Any, returned: Any
) -> tuple[str, str | None] | None:
    """Shows the arguments of a class only if its docstring describes them, and no private types."""
    if what in ("class", "exception") and "Args:" not in (obj.__doc__ or ""):
        return "", None
    if signature is None:  # an attribute, for which Sphinx takes no signature
        return None
    return public(signature), public(returned) if returned else None


def public(annotations: str) -> str:
    """Replaces the private types of arguments by the values that they stand for."""
    return PRIVATE.sub(lambda name: CHOICES.get(name[1], name[1]), annotations)


def mark_code(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Rewrites `code` as reST has it, and escapes the signs around it; examples stay."""
    parts = "\n".join(lines).split("\n\n")
    text = "\n\n".join(part if ">>>" in part else CODE.sub(literal, part) for part in parts)
    lines[:] = text.splitlines()


def literal(found: re.Match[str]) -> str:
    """Returns a piece of code, or a sign that reST would read as markup."""
    if code := found["code"]:
        return f"``{' '.join(code.split())}``\\ "
    return found[0] if found[0].startswith("`") else f"\\{found[0]}"


def link_names(app: Any, tree: Any, page: str) -> None:
    """Links a name of the package to the reference, once in each section."""
    nodes = importlib.import_module("docutils.nodes")  # quick tests do without it
    entries = app.env.domaindata["py"]["objects"]
    linked = set()
    for code in [*tree.findall(nodes.literal)]:
        name = NAMED.fullmatch(code.astext())
        entry = entries.get(f"{MODULES[name[1]]}.{name[2]}") if name else None
        around: Any = code
        while entry and not isinstance(around, nodes.section | nodes.document):
            around = around.parent
            if isinstance(around, nodes.reference | nodes.title):
                entry = None
        if entry and (id(around), entry.node_id) not in linked:
            linked.add((id(around), entry.node_id))
            place = app.builder.get_relative_uri(page, entry.docname)
            link = nodes.reference("", "", internal=True, refuri=f"{place}#{entry.node_id}")
            code.replace_self(link)
            link += code


def group_options(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Divides the arguments of the loader into groups."""
    if name != "meshfeed.Loader":
        return
    start = lines.index("Args:")
    end = next(i for i in range(start + 1, len(lines)) if re.match(r"\S", lines[i]))
    described: dict[str, list[str]] = {}
    for line in lines[start + 1 : end]:
        if found := re.match(r" {4}(\w+): ", line):
            option = described.setdefault(found[1], [])
        option.append(line)
    grouped = []
    for title, names in OPTIONS.items():
        grouped += [f"{title}:", *(line for n in names.split() for line in described.pop(n)), ""]
    if described:
        raise ValueError(f"docs/_site/hooks.py has no group for these options: {[*described]}")
    lines[start:end] = grouped


def finish(app: Any, name: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Lets pictures follow the reader's choice of a scheme, and links open the layout page."""
    if body := context.get("body"):
        page = context["pathto"]("layout.html", 1)
        body = body.replace(DARK, CHOSEN).replace(LAYOUT_PAGE, f'href="{page}')
        body = ARGUMENTS.sub(listed, body)
        body = IMAGE.sub('<p class="picture" tabindex="0">', body)
        numbers = itertools.count()
        context["body"] = PICTURE.sub(lambda svg: numbered(svg[0], next(numbers)), body)


def numbered(svg: str, number: int) -> str:
    """Returns a picture with names that no other picture on the page has."""
    return NAME.sub(lambda name: f"{name[1]}svg{number}-", svg)


def listed(arguments: re.Match[str]) -> str:
    """Returns the arguments of a function as a list. Sphinx has definitions without terms."""
    items = arguments[1].replace("<dd>", "<li>").replace("</dd>", "</li>")
    return f'<ul class="sig-params">{items}</ul>'


def name_buttons(app: Any, error: Exception | None) -> None:
    """Names the buttons of the theme that show the pages of a section."""
    for path in [] if error else Path(app.outdir).rglob("*.html"):
        text = path.read_text()
        named = text.replace(BUTTON, BUTTON.replace(">", ' aria-label="Pages below">', 1))
        if named != text:
            path.write_text(named)
