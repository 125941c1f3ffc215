// Builds the two drawings of the page as grids of cells: the blocks of an array, and the devices of the mesh.

import type { Blocks } from "./blocks.js";
import type { Draft } from "./draft.js";
import type { Look } from "./look.js";
import type { Grid } from "./cells.js";
import { bytes, count, product, span } from "./units.js";

/** shownDims returns the dimensions that run down and across, -1 for none. The default is the first two
 * partitioned dimensions. */
export function shownDims(blocks: Blocks, look: Look): [number, number] {
  if (look.dims) return look.dims;
  const [a = 0, b] = blocks.cut;
  if (b !== undefined) return [a, b];
  const other = Array.from({ length: blocks.rank }, (_, d) => d).find((d) => d !== a);
  return [a, other ?? -1];
}

/** hidden lists the partitioned dimensions that are not drawn; each has a slider. */
export function hidden(blocks: Blocks, look: Look): number[] {
  const dims = shownDims(blocks, look);
  return blocks.cut.filter((d) => !dims.includes(d));
}

/** where describes the part of the array that a block covers. */
export function where(blocks: Blocks, block: number): string {
  const at = blocks.coordinates(block);
  return at.map((c, d) => `${d === 0 ? "rows " : ""}${span(...blocks.range(c, d))}`).join(" × ") || "the scalar";
}

/** deviceName describes a device and its block. */
export function deviceName(blocks: Blocks, device: number): string {
  const copy = blocks.replicas > 1 ? `, replica ${blocks.replica[device]! + 1} of ${blocks.replicas}` : "";
  return `device ${blocks.id[device]}, process ${blocks.process[device]}, ${where(blocks, blocks.block[device]!)}${copy}, ${bytes(blocks.bytes)}`;
}

/** holderText names the devices of a block. */
export function holderText(blocks: Blocks, block: number, most = 6): string {
  const held = blocks.holders(block);
  const ids = [...held.subarray(0, most)].map((i) => blocks.id[i]);
  return ids.join(", ") + (held.length > most ? ` and ${held.length - most} more` : "");
}

/** processText names the processes of a block's devices: p3, p0 p3, or p0…p3 for more than two. */
function processText(blocks: Blocks, block: number): string {
  const processes = blocks.holders(block).map((i) => blocks.process[i]!);
  const [least, most] = [processes.reduce((a, b) => Math.min(a, b)), processes.reduce((a, b) => Math.max(a, b))];
  if (least === most) return `p${least}`;
  return `p${least}${processes.every((p) => p === least || p === most) ? " " : "…"}p${most}`;
}

/** arrayGrid builds the grid of an array's blocks. A long narrow grid is folded into columns. */
export function arrayGrid(blocks: Blocks, look: Look, name: string): Grid {
  const [down, across] = shownDims(blocks, look);
  const rows = blocks.counts[down] ?? 1;
  const cols = blocks.counts[across] ?? 1;
  const at = [...look.slice];
  const { folds, height, cells: block } = folded(rows, cols, (r, c) => {
    if (down >= 0 && blocks.rank > 0) at[down] = r;
    if (across >= 0) at[across] = c;
    return blocks.number(at);
  });
  const label = (dim: number) => (i: number) => (dim < 0 || dim >= blocks.rank ? "" : edge(blocks.range(i, dim)));
  return {
    label: `array ${name}`,
    rows: height,
    cols: cols * folds,
    block,
    process: null,
    replica: null,
    rowLabels: folds > 1 ? null : label(down),
    colLabels: folds > 1 ? null : label(across),
    down: blocks.rank > 0 ? `dimension ${down}${folds > 1 ? `, in ${folds} columns` : ""}` : "",
    across: across >= 0 ? `dimension ${across}` : "",
    text: (n) => {
      const b = block[n]!;
      const held = blocks.holders(b);
      const ids = [...held.subarray(0, 4)].map((i) => blocks.id[i]).join(" ");
      return {
        main: held.length > 4 ? `${held.length} devices` : ids,
        sub: processText(blocks, b),
        name: `${where(blocks, b)}, on ${count(held.length, "device")} ${holderText(blocks, b)}, ${bytes(blocks.bytes)} each`,
      };
    },
    color: (b) => blocks.color(b),
  };
}

function edge([start, stop]: [number, number]): string {
  return `${start}:${stop}`;
}

/** foldOf returns the number of columns to fold the rows of a grid into. A short or wide grid is not
 * folded. A number that divides the rows is preferred. */
export function foldOf(rows: number, cols: number): number {
  if (rows <= 32 || rows <= 4 * cols) return 1;
  const square = Math.max(2, Math.round(Math.sqrt(rows / cols / 1.2)));
  for (let n = square; n < 2 * square; n++) if (rows % n === 0) return n;
  return square;
}

/** folded numbers the cells of a grid, with its rows folded into columns. Empty cells are -1. */
function folded(rows: number, cols: number, number: (row: number, col: number) => number): { folds: number; height: number; cells: Int32Array } {
  const folds = foldOf(rows, cols);
  const height = Math.ceil(rows / folds);
  const cells = new Int32Array(height * cols * folds).fill(-1);
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < cols; c++) cells[(r % height) * cols * folds + Math.floor(r / height) * cols + c] = number(r, c);
  }
  return { folds, height, cells };
}

/** meshGrid builds the grid of all devices, with the first axes down and the others across. */
export function meshGrid(blocks: Blocks, split: number, draft: Draft): Grid {
  const [down, across] = [draft.axes.slice(0, split), draft.axes.slice(split)];
  const [rows, cols] = [down, across].map((axes) => product(axes.map((a) => a.size))) as [number, number];
  const { folds, height, cells: device } = folded(rows, cols, (r, c) => r * cols + c);
  const names = (axes: { name: string }[]): string => axes.map((a) => a.name).join(" × ");
  const of = (list: Int32Array): Int32Array => device.map((i) => (i < 0 ? -1 : list[i]!));
  return {
    label: "device mesh",
    rows: height,
    cols: cols * folds,
    block: of(blocks.block),
    process: of(blocks.process),
    replica: of(blocks.replica),
    rowLabels: folds > 1 ? null : (r) => coordinates(r, down),
    colLabels: folds > 1 ? null : (c) => coordinates(c, across),
    down: names(down) + (folds > 1 ? `, in ${folds} columns` : ""),
    across: names(across),
    text: (n) => {
      const i = device[n]!;
      return { main: `${blocks.id[i]}`, sub: `p${blocks.process[i]}`, name: deviceName(blocks, i) };
    },
    color: (b) => blocks.color(b),
  };
}

/** coordinates formats a position along axes, such as 1,3. */
function coordinates(n: number, axes: { size: number }[]): string {
  const out: number[] = [];
  for (const a of [...axes].reverse()) {
    out.unshift(n % a.size);
    n = Math.floor(n / a.size);
  }
  return out.join(",");
}
