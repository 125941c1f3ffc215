// The picture: the blocks of an array, and the mesh in the colors of the blocks on its devices.

import { css, html, nothing } from "lit";
import { state } from "lit/decorators.js";
import type { Blocks } from "./blocks.js";
import { arrayGrid, deviceName, hidden, holderText, meshGrid, shownDims, where } from "./cut.js";
import { PageElement, words } from "./element.js";
import { MAX_SVG } from "./shard-grid.js";
import type { Grid } from "./cells.js";
import { pointer } from "./pointer.js";
import { specText } from "./spec-text.js";
import { controls } from "./style.js";
import { bytes, count, span } from "./units.js";

type Side = "array" | "mesh";

export class ShardView extends PageElement {
  @state() private over: { side: Side; cell: number } | null = null; // the cell with the pointer or the focus
  private grids: { key: unknown[]; array: Grid; mesh: Grid } | null = null;

  static override styles = [
    controls,
    css`
      .tabs { display: flex; flex-wrap: wrap; gap: 0.3rem; margin-bottom: 0.7rem; }
      .tabs button { border-radius: 999px; font: 600 0.78rem var(--mono); }
      .tabs button[aria-pressed="true"] { background: var(--text); color: var(--panel); border-color: var(--text); }
      .facts { margin: 0 0 0.9rem; display: flex; flex-wrap: wrap; gap: 0.15rem 1.1rem; font-size: 0.8rem; color: var(--muted); }
      .facts b { color: var(--text); font-weight: 600; }
      .pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 16rem), 1fr)); gap: 0.5rem 1.4rem; }
      .pair > section { min-width: 0; display: grid; grid-row: span 3; grid-template: subgrid / minmax(0, 1fr); align-items: start; }
      .title { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 0.4rem; }
      .title h2 { line-height: 1.6rem; }
      .pickers { display: flex; gap: 0.35rem; align-items: center; color: var(--muted); font-size: 0.75rem; min-width: 0; }
      .pickers select { width: auto; height: 1.6rem; font-size: 0.75rem; padding: 0 0.3rem; }
      .slide { display: flex; gap: 0.6rem; align-items: center; font-size: 0.76rem; color: var(--muted); white-space: nowrap; }
      .slide input { height: auto; padding: 0; accent-color: var(--accent); max-width: 14rem; }
      .detail { min-height: 2.5rem; margin: 0.9rem 0 0; padding: 0.55rem 0.7rem; border-radius: 8px; background: var(--field); font-size: 0.8rem; line-height: 1.45; overflow-wrap: anywhere; }
      .key { display: flex; flex-wrap: wrap; gap: 0.3rem 1rem; margin: 0; font-size: 0.73rem; color: var(--muted); }
      .key i { display: inline-block; width: 0.85rem; height: 0.85rem; border-radius: 3px; vertical-align: -0.12rem; margin-right: 0.3rem; background: var(--line); }
      .key i.out { background: none; border: 2px solid var(--text); }
      .key i.copy { background: repeating-linear-gradient(45deg, var(--line) 0 2px, var(--edge) 2px 4px); }
      @media (forced-colors: active) { .key i { forced-color-adjust: none; } }
      @media print { .detail, .tabs button[aria-pressed="false"] { display: none; } .pickers select { appearance: none; border: 0; background: none; padding: 0; } }
      .empty { padding: 2.2rem 1rem; text-align: center; color: var(--muted); border: 1px dashed var(--edge); border-radius: 8px; font-size: 0.85rem; }
    `,
  ];

  /** drawings returns the current pictures, of the array and of the mesh. */
  get drawings(): (SVGSVGElement | HTMLCanvasElement)[] {
    return [...this.renderRoot.querySelectorAll("shard-grid")].map((g) => g.shadowRoot!.querySelector<SVGSVGElement | HTMLCanvasElement>("svg, canvas")!);
  }

  /** caption describes the pictures. */
  get caption(): string {
    const { draft, look } = this.model;
    const array = draft.arrays.find((a) => a.name === look.array);
    return `${look.array}${array ? ` ${specText(array.spec)}` : ""} on ${draft.axes.map((a) => `${a.name} ${a.size}`).join(" × ")}`;
  }

  protected override render(): unknown {
    const { names, look, blocks } = this.model;
    const tabs = html`<div class="tabs" role="group" aria-label="array shown">
      ${names.map((n) => html`<button aria-pressed=${n === look.array} @click=${() => this.model.see({ array: n, dims: null, slice: [], pinned: null })}>${n}</button>`)}
    </div>`;
    if (!blocks) {
      const why = this.errorAt(pointer("arrays", look.array)) ?? this.model.faults[0]?.problems[0];
      return html`${names.length > 1 ? tabs : nothing}<p class="empty">${why ? words(why) : `${look.array || "An array"} cannot be partitioned by its spec: see the problems.`}</p>`;
    }
    const grids = this.drawn(blocks);
    const block = this.over ? (grids[this.over.side].block[this.over.cell] ?? -1) : -1;
    const lit = block >= 0 ? block : (look.pinned ?? -1);
    return html`${tabs}${this.facts(blocks)}
      <div class="pair">
        <section aria-label="blocks of the array">${this.arrayTitle(blocks)}${this.grid("array", grids.array, lit)}<div>${this.sliders(blocks)}</div></section>
        <section aria-label="the mesh in the same colors">${this.meshTitle()}${this.grid("mesh", grids.mesh, lit)}${this.key(blocks)}</section>
      </div>
      <p class="detail" aria-live="polite">${block >= 0 ? grids[this.over!.side].text(this.over!.cell).name : this.hint(blocks)}</p>`;
  }

