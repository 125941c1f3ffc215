"""Changes that the site makes to what Sphinx writes."""

from __future__ import annotations

import re
from typing import Any

# Pictures follow the scheme of the system. On the site, the reader may choose another one.
DARK = "@media (prefers-color-scheme:dark){"
CHOSEN = 'html[data-theme="dark"] {'


def setup(app: Any) -> None:
    app.connect("html-page-context", finish)


def finish(app: Any, name: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Makes pictures follow the reader's choice of a scheme, and wide tables scroll."""
    if body := context.get("body"):
        body = body.replace(DARK, CHOSEN)
        context["body"] = re.sub(r'(<div class="output text_html">)(<svg|<div><svg)', r"\1\2", body)
