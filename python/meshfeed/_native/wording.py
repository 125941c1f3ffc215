"""The texts of the library, as a program in Python needs them.

The library says what to do in Python, Go and C, because it does not know its caller.
"""

from __future__ import annotations

import re

_ALL = re.compile(r" in Python, \S+ in Go, \S+ in C\b")  # such as: ds.pad(…) in Python, …
_OTHER = re.compile(r" \((?:Go|C): [^()]*\)")
_OURS = re.compile(r"\((?:[^()]*; )?Python: ")  # such as: (Go: Fill, C: fill; Python: …)


def in_python(text: str) -> str:
    """Leaves out what to do in Go and in C.

    Examples:
        >>> in_python('give duplicates="allow" (C: MF_ALLOW_DUPLICATES)')
        'give duplicates="allow"'
    """
    return _OTHER.sub("", _OURS.sub("(", _ALL.sub("", text)))
