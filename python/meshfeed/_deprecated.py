"""The warning of a deprecated name. `docs/versioning.md` says how long such a name lives."""

from __future__ import annotations

import warnings


def deprecated(old: str, new: str, removal: str) -> None:
    """Warns the caller of a deprecated function, which calls this one directly.

    Args:
        old: the deprecated name, such as "mf.Loader(batch=)".
        new: what to write instead, such as "batch_size=".
        removal: the first version without the old name, such as "0.4.0".
    """
    message = f"{old} is deprecated and goes in meshfeed {removal}; use {new}"
    warnings.warn(message, DeprecationWarning, stacklevel=3)
