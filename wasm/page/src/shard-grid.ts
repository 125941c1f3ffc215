// A grid of cells in the colors of their blocks: the blocks of an array, or the devices of a mesh. Up to
// 1,024 cells are SVG elements with keyboard focus; more cells are painted as pixels.

import { LitElement, type PropertyValues, type SVGTemplateResult, css, html, nothing, svg } from "lit";
import { property, query, state } from "lit/decorators.js";
import { type Grid, gap, lettering, outline } from "./cells.js";
import { INKS } from "./palette.js";
import { paint } from "./paint.js";
import { controls } from "./style.js";
import { watchTheme } from "./theme.js";
import { View } from "./view.js";

export const MAX_SVG = 1024;

const HEAD = 22; // pixels for column labels

const MIN_MARK = 7; // pixels of the frame around the marked cell

/** A pointer that moves less than this, in pixels, is a click and not a drag. */
const CLICK = 4;

export class ShardGrid extends LitElement {
  @property({ attribute: false }) grid!: Grid;
  @property({ type: Number }) lit = -1; // the highlighted block
  @property({ type: Number }) pinned = -1;
  @state() private width = 420;
  @state() private cursor = 0;
  @state() private view = new View(1, 1, 1, 1);
  @query("canvas") private canvas?: HTMLCanvasElement;
  private pointers = new Map<number, { x: number; y: number }>();
  private dragged = 0; // pixels since pointerdown
  private unwatch = (): void => {};

  static override styles = [
    controls,
    css`
      :host { min-width: 0; }
      svg, .pixels { display: block; outline: none; }
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
      .pixels { position: relative; cursor: crosshair; border-radius: 4px; overflow: hidden; touch-action: pan-y; border: 1px solid var(--line); width: fit-content; max-width: 100%; }
      .pixels.near { touch-action: none; }
      .pixels:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
      canvas { display: block; max-width: 100%; }
      .frame { position: relative; width: fit-content; max-width: 100%; }
      .axes { display: flex; gap: 0.8rem; font: 11px var(--mono); color: var(--muted); margin: 0 0 0.3rem; white-space: nowrap; overflow: hidden; }
      .axes span { overflow: hidden; text-overflow: ellipsis; }
      .zoom { position: absolute; right: 0.5rem; bottom: 0.5rem; display: flex; border: 1px solid var(--edge); border-radius: 7px; overflow: hidden; background: var(--panel); }
      .zoom button { height: 1.6rem; min-width: 1.7rem; padding: 0 0.35rem; font-size: 0.75rem; border: 0; border-radius: 0; }
      .zoom button:disabled { opacity: 1; color: var(--edge); }
      .zoom button:focus-visible { outline-offset: -2px; }
      .zoom button + button { border-left: 1px solid var(--line); }
      .mark { position: absolute; border: 2px solid var(--text); outline: 1px solid var(--panel); box-sizing: border-box; pointer-events: none; min-width: ${MIN_MARK}px; min-height: ${MIN_MARK}px; }
      @media (prefers-reduced-motion: no-preference) { .cell { transition: opacity 0.12s; } }
      @media (forced-colors: active) { rect.fill { stroke: CanvasText; } }
      @media print { .zoom, .mark { display: none; } }
    `,
  ];

  private observer = new ResizeObserver(([entry]) => {
    this.width = Math.max(160, Math.round(entry!.contentRect.width));
  });

  override connectedCallback(): void {
    super.connectedCallback();
    this.observer.observe(this);
    this.unwatch = watchTheme(() => this.paint());
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.observer.disconnect();
    this.unwatch();
  }

  private get small(): boolean {
    return this.grid.rows * this.grid.cols <= MAX_SVG;
  }

  protected override willUpdate(changed: PropertyValues): void {
    const { rows, cols } = this.grid;
    if (changed.has("grid")) this.cursor = Math.min(this.cursor, rows * cols - 1);
    if (this.small || !(changed.has("grid") || changed.has("width"))) return;
    const width = this.width - 2;
    const height = Math.max(160, Math.min(width, Math.round((width * rows) / cols), 480));
    const same = this.view.rows === rows && this.view.cols === cols;
    this.view = same ? this.view.resized(width, height) : new View(rows, cols, width, height);
  }

