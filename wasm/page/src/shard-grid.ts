// A grid of cells, each of which shows the color of a block: the array cut up, or the mesh.
// Up to 1,024 cells are SVG, which can be walked through cell by cell; more are painted as pixels.

import { LitElement, type PropertyValues, type SVGTemplateResult, css, html, nothing, svg } from "lit";
import { property, query, state } from "lit/decorators.js";
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

export const MOST_SVG = 1024;

const GUTTER = 62; // for row labels
const HEAD = 22; // for column labels

export class ShardGrid extends LitElement {
  @property({ attribute: false }) grid!: Grid;
  @property({ type: Number }) lit = -1; // the block to light
  @property({ type: Number }) pinned = -1;
  @state() private width = 420;
  @state() private cursor = 0;
  @query("canvas") private canvas?: HTMLCanvasElement;

  static override styles = css`
    :host { display: block; min-width: 0; }
    svg, .pixels { display: block; width: 100%; outline: none; }
    text { font: 11px var(--mono); fill: var(--muted); pointer-events: none; }
    .cell { cursor: pointer; outline: none; }
    .cell text { text-anchor: middle; fill: currentColor; font-size: var(--size, 11px); font-weight: 600; }
    .cell text.sub { font-weight: 400; font-size: 10px; }
    .cell .ring { fill: none; stroke: none; }
    .cell:focus-visible .ring { stroke: var(--accent); stroke-width: 3; }
    .dim .cell:not(.on) { opacity: 0.28; }
    .pin .ring { stroke: var(--text); stroke-width: 2; }
    .outline { fill: none; stroke: var(--text); stroke-width: 2; stroke-linecap: square; pointer-events: none; }
    .hatch { pointer-events: none; }
    .pixels { position: relative; cursor: crosshair; border-radius: 4px; }
    .pixels:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
    canvas { display: block; width: 100%; image-rendering: pixelated; border: 1px solid var(--line); border-radius: 4px; box-sizing: border-box; }
    .axes { display: flex; justify-content: space-between; font: 11px var(--mono); color: var(--muted); padding: 0.25rem 0; }
    .mark { position: absolute; border: 2px solid var(--text); outline: 1px solid var(--panel); box-sizing: border-box; pointer-events: none; min-width: 7px; min-height: 7px; transform: translate(-1px, -1px); }
    @media (prefers-reduced-motion: no-preference) { .cell { transition: opacity 0.12s; } }
    @media (forced-colors: active) { rect.fill { stroke: CanvasText; } }
  `;

  private observer = new ResizeObserver(([entry]) => {
    this.width = Math.max(160, Math.round(entry!.contentRect.width));
  });

  override connectedCallback(): void {
    super.connectedCallback();
    this.observer.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.observer.disconnect();
  }

  private get small(): boolean {
    return this.grid.rows * this.grid.cols <= MOST_SVG;
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (changed.has("grid")) this.cursor = Math.min(this.cursor, this.grid.rows * this.grid.cols - 1);
  }

  protected override updated(changed: PropertyValues): void {
    if (!this.small && (changed.has("grid") || changed.has("lit"))) this.paint();
  }

  protected override render(): unknown {
    return this.small ? this.drawing() : this.pixels();
  }

  private drawing(): unknown {
    const { rows, cols, rowLabels, colLabels } = this.grid;
    const left = rowLabels ? GUTTER : 1;
    const top = colLabels ? HEAD : 1;
    const w = Math.min(96, (this.width - left - 2) / cols);
    const h = Math.max(Math.min(w, 58, Math.max(460 / rows, 12)), Math.min(w, 8));
    const height = Math.ceil(top + rows * h + 2);
    const used = Math.ceil(left + cols * w + 2);
    return html`<svg role="grid" aria-label=${this.grid.label} aria-rowcount=${rows} aria-colcount=${cols}
      style="width:${used}px;max-width:100%" height=${height} viewBox="0 0 ${used} ${height}"
      class=${this.lit >= 0 ? "dim" : ""} @keydown=${this.onKey} @pointerleave=${() => this.over(-1)}>
      ${svg`<defs aria-hidden="true"><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect width="6" height="6" fill="none"/><path d="M0 0v6" stroke="currentColor" stroke-width="2" opacity=".38"/></pattern></defs>`}
      ${colLabels ? this.labels(cols, w, (c) => colLabels(c), (c) => `translate(${left + (c + 0.5) * w} ${top - 7})`, "middle") : nothing}
      ${rowLabels ? this.labels(rows, h, (r) => rowLabels(r), (r) => `translate(${left - 7} ${top + (r + 0.5) * h + 4})`, "end") : nothing}
      ${Array.from({ length: rows }, (_, r) => svg`<g role="row">${Array.from({ length: cols }, (_, c) =>
        this.cell(r, c, left + c * w, top + r * h, w, h))}</g>`)}
      ${svg`<path class="outline" aria-hidden="true" d=${this.outline(left, top, w, h)} />`}
    </svg>`;
  }

