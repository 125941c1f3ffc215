"""How results look in a notebook: as the text of a terminal, in columns."""

from __future__ import annotations

import html


class Preformatted:
    """A result that a notebook shows as the text that `print` shows."""

    def _repr_html_(self) -> str:
        style = "font-family:monospace;line-height:1.2;white-space:pre"
        return f'<pre style="{style}">{html.escape(str(self))}</pre>'
