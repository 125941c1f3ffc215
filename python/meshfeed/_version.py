"""The version: the checkout's where the package lies in one, else that of the installation."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGE = Path(__file__).parent


def version_at(package: Path) -> str:
    """Gives the version of the package that lies in this folder.

    A checkout may be used by its path alone, with nothing or another version installed.
    """
    if package.parent.name == "python":
        stamp = package.parents[1] / "VERSION"
        if stamp.is_file():
            return stamp.read_text().strip()
    try:
        return version("meshfeed")
    except PackageNotFoundError:
        return "0+unknown"


__version__ = version_at(PACKAGE)
