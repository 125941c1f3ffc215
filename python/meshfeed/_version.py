"""The version: the checkout's, if the package is in one, else the installation's."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGE = Path(__file__).parent


def version_at(package: Path) -> str:
    """Returns the version of the package in a folder.

    A checkout may be used through `PYTHONPATH`, whether or not another version is installed.
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
