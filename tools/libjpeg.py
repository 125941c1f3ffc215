"""Builds libjpeg-turbo, which decodes JPEG files in the C library.

    python tools/libjpeg.py             # builds it into .build/libjpeg, unless it is built
    python tools/libjpeg.py --fetch     # only fetches the source
    python tools/libjpeg.py --licenses  # prints its licenses, as JSON

capi/build.sh runs this program, and links the result into the Go package core/view/raster/libjpeg.
The source is in an archive that tools/libjpeg.txt pins by its hash. pip downloads it, once. Without
a network the archive has to be in .build/libjpeg. A source distribution of meshfeed has it there.

nasm assembles the vector code for x86-64. Without nasm, decoding gives the same bytes, but slower.

The exit status is 0, or 3 if the library has to do without libjpeg-turbo, with the reason.

Environment:
    CC: the C compiler; by default the one of the go command, which GO names.
    MESHFEED_JPEG: 0 does without libjpeg-turbo. With 1 it is an error if libjpeg-turbo or its
        vector code cannot be built.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / ".build/libjpeg"
PIN = ROOT / "tools/libjpeg.txt"
VERSION = re.findall(r"libjpeg-turbo ([\d.]+\d)", PIN.read_text())[0]
WANTED = os.environ.get("MESHFEED_JPEG", "")

# pip asks an archive of sources for its metadata. This module answers in place of setuptools, so
# setup.py does not run.
STUB = """
import email, os, shutil

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    about = email.message_from_file(open("PKG-INFO"))
    name = f"{about['Name']}-{about['Version']}.dist-info"
    os.mkdir(os.path.join(folder, name))
    shutil.copy("PKG-INFO", os.path.join(folder, name, "METADATA"))
    return name
