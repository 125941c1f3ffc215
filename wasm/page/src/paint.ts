// Paints the visible cells: colors at any zoom, and gaps, outlines, hatches and numbers if the cells are
// large enough.

import { type Grid, LEGIBLE, type Part, gap, lettering, outline } from "./cells.js";
import type { View } from "./view.js";

/** Outlines that would cover more than this fraction of the colors are omitted. */
const MAX_COVER = 0.25;

const HATCHED = 7; // the side of the smallest cell with a hatch

const MAX_FRAMES = 256; // more cells than this are visible without frames

/** Pen is the color and the font of lines and text. */
export interface Pen {
  color: string;
  font: string;
}

/** paint draws the visible part of a grid. If a block is lit, the others fade. */
export function paint(canvas: HTMLCanvasElement, grid: Grid, view: View, lit: number, pen: Pen): void {
  const scale = devicePixelRatio;
  [canvas.width, canvas.height] = [Math.round(view.width * scale), Math.round(view.height * scale)];
  const context = canvas.getContext("2d")!;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  const { part, w, h } = view;
  const [x, y] = [(part.left - view.x) * w, (part.top - view.y) * h];
  context.imageSmoothingEnabled = false;
  context.drawImage(colors(grid, part, lit), x, y, (part.right - part.left) * w, (part.bottom - part.top) * h);
  if (lit >= 0 && Math.min(w, h) < HATCHED) frame(context, grid, part, x, y, w, h, lit, pen);
  if (Math.min(w, h) >= HATCHED) details(context, grid, part, x, y, w, h, lit, pen);
  const { path, cover } = outline(grid, part, x, y, w, h);
  if (cover > MAX_COVER) return;
  context.strokeStyle = pen.color;
  context.lineWidth = Math.min(w, h) > 14 ? 2 : 1;
  context.stroke(new Path2D(path));
}

/** colors draws a part of the grid with one pixel per cell. */
function colors(grid: Grid, part: Part, lit: number): OffscreenCanvas {
  const [cols, rows] = [part.right - part.left, part.bottom - part.top];
  const canvas = new OffscreenCanvas(cols, rows);
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(cols, rows);
  for (let r = part.top, at = 0; r < part.bottom; r++) {
    for (let n = r * grid.cols + part.left; n < r * grid.cols + part.right; n++, at += 4) {
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

/** frame draws frames around the cells of a block that are too small to see. */
function frame(context: CanvasRenderingContext2D, grid: Grid, part: Part, x: number, y: number, w: number, h: number, lit: number, pen: Pen): void {
  const frames = new Path2D();
  let left = MAX_FRAMES;
  for (let r = part.top; r < part.bottom && left > 0; r++) {
    for (let c = part.left; c < part.right && left > 0; c++) {
      if (grid.block[r * grid.cols + c] !== lit) continue;
      frames.rect(x + (c - part.left + 0.5) * w - HATCHED / 2, y + (r - part.top + 0.5) * h - HATCHED / 2, HATCHED, HATCHED);
      left--;
    }
  }
  context.strokeStyle = pen.color;
  context.lineWidth = 1.5;
  if (left > 0) context.stroke(frames);
}

function details(context: CanvasRenderingContext2D, grid: Grid, part: Part, x: number, y: number, w: number, h: number, lit: number, pen: Pen): void {
  const free = gap(w, h);
  for (let r = part.top; r < part.bottom; r++) context.clearRect(x, y + (r - part.top) * h - free, (part.right - part.left) * w, 2 * free);
  for (let c = part.left; c < part.right; c++) context.clearRect(x + (c - part.left) * w - free, y, 2 * free, (part.bottom - part.top) * h);
  const written = Math.min(w, h) >= LEGIBLE;
  context.textAlign = "center";
  for (let r = part.top; r < part.bottom; r++) {
    for (let c = part.left; c < part.right; c++) {
      const n = r * grid.cols + c;
      const block = grid.block[n]!;
      if (block < 0) continue;
      context.globalAlpha = lit < 0 || lit === block ? 1 : 0.28;
      context.fillStyle = context.strokeStyle = grid.color(block).ink;
      const [left, top] = [x + (c - part.left) * w, y + (r - part.top) * h];
      if (grid.replica && grid.replica[n]! > 0) hatch(context, left + free, top + free, w - 2 * free, h - 2 * free);
      if (written) write(context, grid, n, left + w / 2, top + h / 2, w, h, pen);
    }
  }
  context.globalAlpha = 1;
}

/** hatch fills a rectangle with slanted lines. */
function hatch(context: CanvasRenderingContext2D, x: number, y: number, w: number, h: number): void {
  const lines = new Path2D();
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
