// Paints the visible cells: colors at any zoom, and gaps, outlines, hatches and text if the cells are
// large enough.

import { type Area, type Grid, LEGIBLE, gap, lettering, outline } from "./cells.js";
import type { View } from "./view.js";

/** If the outlines would cover more than this fraction of the area, no outline is drawn. */
const MAX_COVER = 0.25;

const MIN_DETAILED = 7; // the side of the smallest cell with gaps and a hatch; also the side of a frame

const MAX_FRAMES = 256; // from this number of cells on, a block is visible without frames

/** Pen is the color and the font of lines and text. */
export interface Pen {
  color: string;
  font: string;
}

/** paint draws the visible area of a grid. The cells of block lit keep their colors while
 * the others fade; -1 highlights none. */
export function paint(canvas: HTMLCanvasElement, grid: Grid, view: View, lit: number, pen: Pen): void {
  const scale = devicePixelRatio;
  [canvas.width, canvas.height] = [Math.round(view.width * scale), Math.round(view.height * scale)];
  const context = canvas.getContext("2d")!;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  const { area, w, h } = view;
  const [x, y] = [(area.left - view.x) * w, (area.top - view.y) * h];
  context.imageSmoothingEnabled = false;
  context.drawImage(colors(grid, area, lit), x, y, (area.right - area.left) * w, (area.bottom - area.top) * h);
  if (lit >= 0 && Math.min(w, h) < MIN_DETAILED) frame(context, grid, view, lit, pen);
  if (Math.min(w, h) >= MIN_DETAILED) details(context, grid, view, lit, pen);
  const { path, cover } = outline(grid, area, x, y, w, h);
  if (cover > MAX_COVER) return;
  context.strokeStyle = pen.color;
  context.lineWidth = Math.min(w, h) > 14 ? 2 : 1;
  context.stroke(new Path2D(path));
}

/** colors draws an area of the grid with one pixel per cell, which paint enlarges. */
function colors(grid: Grid, area: Area, lit: number): OffscreenCanvas {
  const [cols, rows] = [area.right - area.left, area.bottom - area.top];
  const canvas = new OffscreenCanvas(cols, rows);
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(cols, rows);
  for (let r = area.top, at = 0; r < area.bottom; r++) {
    for (let n = r * grid.cols + area.left; n < r * grid.cols + area.right; n++, at += 4) {
      const block = grid.block[n]!;
      if (block < 0) continue;
      const { rgb } = grid.color(block);
      image.data[at] = rgb[0];
      image.data[at + 1] = rgb[1];
      image.data[at + 2] = rgb[2];
      image.data[at + 3] = lit < 0 || lit === block ? 255 : 70;
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** frame draws a frame around each cell of the highlighted block, because the cells are too small to see. */
function frame(context: CanvasRenderingContext2D, grid: Grid, { area, x, y, w, h }: View, lit: number, pen: Pen): void {
  const frames = new Path2D();
  let left = MAX_FRAMES;
  for (let r = area.top; r < area.bottom && left > 0; r++) {
    for (let c = area.left; c < area.right && left > 0; c++) {
      if (grid.block[r * grid.cols + c] !== lit) continue;
      frames.rect((c + 0.5 - x) * w - MIN_DETAILED / 2, (r + 0.5 - y) * h - MIN_DETAILED / 2, MIN_DETAILED, MIN_DETAILED);
      left--;
    }
  }
  context.strokeStyle = pen.color;
  context.lineWidth = 1.5;
  if (left > 0) context.stroke(frames);
}

/** details draws the gaps between cells, hatches on replicas, and the text of cells. */
function details(context: CanvasRenderingContext2D, grid: Grid, { area, x, y, w, h, width, height }: View, lit: number, pen: Pen): void {
  const margin = gap(w, h);
  for (let r = area.top; r < area.bottom; r++) context.clearRect(0, (r - y) * h - margin, width, 2 * margin);
  for (let c = area.left; c < area.right; c++) context.clearRect((c - x) * w - margin, 0, 2 * margin, height);
  const legible = Math.min(w, h) >= LEGIBLE;
  context.textAlign = "center";
  for (let r = area.top; r < area.bottom; r++) {
    for (let c = area.left; c < area.right; c++) {
      const n = r * grid.cols + c;
      const block = grid.block[n]!;
      if (block < 0) continue;
      context.globalAlpha = lit < 0 || lit === block ? 1 : 0.28;
      context.fillStyle = context.strokeStyle = grid.color(block).ink;
      const [left, top] = [(c - x) * w, (r - y) * h];
      if (grid.replica && grid.replica[n]! > 0) hatch(context, left + margin, top + margin, w - 2 * margin, h - 2 * margin);
      if (legible) write(context, grid, n, left + w / 2, top + h / 2, w, h, pen);
    }
  }
  context.globalAlpha = 1;
}

/** hatch fills a rectangle with slanted lines. */
function hatch(context: CanvasRenderingContext2D, x: number, y: number, w: number, h: number): void {
  const lines = new Path2D(); // from the left or bottom edge to the top or right edge
  for (let at = 4; at < w + h; at += 8.5) {
    const [over, under] = [Math.max(0, at - h), Math.max(0, at - w)];
    lines.moveTo(x + over, y + at - over);
    lines.lineTo(x + at - under, y + under);
  }
  const alpha = context.globalAlpha;
  context.globalAlpha = 0.38 * alpha;
  context.lineWidth = 2;
  context.stroke(lines);
  context.globalAlpha = alpha;
}

/** write draws the text of a cell, centered at a point. */
function write(context: CanvasRenderingContext2D, grid: Grid, cell: number, x: number, y: number, w: number, h: number, pen: Pen): void {
  const text = grid.text(cell);
  const { size, two, beside } = lettering(text, w, h);
  if (size === 0) return;
  context.font = `600 ${size}px ${pen.font}`;
  context.fillText(beside ? `${text.main} ${text.sub}` : text.main, x, y + (two ? -2 : size * 0.36));
  if (!two) return;
  context.font = `10px ${pen.font}`;
  context.fillText(text.sub, x, y + 12);
}