  /** drawn returns the grids, and builds them again only after a change. */
  private drawn(blocks: Blocks): { array: Grid; mesh: Grid } {
    const { look, draft } = this.model;
    const key = [blocks, draft, look.dims, this.model.split, look.slice.join()];
    if (!this.grids || key.some((k, i) => k !== this.grids!.key[i])) {
      this.grids = { key, array: arrayGrid(blocks, look, look.array), mesh: meshGrid(blocks, this.model.split, draft) };
    }
    return this.grids;
  }

  private grid(side: Side, grid: Grid, lit: number): unknown {
    return html`<shard-grid .grid=${grid} .lit=${lit} .pinned=${this.model.look.pinned ?? -1}
      @cell-over=${(e: CustomEvent<number>) => (this.over = e.detail < 0 ? null : { side, cell: e.detail })}
      @cell-pin=${(e: CustomEvent<number>) => this.pin(e.detail < 0 ? -1 : grid.block[e.detail]!)}></shard-grid>`;
  }

  private pin(block: number): void {
    this.model.see({ pinned: block < 0 || block === this.model.look.pinned ? null : block });
  }

  private hint(blocks: Blocks): string {
    const { pinned } = this.model.look;
    if (pinned !== null) return `Pinned: ${where(blocks, pinned)}, on device ${holderText(blocks, pinned, 12)}.`;
    if (blocks.devices === 1) return deviceName(blocks, 0);
    const zoom = blocks.devices > MAX_SVG ? " Zoom in for numbers, processes and replicas: + and −, or Ctrl and the wheel; drag to move." : "";
    return `Point at a block to see every device that holds it; click to pin it. Arrow keys move between cells.${zoom}`;
  }

  private facts(blocks: Blocks): unknown {
    const draft = this.model.draft.arrays.find((a) => a.name === this.model.look.array);
    const shape = (dims: number[]): string => `(${dims.map((n) => n.toLocaleString("en-US")).join(" × ")})`;
    return html`<p class="facts">
      <span>${draft?.dtype ?? "made by the loader"} <b>${shape(blocks.shape)}</b></span>
      <span>shard <b>${shape(blocks.shard)}</b></span>
      <span><b>${bytes(blocks.bytes)}</b> per device</span>
      <span>${blocks.total === 1 ? "one block" : html`<b>${blocks.total.toLocaleString("en-US")}</b> blocks`}${blocks.replicas > 1 ? html`, each on <b>${count(blocks.replicas, "device")}</b>` : ", no replicas"}</span>
    </p>`;
  }

  private arrayTitle(blocks: Blocks): unknown {
    const [down, across] = shownDims(blocks, this.model.look);
    const options = (chosen: number) => blocks.shape.map((n, d) => html`<option value=${d} ?selected=${d === chosen}>dim ${d} (${n.toLocaleString("en-US")})</option>`);
    const choose = (dims: [number, number]) => this.model.see({ dims: dims[0] === dims[1] ? [across, down] : dims });
    return html`<div class="title"><h2>Array</h2>
      ${blocks.rank > 1
        ? html`<div class="pickers">
            <span aria-hidden="true">↓</span><select aria-label="dimension that runs down" @change=${(e: Event) => choose([Number((e.target as HTMLSelectElement).value), across])}>${options(down)}</select>
            <span aria-hidden="true">→</span><select aria-label="dimension that runs across" @change=${(e: Event) => choose([down, Number((e.target as HTMLSelectElement).value)])}>${options(across)}</select>
          </div>`
        : nothing}
    </div>`;
  }

  private meshTitle(): unknown {
    const { draft, look } = this.model;
    const axes = draft.axes.map((a) => a.name);
    const side = (names: string[]): string => names.join(" × ") || "1";
    const way = (split: number): string => `↓ ${side(axes.slice(0, split))} → ${side(axes.slice(split))}`;
    const choose = (e: Event): void => {
      const { value } = e.target as HTMLSelectElement;
      this.model.see({ split: value === "" ? null : Number(value) });
    };
    return html`<div class="title"><h2>Mesh</h2>
      <div class="pickers"><select aria-label="axes that run down and across" @change=${choose}>
        <option value="" ?selected=${look.split === null}>best fit: ${way(this.model.split)}</option>
        ${Array.from({ length: axes.length + 1 }, (_, i) => html`<option value=${i} ?selected=${i === look.split}>${way(i)}</option>`)}
      </select></div>
    </div>`;
  }

  private sliders(blocks: Blocks): unknown {
    const { look } = this.model;
    return hidden(blocks, look).map((d) => {
      const at = look.slice[d] ?? 0;
      const set = (e: Event): void => {
        const slice = [...look.slice];
        slice[d] = Number((e.target as HTMLInputElement).value);
        this.model.see({ slice });
      };
      return html`<label class="slide">dimension ${d}<input type="range" min="0" max=${blocks.counts[d]! - 1} .value=${String(at)} @input=${set} />
        <span class="num">${span(...blocks.range(at, d))}</span></label>`;
    });
  }

  private key(blocks: Blocks): unknown {
    return html`<p class="key">
      <span><i></i>color: the block of data</span>
      <span><i class="out"></i>outline: a process</span>
      ${blocks.replicas > 1 ? html`<span><i class="copy"></i>hatched: a replica</span>` : nothing}
    </p>`;
  }
}

customElements.define("shard-view", ShardView);
