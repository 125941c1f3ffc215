// A grid of cells, for drawing as SVG shapes or as pixels.

import type { Swatch } from "./palette.js";

export interface CellText {
  main: string;
  sub: string;
  name: string; // the full text, for screen readers
}

/** Grid describes the drawing of an array or of a device mesh. Cells are numbered row-major. */
export interface Grid {
  label: string;
  rows: number;
  cols: number;
  block: Int32Array; // block of the array, by cell; -1 means an empty cell
  process: Int32Array | null; // by cell; outlines separate cells of different processes
  replica: Int32Array | null; // replica number, by cell; cells above 0 are hatched
  rowLabels: ((row: number) => string) | null;
  colLabels: ((col: number) => string) | null;
  down: string; // names what runs from top to bottom
  across: string; // names what runs from left to right
  text(cell: number): CellText;
  color(block: number): Swatch;
}

/** Area is a rectangle of cells; bottom and right are exclusive. */
export interface Area {
  top: number;
  left: number;
  bottom: number;
  right: number;
}

/** Lettering describes how a text fits into a cell. size is the font size, 0 if the text does not fit. two
 * means that `sub` fits below `main`, and beside that it fits on the same line. */
export interface Lettering {
  size: number;
  two: boolean;
  beside: boolean;
}

/** The height of the smallest cell with text, in pixels. */
export const LEGIBLE = 13;

/** lettering fits a text into a cell of w × h pixels. */
export function lettering(text: CellText, w: number, h: number): Lettering {
  const size = Math.min(13, h * 0.62);
  const width = (letters: number): number => letters * size * 0.62;
  if (h < LEGIBLE || width(text.main.length) >= w - 4) return { size: 0, two: false, beside: false };
  const two = h >= 34 && text.sub.length * 6.2 < w - 2;
  return { size: two ? Math.min(size, h * 0.4) : size, two, beside: !two && text.sub !== "" && width(text.main.length + text.sub.length + 1) < w - 4 };
}

/** gap returns the margin on every side of a cell of w × h pixels. */
export function gap(w: number, h: number): number {
  return w > 14 && h > 10 ? 1 : 0.25;
}

/** Outline is a path around the cells of each process. cover is the fraction of the area that lines of
 * one pixel would cover. */
export interface Outline {
  path: string;
  cover: number;
}

/** outline computes the outline of an area. The area's top left corner is drawn at x, y, and a cell has
 * w × h pixels. */
export function outline(grid: Grid, area: Area, x: number, y: number, w: number, h: number): Outline {
  const { rows, cols, process } = grid;
  if (!process) return { path: "", cover: 0 };
  const at = (r: number, c: number): number => (r < 0 || c < 0 || r >= rows || c >= cols ? -1 : process[r * cols + c]!);
  let [path, length] = ["", 0];
  const { top, left, bottom, right } = area;
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

/** runs yields start and length of every run in which a test holds. */
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