  private labels(n: number, room: number, text: (i: number) => string, place: (i: number) => string, anchor: string): SVGTemplateResult[] {
    const widest = Math.max(...Array.from({ length: Math.min(n, 64) }, (_, i) => text(i).length));
    const needed = anchor === "middle" ? widest * 7 + 6 : 14;
    const every = Math.max(1, Math.ceil(needed / room));
    return Array.from({ length: Math.ceil(n / every) }, (_, k) => k * every).map(
      (i) => svg`<text aria-hidden="true" transform=${place(i)} text-anchor=${anchor}>${text(i)}</text>`,
    );
  }

  private cell(r: number, c: number, x: number, y: number, w: number, h: number): SVGTemplateResult {
    const n = r * this.grid.cols + c;
    const block = this.grid.block[n]!;
    if (block < 0) return svg`<g role="gridcell" aria-label="nothing"></g>`;
    const { fill, ink } = this.grid.color(block);
    const t = this.grid.text(n);
    const gap = w > 14 && h > 10 ? 1 : 0.25;
    const size = Math.min(13, h * 0.62);
    const fits = size >= 8 && t.main.length * size * 0.62 < w - 4;
    const two = fits && h > 32 && t.sub.length * 6.2 < w - 2;
    const box = { w: w - 2 * gap, h: h - 2 * gap, r: Math.min(5, w / 5) };
    const on = block === this.lit ? "on" : "";
    return svg`<g role="gridcell" class="cell ${on} ${block === this.pinned ? "pin" : ""}" aria-label=${t.name} aria-selected=${block === this.pinned}
      tabindex=${n === this.cursor ? 0 : -1} data-cell=${n} transform="translate(${x + gap} ${y + gap})" style="color:${ink};--size:${size}px"
      @pointerenter=${() => this.over(n)} @focus=${() => this.focusOn(n)} @blur=${() => this.over(-1)} @click=${() => this.pin(n)}>
      <rect class="fill" width=${box.w} height=${box.h} rx=${box.r} fill=${fill} />
      ${this.grid.replica && this.grid.replica[n]! > 0 ? svg`<rect class="hatch" width=${box.w} height=${box.h} rx=${box.r} fill="url(#hatch)" />` : nothing}
      ${fits ? svg`<text aria-hidden="true" x=${box.w / 2} y=${box.h / 2 + (two ? -2 : size * 0.36)}>${t.main}</text>` : nothing}
      ${two ? svg`<text aria-hidden="true" class="sub" x=${box.w / 2} y=${box.h / 2 + 12}>${t.sub}</text>` : nothing}
      <rect class="ring" x="1" y="1" width=${Math.max(0, box.w - 2)} height=${Math.max(0, box.h - 2)} rx=${box.r} />
    </g>`;
  }

  /** outline goes round the cells of every process. */
  private outline(left: number, top: number, w: number, h: number): string {
    const { rows, cols, process } = this.grid;
    if (!process) return "";
    const at = (r: number, c: number): number => (r < 0 || c < 0 || r >= rows || c >= cols ? -1 : process[r * cols + c]!);
    let d = "";
    for (let r = 0; r <= rows; r++) {
      for (let c = 0; c <= cols; c++) {
        if (c < cols && at(r - 1, c) !== at(r, c)) d += `M${left + c * w} ${top + r * h}h${w}`;
        if (r < rows && at(r, c - 1) !== at(r, c)) d += `M${left + c * w} ${top + r * h}v${h}`;
      }
    }
    return d;
  }

