// What there is to draw of a grid of cells, for a drawing of shapes and for one of pixels.

import type { Swatch } from "./palette.js";

export interface CellText {
  main: string;
  sub: string;
  name: string; // all of it, for who does not see it
}

/** Grid says what to draw; a cell is a number, row-major, and -1 stands for no block. */
export interface Grid {
  label: string;
  rows: number;
  cols: number;
  block: Int32Array;
  process: Int32Array | null; // outlines go between cells of different processes
  replica: Int32Array | null; // above 0: hatched
  rowLabels: ((row: number) => string) | null;
  colLabels: ((col: number) => string) | null;
  down: string;
  across: string;
  text(cell: number): CellText;
  color(block: number): Swatch;
}

/** Part is a rectangle of cells, the ends not in it. */
export interface Part {
  top: number;
  left: number;
  bottom: number;
  right: number;
}

/** Lettering says how a text goes into a cell: its size, 0 where there is no room, and whether there
 * is room for the second part, below the first or beside it. */
export interface Lettering {
  size: number;
  two: boolean;
  beside: boolean;
}

/** The side of the smallest cell that has room for a letter. */
export const LEGIBLE = 13;

/** lettering fits a text into a cell of w × h pixels. */
export function lettering(text: CellText, w: number, h: number): Lettering {
  const size = Math.min(13, h * 0.62);
  const width = (letters: number): number => letters * size * 0.62;
  if (h < LEGIBLE || width(text.main.length) >= w - 4) return { size: 0, two: false, beside: false };
  const two = h > 28 && text.sub.length * 6.2 < w - 2;
  return { size: two ? Math.min(size, h * 0.4) : size, two, beside: !two && text.sub !== "" && width(text.main.length + text.sub.length + 1) < w - 4 };
}

/** gap is what is left free between cells of w × h pixels, on every side of each. */
export function gap(w: number, h: number): number {
  return w > 14 && h > 10 ? 1 : 0.25;
}

/** Outline is the lines round the cells of every process: a path, and how much of the part it covers
 * where it is one pixel wide. */
export interface Outline {
  path: string;
  cover: number;
}

/** outline goes round the processes of a part, whose corner is at x, y; cells are w × h. */
export function outline(grid: Grid, part: Part, x: number, y: number, w: number, h: number): Outline {
  const { rows, cols, process } = grid;
  if (!process) return { path: "", cover: 0 };
  const at = (r: number, c: number): number => (r < 0 || c < 0 || r >= rows || c >= cols ? -1 : process[r * cols + c]!);
  let [path, length] = ["", 0];
  const { top, left, bottom, right } = part;
  for (let r = top; r <= bottom; r++) {
    for (const [c, n] of runs(left, right, (c) => at(r - 1, c) !== at(r, c))) {
      path += `M${x + (c - left) * w} ${y + (r - top) * h}h${n * w}`;
      length += n * w;
    }
  }
  for (let c = left; c <= right; c++) {
    for (const [r, n] of runs(top, bottom, (r) => at(r, c - 1) !== at(r, c))) {
      path += `M${x + (c - left) * w} ${y + (r - top) * h}v${n * h}`;
      length += n * h;
    }
  }
  return { path, cover: length / Math.max(1, (right - left) * w * (bottom - top) * h) };
}

/** runs gives start and length of every run where a test holds. */
function* runs(from: number, to: number, test: (i: number) => boolean): Generator<[number, number]> {
  for (let i = from, start = -1; i <= to; i++) {
    const on = i < to && test(i);
    if (on && start < 0) start = i;
    if (!on && start >= 0) {
      yield [start, i - start];
      start = -1;
    }
  }
}