"""

# What libjpeg-turbo's own build finds out is the same for gcc and clang on 64-bit machines.
CONFIG = f"""\
#define JPEG_LIB_VERSION 62
#define LIBJPEG_TURBO_VERSION {VERSION}
#define LIBJPEG_TURBO_VERSION_NUMBER {"".join(n.zfill(3) for n in VERSION.split(".")).lstrip("0")}
#define MEM_SRCDST_SUPPORTED 1
#ifndef BITS_IN_JSAMPLE
#define BITS_IN_JSAMPLE 8
#endif
"""
CONFIG_INTERNAL = f"""\
#define BUILD ""
#define HIDDEN __attribute__((visibility("hidden")))
#define INLINE __inline__ __attribute__((always_inline))
#define THREAD_LOCAL __thread
#define PACKAGE_NAME "libjpeg-turbo"
#define VERSION "{VERSION}"
#define SIZEOF_SIZE_T 8
#define HAVE_BUILTIN_CTZL
#define FALLTHROUGH __attribute__((fallthrough));
#if defined(VECTORS) && BITS_IN_JSAMPLE == 8
#define WITH_SIMD 1
#endif
"""
VECTORS_ARM = ("#define HAVE_VLD1_S16_X3", "#define HAVE_VLD1_U16_X2", "#define HAVE_VLD1Q_U8_X4")

DECODER = (
    *("jcomapi.c", "jdapimin.c", "jdatasrc.c", "jdhuff.c", "jdinput.c", "jdlhuff.c", "jdmarker.c"),
    *("jdmaster.c", "jdphuff.c", "jerror.c", "jmemmgr.c", "jmemnobs.c"),
    *("wrapper/jd*.c", "wrapper/jidct*.c", "wrapper/jquant*.c", "wrapper/jutils*.c"),
)


def without(reason: str) -> NoReturn:
    """Ends the program without libjpeg-turbo."""
    print(f"libjpeg-turbo: {reason}", file=sys.stderr)
    if WANTED == "1":
        sys.exit(1)
    print("JPEG files will be decoded by Go: slower, and with other bytes", file=sys.stderr)
    sys.exit(3)


def run(*command: object) -> str:
    """Returns what a program prints."""
    done = subprocess.run(
        [*map(str, command)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"libjpeg-turbo: {shlex.join(map(str, command))} failed:\n{done.stderr.strip()}")
    return done.stdout.strip()


def fetch() -> Path:
    """Returns the archive, which is downloaded if it is missing."""
    pinned = re.search(r"^(\S+)==(\S+) --hash=sha256:(\w+)$", PIN.read_text(), re.MULTILINE)
    assert pinned is not None
    archive = BUILT / f"{pinned[1]}-{pinned[2]}.tar.gz"
    if not archive.exists():
        print("fetching the source of libjpeg-turbo: 4 MB, once", file=sys.stderr)
        BUILT.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=BUILT) as work:
            download(archive.name, Path(work))
            os.replace(Path(work, archive.name), archive)
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != pinned[3]:
        sys.exit(
            f"libjpeg-turbo: {archive} has the SHA-256 {found}, expected {pinned[3]}; remove it"
        )
    return archive


def download(name: str, work: Path) -> None:
    """Downloads the archive with the pip of this interpreter, or of the checkout's environment."""
    pip = ("-m", "pip", "--disable-pip-version-check", "--no-input")
    for python in (sys.executable, ROOT / ".venv/bin/python"):
        if (
            Path(python).exists()
            and not subprocess.run(
                [python, *pip, "--version"], capture_output=True, check=False
            ).returncode
        ):
            break
    else:
        without(f"{sys.executable} has no pip, which fetches {name}; or put it into {BUILT}")
    stub = work / "stub/setuptools"
    stub.mkdir(parents=True)
    (stub / "__init__.py").touch()
    (stub / "build_meta.py").write_text(STUB)
    options = ("--no-deps", "--no-binary=:all:", "--no-build-isolation", "--retries=1")
    done = subprocess.run(
        [python, *pip, "download", "-q", *options, "--require-hashes", "-r", PIN, "-d", work],
        env={**os.environ, "PYTHONPATH": str(stub.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
        reason = (lines or ["pip failed"])[-1].removeprefix("ERROR: ")
        without(f"{reason}; connect to a network, or put {name} into {BUILT}")


def inside(archive: Path) -> str:
    """Returns the folder of libjpeg-turbo in the archive."""
    return f"{archive.name.removesuffix('.tar.gz')}/lib/libjpeg-turbo-{VERSION}"


def licenses(archive: Path) -> dict[str, str]:
    """Returns the texts of the licenses by path. The vector code has its own in comments."""
    texts = {}
    with tarfile.open(archive) as files:
        for path in ("LICENSE.md", "README.ijg", "simd/nasm/jsimdext.inc"):
            file = files.extractfile(f"{inside(archive)}/{path}")
            assert file is not None
            texts[path] = file.read().decode()
    comment = itertools.takewhile(lambda line: line.startswith(";"), texts[path].splitlines())
    texts[path] = "\n".join(line.removeprefix(";").removeprefix(" ") for line in comment)
    return texts


def objects(
    source: Path, made: Path, compiler: list[str], target: str, nasm: str | None
) -> Iterator[tuple[object, ...]]:
    """Yields the command that makes each object file, without the output."""
    vectors = source / "simd/x86_64"
    cc: list[object] = [*compiler, "-c", "-O3", "-g0", "-fPIC", f"-I{made}", f"-I{source / 'src'}"]
    files = [file for pattern in DECODER for file in sorted((source / "src").glob(pattern))]
    if target.endswith("arm64"):
        vectors = source / "simd/arm"
        cc += ["-DVECTORS", "-DNEON_INTRINSICS", f"-I{source / 'simd'}", f"-I{vectors}"]
        files += [*vectors.glob("j*-neon.c"), *vectors.glob("aarch64/j*.c")]
        files = [
            file
            for file in files
            if not re.fullmatch(r"jc(col|gry)ext.*|jd(col|mrg)ext.*", file.name)
        ]
    elif nasm:
        cc += ["-DVECTORS", f"-I{source / 'simd'}"]
        files.append(vectors / "jsimd.c")
        flags = (
            "-felf64",
            "-DELF",
            "-D__x86_64__",
            "-DPIC",
            f"-I{source}/simd/nasm/",
            f"-I{vectors}/",
        )
        for file in sorted(vectors.glob("*.asm")):
            if not re.fullmatch(r"j[cd](col|gry|mrg)ext.*", file.name):
                yield nasm, *flags, file
    yield from ((*cc, file) for file in files)


def build(compiler: list[str], target: str, nasm: str | None, archive: Path, out: Path) -> None:
    """Compiles the decoder, and puts headers and library in their places."""
    with tempfile.TemporaryDirectory(dir=BUILT) as temporary:
        made = Path(temporary)
        with tarfile.open(archive) as files:
            code = (f"{inside(archive)}/src/", f"{inside(archive)}/simd/")
            files.extractall(made, [f for f in files if f.name.startswith(code)], filter="data")
        source = made / inside(archive)
        (made / "jconfig.h").write_text(CONFIG)
        (made / "jconfigint.h").write_text(CONFIG_INTERNAL)
        version = (source / "src/jversion.h.in").read_text()
        (made / "jversion.h").write_text(version.replace("@COPYRIGHT_YEAR@", "1991-2025"))
        neon = (source / "simd/arm/neon-compat.h.in").read_text()
        (made / "neon-compat.h").write_text(neon.replace("#cmakedefine", "#define"))
        commands = [*objects(source, made, compiler, target, nasm)]
        named = [made / f"{k:03}.o" for k in range(len(commands))]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            [*pool.map(lambda c, o: run(*c, "-o", o), commands, named)]
        run("ar", "rcs", made / out.name, *named)
        out.parent.mkdir(exist_ok=True)
        (BUILT / "include").mkdir(exist_ok=True)
        for header in ("jpeglib.h", "jmorecfg.h", "jerror.h"):
            os.replace(source / "src" / header, BUILT / "include" / header)
        os.replace(made / "jconfig.h", BUILT / "include/jconfig.h")
        os.replace(made / out.name, out)


def main() -> None:
    """Fetches and builds what is missing."""
    if WANTED == "0":
        without("MESHFEED_JPEG is 0")
    archive = fetch()
    if sys.argv[1:] == ["--licenses"]:
        print(json.dumps(licenses(archive)))
    if sys.argv[1:]:
        return
    goos, goarch, default = run(os.environ.get("GO", "go"), "env", "GOOS", "GOARCH", "CC").split(
        "\n"
    )
    target = f"{goos}-{goarch}"
    if target not in ("linux-amd64", "linux-arm64", "darwin-arm64"):
        without(f"it is not built for {target}")
    compiler = shlex.split(os.environ.get("CC") or default)
    nasm = shutil.which("nasm") if goarch == "amd64" else None
    parts = (archive.name, compiler, run(*compiler, "--version"), nasm and run(nasm, "--version"))
    key = hashlib.sha256(f"{parts}{Path(__file__).read_text()}".encode()).hexdigest()
    out = BUILT / target / "libmeshfeedjpeg.a"
    note = out.with_suffix(".key")
    if goarch == "amd64" and not nasm:
        if WANTED == "1":
            without("nasm is missing, so there is no vector code")
        print("libjpeg-turbo: install nasm for vector code, which decodes faster", file=sys.stderr)
    if not out.exists() or not note.exists() or note.read_text() != key:
        build(compiler, target, nasm, archive, out)
        note.write_text(key)


if __name__ == "__main__":
    main()
