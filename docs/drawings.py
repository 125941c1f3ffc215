"""Draws the pictures of pages as SVG, from the code. docs/pages.py writes them."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np

import meshfeed as mf

ROOT = Path(__file__).resolve().parents[1]
MODULE = "github.com/meshfeed/meshfeed/"

STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #1c2733 }
.small { font-size: 11px; fill: #5b6875 }
.middle { text-anchor: middle }
.box { fill: #f2f5f8; stroke: #8794a1 }
.mine { fill: #bfe3f7; stroke: #2a7ab0 }
.line { stroke: #8794a1; fill: none }
.far { stroke: #b9c3cd; fill: none; stroke-dasharray: 4 3 }
.frame { stroke: #d5dce3; fill: none }
.path { stroke: #2a7ab0; fill: none }
@media (prefers-color-scheme: dark) {
  text { fill: #e3e9ef }
  .small { fill: #9aa7b4 }
  .box { fill: #202a35; stroke: #77838f }
  .mine { fill: #17425c; stroke: #6dbbe8 }
  .line { stroke: #77838f }
  .far { stroke: #4d5863 }
  .frame { stroke: #37424d }
  .path { stroke: #6dbbe8 }
}
</style>"""


class Picture:
    """An SVG under construction."""

    def __init__(self, width: int, title: str) -> None:
        self._width, self._title = width, title
        self._under: list[str] = []  # lines, which boxes cover
        self._over: list[str] = []
        self._height = 0

    def text(self, x: float, y: float, text: str, classes: str = "") -> None:
        """Adds a text on a baseline."""
        self._height = max(self._height, int(y) + 16)
        self._over.append(f'<text x="{x:g}" y="{y:g}" class="{classes}">{text}</text>')

    def box(
        self, x: float, y: float, width: float, height: float, text: str = "", kind: str = "box"
    ) -> None:
        """Adds a box with a text in its middle."""
        self._height = max(self._height, int(y + height) + 16)
        shape = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="2"'
        self._over.append(f'<rect {shape} class="{kind}"/>')
        if text:
            self.text(x + width / 2, y + height / 2 + 4, text, "middle")

    def frame(self, x: float, y: float, width: float, height: float, title: str) -> None:
        """Adds a frame behind everything, with a title at its top."""
        self._height = max(self._height, int(y + height) + 8)
        shape = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"'
        self._under.insert(0, f'<rect {shape} class="frame"/>')
        self.text(x + width / 2, y + 20, title, "middle small")

    def line(self, x0: float, y0: float, x1: float, y1: float, kind: str = "line") -> None:
        """Adds a line."""
        ends = f'x1="{x0:g}" y1="{y0:g}" x2="{x1:g}" y2="{y1:g}"'
        self._under.append(f'<line {ends} class="{kind}"/>')

    def svg(self) -> str:
        """Returns the picture."""
        size = f'viewBox="0 0 {self._width} {self._height}" width="{self._width}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
        title = f"<title>{self._title}</title>"
        return "\n".join([head, title, STYLE, *self._under, *self._over, "</svg>", ""])


def replicas() -> str:
    """Draws a batch on four processes of two devices each, where two processes share a model."""
    fields = {"image": ("uint8", (224, 224, 3))}
    axes = {"data": 2, "model": 4}
    return mf.layout(axes, mf.P("data"), fields, batch_size=16, processes=4).to_svg()


# ---- the way of one record ----

RECORDS, BATCH, STEP, PROCESS = 1797, 32, 7, 1
LEFT, CELL = 196, 18  # pixels