  protected override updated(changed: PropertyValues): void {
    if (["grid", "lit", "view"].some((name) => changed.has(name))) this.paint();
  }

  protected override render(): unknown {
    return this.small ? this.drawing() : this.pixels();
  }

  /** drawing renders the cells as SVG elements. */
  private drawing(): unknown {
    const { rows, cols, rowLabels, colLabels } = this.grid;
    const left = rowLabels ? 10 + 6.7 * widest(rows, rowLabels) : 1;
    const top = colLabels ? HEAD : 1;
    const w = Math.min(96, (this.width - left - 2) / cols);
    const h = Math.max(Math.min(w, 58, Math.max(460 / rows, 12)), Math.min(w, 8), Math.min(28, 112 / rows));
    const height = Math.ceil(top + rows * h + 2);
    const used = Math.ceil(left + cols * w + 2);
    return html`<svg role="grid" aria-label=${this.grid.label} aria-rowcount=${rows} aria-colcount=${cols}
      style="width:${used}px;max-width:100%" height=${height} viewBox="0 0 ${used} ${height}"
      class=${this.lit >= 0 ? "dim" : ""} @keydown=${this.onKey} @pointerleave=${() => this.over(-1)}>
      ${svg`<defs aria-hidden="true">${INKS.map((ink, i) => svg`<pattern id="hatch${i}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect width="6" height="6" fill="none"/><path d="M0 0v6" stroke=${ink} stroke-width="2" opacity=".38"/></pattern>`)}</defs>`}
      ${colLabels ? this.labels(cols, w, (c) => colLabels(c), (c) => `translate(${left + (c + 0.5) * w} ${top - 7})`, "middle") : nothing}
      ${rowLabels ? this.labels(rows, h, (r) => rowLabels(r), (r) => `translate(${left - 7} ${top + (r + 0.5) * h + 4})`, "end") : nothing}
      ${Array.from({ length: rows }, (_, r) => svg`<g role="row">${Array.from({ length: cols }, (_, c) =>
        this.cell(r, c, left + c * w, top + r * h, w, h))}</g>`)}
      ${svg`<path class="outline" aria-hidden="true" d=${outline(this.grid, { top: 0, left: 0, bottom: rows, right: cols }, left, top, w, h).path} />`}
    </svg>`;
  }

  /** labels renders the labels of rows or columns, as many as there is space for. */
  private labels(n: number, space: number, text: (i: number) => string, transform: (i: number) => string, anchor: string): SVGTemplateResult[] {
    const needed = anchor === "middle" ? widest(n, text) * 7 + 6 : 14;
    const every = Math.max(1, Math.ceil(needed / space));
    return Array.from({ length: Math.ceil(n / every) }, (_, k) => k * every).map(
      (i) => svg`<text aria-hidden="true" transform=${transform(i)} text-anchor=${anchor}>${text(i)}</text>`,
    );
  }