  private pixels(): unknown {
    const { rows, cols, label, down, across } = this.grid;
    const cell = Math.floor(this.cursor / cols);
    const mark = `left:${((this.cursor % cols) / cols) * 100}%;top:${(cell / rows) * 100}%;width:${100 / cols}%;height:${100 / rows}%`;
    return html`<div class="axes"><span>${down ? `↓ ${down}` : ""}</span><span>${across ? `→ ${across}` : ""}</span></div>
      <div class="pixels" tabindex="0" role="application" aria-roledescription="grid of cells" aria-label="${label}, ${rows} rows and ${cols} columns; the arrow keys walk through them"
        @keydown=${this.onKey} @focus=${() => this.over(this.cursor)} @blur=${() => this.over(-1)}
        @pointermove=${(e: PointerEvent) => this.over(this.under(e))} @pointerleave=${() => this.over(-1)}
        @click=${(e: PointerEvent) => this.pin(this.under(e))}>
        <canvas width=${cols} height=${rows} style="height:${Math.max(160, Math.min(this.width, Math.round((this.width * rows) / cols), 480))}px"></canvas>
        <div class="mark" style=${mark}></div>
      </div>`;
  }

  private under(e: PointerEvent): number {
    const box = this.canvas!.getBoundingClientRect();
    const { rows, cols } = this.grid;
    const c = Math.min(cols - 1, Math.max(0, Math.floor(((e.clientX - box.left) / box.width) * cols)));
    const r = Math.min(rows - 1, Math.max(0, Math.floor(((e.clientY - box.top) / box.height) * rows)));
    return r * cols + c;
  }

  private paint(): void {
    const { rows, cols, block, color } = this.grid;
    const context = this.canvas!.getContext("2d")!;
    const image = context.createImageData(cols, rows);
    const colors = new Map<number, [number, number, number]>();
    for (let n = 0, at = 0; n < block.length; n++, at += 4) {
      const b = block[n]!;
      if (b < 0) continue;
      let rgb = colors.get(b);
      if (!rgb) colors.set(b, (rgb = color.call(this.grid, b).rgb));
      image.data[at] = rgb[0];
      image.data[at + 1] = rgb[1];
      image.data[at + 2] = rgb[2];
      image.data[at + 3] = this.lit < 0 || this.lit === b ? 255 : 70;
    }
    context.putImageData(image, 0, 0);
  }

  private onKey = (e: KeyboardEvent): void => {
    const { rows, cols } = this.grid;
    const last = rows * cols - 1;
    const row = this.cursor - (this.cursor % cols);
    const to: Record<string, number> = {
      ArrowRight: this.cursor + 1,
      ArrowLeft: this.cursor - 1,
      ArrowDown: this.cursor + cols,
      ArrowUp: this.cursor - cols,
      Home: e.ctrlKey ? 0 : row,
      End: e.ctrlKey ? last : row + cols - 1,
    };
    if (e.key === "Enter" || e.key === " ") this.pin(this.cursor);
    else if (e.key === "Escape") this.emit("cell-pin", -1);
    else if (to[e.key] === undefined) return;
    else this.move(to[e.key]!, last);
    e.preventDefault();
  };

  private move(to: number, last: number): void {
    if (to < 0 || to > last || this.grid.block[to]! < 0) return;
    this.cursor = to;
    if (!this.small) return this.over(to);
    void this.updateComplete.then(() => this.renderRoot.querySelector<SVGElement>(`[data-cell="${to}"]`)?.focus());
  }

  private focusOn(n: number): void {
    this.cursor = n;
    this.over(n);
  }

  private over(n: number): void {
    this.emit("cell-over", n);
  }

  private pin(n: number): void {
    this.cursor = n;
    this.emit("cell-pin", n);
  }

  private emit(name: string, cell: number): void {
    this.dispatchEvent(new CustomEvent(name, { detail: cell }));
  }
}

customElements.define("shard-grid", ShardGrid);