def record_way() -> str:
    """Draws how the rows of one process come from a file to its devices."""
    ds = mf.from_arrays({"label": np.arange(RECORDS, dtype=np.int32)})
    plan = mf.layout({"data": 4, "model": 2}, mf.P("data"), ds, batch_size=BATCH, processes=4)
    report = plan.report()
    ((first, end),) = report["processes"][PROCESS]["rows"]
    with mf.Loader(ds, layout=plan, process=PROCESS, shuffle=True) as loader:
        records = loader.records(epoch=0, position=BATCH * STEP)[first:end].tolist()
    picture = Picture(
        LEFT + BATCH * CELL + 8,
        f"Step {STEP} in process {PROCESS}: from positions to records, to the file, to a block,"
        " to two devices",
    )
    label_lanes(picture)
    draw_positions(picture, first, end)
    draw_records(picture, records)
    draw_devices(picture, report["arrays"]["label"]["devices"])
    return picture.svg()


def label_lanes(picture: Picture) -> None:
    """Writes the names and the meanings of the lanes, by their heights in the picture."""
    start = BATCH * STEP
    lanes = {
        26: (
            "plan",
            f"step {STEP}: positions {start} to {start + BATCH - 1},",
            f"the rows of process {PROCESS}",
        ),
        92: ("order", "seed, epoch and position", "name the records"),
        166: ("files", f"{RECORDS:,} records,", "read or mapped"),
        240: ("gather", "one block in host memory:", "the only copy"),
        306: ("arrays", "replicas share the block;", f"the next position is {start + BATCH}"),
    }
    for y, (lane, *words) in lanes.items():
        picture.text(4, y + 8, lane)
        for i, line in enumerate(words):
            picture.text(4, y + 22 + 13 * i, line, "small")


def draw_positions(picture: Picture, first: int, end: int) -> None:
    """Draws the positions of the batch, and lines from the rows [first, end) to their records."""
    wide = BATCH * CELL / (end - first)
    for i in range(BATCH):
        mine = first <= i < end
        picture.box(LEFT + i * CELL, 26, CELL, 24, "", "mine" if mine else "box")
        if mine:
            x = LEFT + (i - first + 0.5) * wide
            picture.line(LEFT + (i + 0.5) * CELL, 50, x, 92, "path")


def draw_records(picture: Picture, records: list[int]) -> None:
    """Draws the records in the order, in the files and in the block, with lines between them."""
    wide = BATCH * CELL / len(records)
    picture.box(LEFT, 166, BATCH * CELL, 24)
    for i, record in enumerate(records):
        middle = LEFT + (i + 0.5) * wide
        at = LEFT + BATCH * CELL * record / RECORDS
        picture.line(middle, 116, at, 166, "path")
        picture.line(at, 190, middle, 240, "path")
        picture.box(at - 1.5, 166, 3, 24, "", "mine")
        for y in (92, 240):
            picture.box(LEFT + i * wide, y, wide, 24, str(record), "mine")


def draw_devices(picture: Picture, devices: list[dict[str, int]]) -> None:
    """Draws the devices, and lines from the block to the devices of the process."""
    size = BATCH * CELL / len(devices)
    for i, device in enumerate(devices):
        mine = device["process"] == PROCESS
        name = f"device {device['id']}"
        picture.box(LEFT + i * size + 4, 306, size - 8, 28, name, "mine" if mine else "box")
        if mine:
            picture.line(LEFT + BATCH * CELL / 2, 264, LEFT + (i + 0.5) * size, 306, "path")


# ---- the packages ----

# Packages that all others may use. Arrows to them would cover the picture.
OPEN = {"core/status", "core/dtype", "core/mesh", "core/problem"}
TOP = {"capi", "cmd/meshfeed", "wasm/page", "wasm/host"}  # these use most of the others
ROW, GAP = 64, 8  # pixels
LETTER = 6.9

# The folder of each wing, and its name.
WINGS = [
    ("core/plan", "core/plan: the planner"),
    ("core", "core: the loader"),
    ("arrowio", "arrowio: files and tables"),
]
FACES = {"core/loader", "core/gomlxfeed", "core/plan/strategy", "arrowio"}