  private cell(r: number, c: number, x: number, y: number, w: number, h: number): SVGTemplateResult {
    const n = r * this.grid.cols + c;
    const block = this.grid.block[n]!;
    if (block < 0) return svg`<g role="gridcell" aria-label="nothing"></g>`;
    const { fill, ink } = this.grid.color(block);
    const t = this.grid.text(n);
    const { size, two, beside } = lettering(t, w, h);
    const free = gap(w, h);
    const box = { w: w - 2 * free, h: h - 2 * free, r: Math.min(5, w / 5) };
    const on = block === this.lit ? "on" : "";
    return svg`<g role="gridcell" class="cell ${on} ${block === this.pinned ? "pin" : ""}" aria-label=${t.name} aria-selected=${block === this.pinned}
      tabindex=${n === this.cursor ? 0 : -1} data-cell=${n} transform="translate(${x + free} ${y + free})" style="color:${ink};--size:${size}px"
      @pointerenter=${() => this.over(n)} @focus=${() => this.focusOn(n)} @blur=${() => this.over(-1)} @click=${() => this.pin(n)}>
      <rect class="fill" width=${box.w} height=${box.h} rx=${box.r} fill=${fill} />
      ${this.grid.replica && this.grid.replica[n]! > 0 ? svg`<rect class="hatch" width=${box.w} height=${box.h} rx=${box.r} fill="url(#hatch${INKS.indexOf(ink)})" />` : nothing}
      ${size > 0 ? svg`<text aria-hidden="true" x=${box.w / 2} y=${box.h / 2 + (two ? -2 : size * 0.36)}>${t.main}${beside ? ` ${t.sub}` : ""}</text>` : nothing}
      ${two ? svg`<text aria-hidden="true" class="sub" x=${box.w / 2} y=${box.h / 2 + 12}>${t.sub}</text>` : nothing}
      <rect class="ring" x="1" y="1" width=${Math.max(0, box.w - 2)} height=${Math.max(0, box.h - 2)} rx=${box.r} />
    </g>`;
  }

  /** pixels renders the cells as a canvas, with buttons to zoom. */
  private pixels(): unknown {
    const { rows, cols, label } = this.grid;
    const { view } = this;
    const [row, col] = this.marked;
    const share = (some: number, whole: number): string => `${(some * 100) / whole}%`;
    const mark =
      `left:min(${share((col - view.x) * view.w, view.width)}, 100% - ${MIN_MARK}px);top:min(${share((row - view.y) * view.h, view.height)}, 100% - ${MIN_MARK}px);` +
      `width:${share(view.w, view.width)};height:${share(view.h, view.height)}`;
    return html`<p class="axes">${this.axes()}</p>
      <div class="frame"><div class="pixels ${view.zoom > 1 ? "near" : ""}" tabindex="0" role="application" aria-roledescription="grid of cells"
        aria-label="${label}, ${rows} rows and ${cols} columns; arrow keys move between cells, plus and minus zoom, 0 shows all"
        @keydown=${this.onKey} @focus=${() => this.over(this.cursor)} @blur=${() => this.over(-1)} @wheel=${this.onWheel}
        @pointerdown=${this.onDown} @pointermove=${this.onMove} @pointerup=${this.onUp} @pointercancel=${this.onUp} @pointerleave=${() => this.over(-1)}
        @click=${(e: PointerEvent) => this.dragged < CLICK && this.pin(this.cellAt(e))}>
        <canvas style="width:${view.width}px;aspect-ratio:${view.width}/${view.height}"></canvas>
        <div class="mark" style=${mark}></div>
      </div>
      <div class="zoom" role="group" aria-label="zoom of the ${label}">
        <button aria-label="zoom out" title="zoom out (−)" ?disabled=${view.zoom === 1} @click=${() => this.zoom(1 / 2)}>−</button>
        <button aria-label="zoom in" title="zoom in (+)" ?disabled=${view.zoom >= view.nearest} @click=${() => this.zoom(2)}>+</button>
        <button aria-label="show all" title="show all (0)" ?disabled=${view.zoom === 1} @click=${() => this.zoom(0)}>all</button>
      </div></div>`;
  }

  /** axes names what runs down and across, and the visible part. */
  private axes(): unknown {
    const { down, across, rowLabels, colLabels } = this.grid;
    const { top, left, bottom, right } = this.view.area;
    const seen = (label: ((i: number) => string) | null, from: number, to: number): string =>
      this.view.zoom > 1 && label ? ` ${label(from)} … ${label(to - 1)}` : "";
    return html`${down ? html`<span>↓ ${down}${seen(rowLabels, top, bottom)}</span>` : nothing}
      ${across ? html`<span>→ ${across}${seen(colLabels, left, right)}</span>` : nothing}`;
  }

  /** marked is the row and the column of the marked cell. */
  private get marked(): [number, number] {
    return [Math.floor(this.cursor / this.grid.cols), this.cursor % this.grid.cols];
  }

