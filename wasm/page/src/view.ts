// The visible area of a grid that has more cells than fit into its picture.

import type { Area } from "./cells.js";

/** The side of a cell, in pixels, at the largest zoom. */
const MAX_CELL = 48;

/** View is a window of width × height pixels on rows × cols cells. At zoom 1 all cells are visible. x and
 * y are the top left corner, in cells. A view is immutable. */
export class View {
  constructor(
    readonly rows: number,
    readonly cols: number,
    readonly width: number,
    readonly height: number,
    readonly zoom = 1,
    readonly x = 0,
    readonly y = 0,
  ) {}

  /** w and h are the width and the height of a cell at this zoom, in pixels. */
  get w(): number {
    return (this.width / this.cols) * this.zoom;
  }

  get h(): number {
    return (this.height / this.rows) * this.zoom;
  }

  /** nearest is the largest zoom: the shorter side of a cell then has MAX_CELL pixels. */
  get nearest(): number {
    return Math.max(1, (MAX_CELL * this.zoom) / Math.min(this.w, this.h));
  }

  /** area returns the cells that are at least partly visible. */
  get area(): Area {
    return {
      top: Math.floor(this.y),
      left: Math.floor(this.x),
      bottom: Math.min(this.rows, Math.ceil(this.y + this.height / this.h - 1e-9)),
      right: Math.min(this.cols, Math.ceil(this.x + this.width / this.w - 1e-9)),
    };
  }

  /** at returns the row and column of the cell at a point of the picture, in pixels. */
  at(px: number, py: number): [number, number] {
    const within = (n: number, end: number): number => Math.min(end - 1, Math.max(0, Math.floor(n)));
    return [within(this.y + py / this.h, this.rows), within(this.x + px / this.w, this.cols)];
  }

  /** resized returns the view of the same cells in a picture of another size. */
  resized(width: number, height: number): View {
    return new View(this.rows, this.cols, width, height, this.zoom, this.x, this.y).moved(0, 0);
  }

  /** zoomed returns a view that is zoomed by a factor, with a point of the picture fixed. */
  zoomed(factor: number, px: number, py: number): View {
    const zoom = Math.min(this.nearest, Math.max(1, this.zoom * factor));
    const by = 1 - this.zoom / zoom; // how much of the way to the point the corner moves
    return new View(this.rows, this.cols, this.width, this.height, zoom, this.x + (px / this.w) * by, this.y + (py / this.h) * by).moved(0, 0);
  }

  /** moved returns the view after its cells moved by dx and dy pixels. The view stays within the grid. */
  moved(dx: number, dy: number): View {
    const within = (n: number, end: number): number => Math.min(end - end / this.zoom, Math.max(0, n));
    const [x, y] = [within(this.x - dx / this.w, this.cols), within(this.y - dy / this.h, this.rows)];
    return new View(this.rows, this.cols, this.width, this.height, this.zoom, x, y);
  }

  /** holding returns the view after the smallest shift that makes the given cell completely visible. */
  holding(row: number, col: number): View {
    const short = (n: number, from: number, visible: number): number => Math.min(0, n - from) + Math.max(0, n + 1 - from - visible);
    return this.moved(-short(col, this.x, this.width / this.w) * this.w, -short(row, this.y, this.height / this.h) * this.h);
  }

  /** nearby returns the completely visible cell that is nearest to the given one. */
  nearby(row: number, col: number): [number, number] {
    const within = (n: number, from: number, visible: number): number => Math.max(Math.ceil(from - 1e-9), Math.min(Math.floor(from + visible + 1e-9) - 1, n));
    return [within(row, this.y, this.height / this.h), within(col, this.x, this.width / this.w)];
  }
}