def imported() -> dict[str, frozenset[str]]:
    """Returns what each package of this module uses, also through others."""
    command = [
        "go",
        "list",
        "-deps",
        "-tags=libjpeg",
        "-f",
        '{{.ImportPath}} {{join .Imports " "}}',
    ]
    folders = ["./core/...", "./arrowio/...", "./capi/...", "./cmd/...", "./wasm/..."]
    done = subprocess.run(
        [*command, *folders], cwd=ROOT, capture_output=True, text=True, check=True
    )
    direct: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        package, *used = line.split()
        if package.startswith(MODULE):
            inside = [p.removeprefix(MODULE) for p in used if p.startswith(MODULE)]
            direct[package.removeprefix(MODULE)] = inside

    @functools.cache
    def below(package: str) -> frozenset[str]:
        return frozenset(direct[package]).union(*map(below, direct[package]))

    return {package: below(package) for package in sorted(direct)}


def edges() -> dict[str, list[str]]:
    """Returns the arrows of the picture: imports between public packages that no other implies."""
    below = imported()
    hidden = ("test", "/document", "/picture")
    drawn = {
        p
        for p in below
        if p not in OPEN | TOP and "internal" not in p.split("/") and not p.endswith(hidden)
    }
    used = {p: below[p] & drawn for p in sorted(drawn)}
    return {p: sorted(u for u in us if not any(u in used[v] for v in us)) for p, us in used.items()}


def ranks(used: Mapping[str, list[str]]) -> list[list[str]]:
    """Returns the packages in rows: every arrow points down, and few arrows cross."""

    @functools.cache
    def height(package: str) -> int:
        return 1 + max((height(u) for u in used[package]), default=-1)

    rows: list[list[str]] = [[] for _ in range(1 + max(map(height, used)))]
    for package in used:
        rows[-1 - height(package)].append(package)
    users = {p: [q for q in used if p in used[q]] for p in used}
    for near in (used, users) * 8:
        at = {p: (i + 0.5) / len(row) for row in rows for i, p in enumerate(row)}
        for row in rows:
            means = {
                p: sum(at[q] for q in near[p]) / len(near[p]) if near[p] else at[p] for p in row
            }
            row.sort(key=lambda p: (means[p], p))
    return rows


def shown(package: str) -> str:
    """Returns the name of a package in the picture."""
    for folder, _ in WINGS:
        package = package.removeprefix(folder + "/")
    return package


def wide(package: str) -> float:
    """Returns the width of the box of a package."""
    return len(shown(package)) * LETTER + 12


def wing(package: str) -> int:
    """Returns the wing of a package: the first one that has its folder."""
    return next(i for i, (folder, _) in enumerate(WINGS) if package.startswith(folder))


def packages() -> str:
    """Draws the wings side by side, and which public package uses which."""
    used = edges()
    rows = ranks(used)
    wings = [[[p for p in line if wing(p) == n] for line in rows] for n in range(len(WINGS))]
    sizes = [max(sum(map(wide, line)) + GAP * (len(line) + 1) for line in lines) for lines in wings]
    width = sum(sizes) + GAP * (len(WINGS) + 1)
    title = "The packages of the module; a line leads down to a package that is used"
    picture = Picture(width, title)
    places: dict[str, tuple[float, float, float]] = {}
    left = float(GAP)
    for (_, name), size, lines in zip(WINGS, sizes, wings, strict=True):
        picture.frame(left, 4, size, ROW * len(rows) + 30, name)
        for row, mine in enumerate(lines):
            space = (size - sum(map(wide, mine))) / (len(mine) + 1)
            x, top = left + space, 44 + ROW * row
            for package in mine:
                kind = "mine" if package in FACES else "box"
                picture.box(x, top, wide(package), 24, shown(package), kind)
                places[package] = (x + wide(package) / 2, top, top + 24)
                x += wide(package) + space
        left += size + GAP
    for package, below in used.items():
        for other in below:
            kind = "line" if wing(package) == wing(other) else "far"
            picture.line(places[package][0], places[package][2], *places[other][:2], kind)
    return picture.svg()