  /** point returns the position of an event in the picture. */
  private point(e: PointerEvent | WheelEvent): { x: number; y: number } {
    const box = this.canvas!.getBoundingClientRect();
    const scale = this.view.width / box.width;
    return { x: (e.clientX - box.left) * scale, y: (e.clientY - box.top) * scale };
  }

  /** cellAt returns the cell under the pointer. */
  private cellAt(e: PointerEvent): number {
    const { x, y } = this.point(e);
    const [row, col] = this.view.at(x, y);
    return row * this.grid.cols + col;
  }

  private paint(): void {
    if (!this.canvas) return;
    const style = getComputedStyle(this);
    paint(this.canvas, this.grid, this.view, this.lit, { color: style.color, font: style.getPropertyValue("--mono") });
  }

  /** zoom zooms around the marked cell; factor 0 shows all. */
  private zoom(factor: number): void {
    const [row, col] = this.marked;
    const { view } = this;
    this.view = view.zoomed(factor, (col + 0.5 - view.x) * view.w, (row + 0.5 - view.y) * view.h).holding(row, col);
  }

  /** show changes the view and moves the mark into it. */
  private show(view: View): void {
    this.view = view;
    const [row, col] = view.nearby(...this.marked);
    const cell = row * this.grid.cols + col;
    if (this.grid.block[cell]! >= 0) this.cursor = cell;
  }

  private onWheel = (e: WheelEvent): void => {
    if (!e.ctrlKey && !e.metaKey) return; // the browser scrolls the page
    e.preventDefault();
    const { x, y } = this.point(e);
    this.show(this.view.zoomed(Math.min(2, Math.max(0.5, Math.exp(-e.deltaY / 100))), x, y));
  };

  private onDown = (e: PointerEvent): void => {
    this.pointers.set(e.pointerId, this.point(e));
    this.dragged = 0;
  };

  /** onMove handles pointing, dragging with one pointer, and pinching with two. */
  private onMove = (e: PointerEvent): void => {
    if (e.buttons === 0) this.pointers.clear(); // pointerup happened outside of the picture
    const from = this.pointers.get(e.pointerId);
    const to = this.point(e);
    if (!from) return this.over(this.cellAt(e));
    this.pointers.set(e.pointerId, to);
    this.dragged += Math.hypot(to.x - from.x, to.y - from.y);
    const other = [...this.pointers].find(([id]) => id !== e.pointerId)?.[1];
    if (other) {
      const far = (p: { x: number; y: number }): number => Math.max(1, Math.hypot(p.x - other.x, p.y - other.y));
      this.show(this.view.zoomed(far(to) / far(from), other.x, other.y));
    } else if (this.dragged >= CLICK && this.view.zoom > 1) {
      (e.currentTarget as Element).setPointerCapture(e.pointerId);
      this.show(this.view.moved(to.x - from.x, to.y - from.y));
    }
  };

  private onUp = (e: PointerEvent): void => void this.pointers.delete(e.pointerId);

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
    const zoom = this.small || e.ctrlKey || e.metaKey ? undefined : { "+": 2, "=": 2, "-": 1 / 2, "0": 0 }[e.key];
    if (zoom !== undefined) this.zoom(zoom);
    else if (e.key === "Enter" || e.key === " ") this.pin(this.cursor);
    else if (e.key === "Escape") this.emit("cell-pin", -1);
    else if (to[e.key] === undefined) return;
    else this.move(to[e.key]!, last);
    e.preventDefault();
  };

  /** move marks another cell. */
  private move(to: number, last: number): void {
    if (to < 0 || to > last || this.grid.block[to]! < 0) return;
    this.cursor = to;
    if (!this.small) {
      this.view = this.view.holding(...this.marked);
      return this.over(to);
    }
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

/** widest returns the length of the longest label. */
function widest(n: number, text: (i: number) => string): number {
  return Math.max(...Array.from({ length: Math.min(n, 64) }, (_, i) => text(Math.floor((i * n) / Math.min(n, 64))).length));
}

customElements.define("shard-grid", ShardGrid);
