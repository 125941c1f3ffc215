"""The paths of the headers and the library, for programs in C, C++ and other languages."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from meshfeed import errors
from meshfeed._native.library import packaged

_PACKAGE = Path(__file__).parents[1]


def get_include() -> str:
    """Returns the folder of `meshfeed.h` and the other headers.

    Examples:
        >>> import meshfeed as mf, os
        >>> os.path.exists(os.path.join(mf.get_include(), "meshfeed.h"))
        True
    """
    checkout = _PACKAGE.parents[1] / "capi" / "include"
    for folder in (_PACKAGE / "include", checkout):
        if (folder / "meshfeed.h").is_file():
            return str(folder)
    raise _missing("headers", _PACKAGE / "include")


def get_library() -> str:
    """Returns the path of the C library, for programs that open it at run time.

    Programs that link it use the flags that `python -m meshfeed --libs` prints.

    Examples:
        >>> import ctypes, meshfeed as mf
        >>> ctypes.CDLL(mf.get_library()).mf_abi_version() >> 16
        1
    """
    return str(_library())


def _library() -> Path:
    path = packaged()
    if not path.is_file():
        raise _missing("C library", path)
    return path


def _missing(what: str, path: Path, target: str = "lib") -> errors.NotFoundError:
    return errors.NotFoundError(
        f"this installation has no {what}: {path}",
        op="python",
        hint=f"install a wheel, or in a checkout run: make {target}",
        path=str(path),
    )


def _flags(option: str) -> list[str]:
    """Returns the compiler or linker flags that one option prints."""
    if option == "--cflags":
        return [f"-I{get_include()}"]
    folder = _library().parent
    if option == "--libs":
        return [f"-L{folder}", f"-Wl,-rpath,{folder}", "-lmeshfeed"]
    packages = folder / "pkgconfig"
    if not packages.is_dir():
        raise _missing("pkg-config file", packages, "install")
    return [str(packages)]


def main(options: Sequence[str]) -> None:
    """Prints the flags for some options on one line."""
    try:
        print(shlex.join(word for option in options for word in _flags(option)))
    except errors.NotFoundError as e:
        sys.exit(f"meshfeed: {e}")
