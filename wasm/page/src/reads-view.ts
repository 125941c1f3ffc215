// The data panel: the reads of every process, repeated reads, and the ways of loading.

import { css, html, nothing } from "lit";
import { type Draft, LOADINGS, batchRows, hostOf, processCount } from "./draft.js";
import { PageElement } from "./element.js";
import type { Pair, Totals } from "./guest.js";
import type { Shared } from "./overlap.js";
import { decimal } from "./quantities.js";
import { FEW, type Readers } from "./reads.js";
import { listed, rowsText } from "./rows-text.js";
import "./samples-view.js";
import { controls } from "./style.js";
import { bytes, count, span, times, whole } from "./units.js";

const STRIPES = 64; // in a bar, at least 2 pixels each

const WAYS: Record<string, string> = {
  process: "each process reads what its devices hold, once",
  global: "every process reads the whole batch",
  device: "each device's part is read separately",
  reshard: "every device reads equal rows, and the step moves them",
};

export class ReadsView extends PageElement {
  static override styles = [
    controls,
    css`
      :is(td, th).n { text-align: right; }
      :is(td, th):last-child { padding-right: 0; }
      td.rows { max-width: 14rem; overflow: hidden; text-overflow: ellipsis; }
      td.others { white-space: normal; min-width: 7rem; }
      p { margin: 0.45rem 0 0; font-size: 0.78rem; color: var(--muted); }
      .bar { position: relative; height: 10px; width: 100%; min-width: 7rem; background: var(--line); border-radius: 3px; overflow: hidden; }
      .bar i { position: absolute; top: 0; bottom: 0; background: var(--accent); min-width: 2px; }
      h2 { margin: 0 0 0.4rem; }
      h2:not(:first-child) { margin-top: 1.3rem; }
      .ways :is(td, th):first-child { padding-left: 0.5rem; }
      .ways :is(td, th):last-child { padding-right: 0.5rem; }
      .ways tr.now td { background: color-mix(in srgb, var(--accent) 9%, transparent); }
      .ways .what { display: block; font: 0.73rem system-ui, sans-serif; color: var(--muted); white-space: normal; min-width: 8.5rem; }
      .pager { display: flex; gap: 0.4rem; align-items: center; justify-content: flex-end; font-size: 0.75rem; color: var(--muted); margin-top: 0.3rem; }
      .ways button { height: auto; padding: 0; font: 600 0.78rem var(--mono); color: var(--accent); }
      .ways button[aria-pressed="true"] { color: var(--text); }
    `,
  ];

  protected override render(): unknown {
    if (!this.model.reply.report) return nothing;
    return html`${this.processes()}${this.ways()}`;
  }

  private processes(): unknown {
    const { draft, look, reads } = this.model;
    if (!reads) return nothing;
    const rows = batchRows(draft);
    const total = processCount(draft);
    return html`<h2>What every process reads <small>per step</small></h2>
      <div class="scroll" tabindex="0" role="region" aria-label="what every process reads"><table>
        <thead><tr><th>process</th><th class="n">devices</th><th>rows of the batch</th><th><span class="visually-hidden">picture</span></th><th class="n">bytes</th>${draft.stepMs === null ? nothing : html`<th class="n" title="bytes that storage or the page cache gives this process in a second">from storage</th>`}<th>also read by</th></tr></thead>
        <tbody>${reads.processes.map((p, i) => html`<tr><td>${p.process}${hostOf(draft, p.process) ? html` <span class="muted">${hostOf(draft, p.process)}</span>` : nothing}</td><td class="n">${p.devices}</td><td class="rows" title=${rowsText(p, 64)}>${rowsText(p, 3)}</td>
          <td>${bar(p.rows, rows)}</td><td class="n">${bytes(p.bytes_per_step)}</td>${rate(p.bytes_per_step, draft.stepMs)}${readers(reads.others[i] ?? null)}</tr>`)}</tbody>
      </table></div>
      ${total > FEW ? this.pager(look.from, total) : nothing}
      ${reads.summary ? html`<p>${reads.summary}</p>` : nothing}
      ${total > 1 ? html`<p>${filesSentence(draft)}</p>` : nothing}
      <samples-view .model=${this.model}></samples-view>`;
  }

  private pager(from: number, total: number): unknown {
    return html`<div class="pager"><span class="num">${span(from, Math.min(from + FEW, total))} of ${count(total, "process", "processes")}</span>
      <button ?disabled=${from === 0} aria-label="processes before" @click=${() => this.model.see({ from: Math.max(0, from - FEW) })}>‹</button>
      <button ?disabled=${from + FEW >= total} aria-label="processes after" @click=${() => this.model.see({ from: from + FEW })}>›</button></div>`;
  }

  private ways(): unknown {
    const { ways, draft } = this.model;
    return html`<h2>Ways of loading <small>the four of JAX's guide; all deliver the same arrays</small></h2>
      <div class="scroll" tabindex="0" role="region" aria-label="ways of loading"><table class="ways">
        <thead><tr><th>loading</th><th class="n">read</th><th class="n">of the batch</th><th class="n">host memory</th><th class="n" title="between devices, in every step">moved</th><th class="n" title="the part of moved between processes">network</th></tr></thead>
        <tbody>${LOADINGS.map((way) => this.way(way, ways[way] ?? null, way === draft.loading))}</tbody>
      </table></div>`;
  }

  private way(way: string, t: Totals | null, now: boolean): unknown {
    return html`<tr class=${now ? "now" : ""}><td><button class="quiet" aria-pressed=${now} @click=${() => this.model.edit((d) => void (d.loading = way))}>${way}</button><span class="what">${WAYS[way]}</span></td>
      <td class="n">${bytes(t?.read_bytes ?? null)}</td><td class="n">${times(t?.read_bytes ?? null, t?.batch_bytes ?? null)}</td>
      <td class="n">${bytes(t?.host_bytes ?? null)}</td><td class="n">${bytes(t?.interconnect_bytes ?? null)}</td><td class="n">${bytes(t?.network_bytes ?? null)}</td></tr>`;
  }
}

/** bar draws rows as stripes. If there are many ranges, several share a stripe. Its opacity is the fraction of
 * rows in it. */
function bar(rows: Pair[] | null, batch: number): unknown {
  if (!rows || batch === 0) return nothing;
  const each = Math.ceil(rows.length / STRIPES);
  const stripes = Array.from({ length: Math.ceil(rows.length / each) || 0 }, (_, i) => {
    const list = rows.slice(i * each, (i + 1) * each);
    const [from, to] = [list[0]![0], list.at(-1)![1]];
    const full = list.reduce((n, [a, b]) => n + b - a, 0) / (to - from);
    return html`<i style="left:${(100 * from) / batch}%;width:${(100 * (to - from)) / batch}%;opacity:${full}"></i>`;
  });
  return html`<div class="bar" aria-hidden="true">${stripes}</div>`;
}

/** rate renders the bytes per second that a process reads if a step takes so long; nothing if that is unknown. */
function rate(perStep: number | null, stepMs: number | null): unknown {
  if (stepMs === null) return nothing;
  return html`<td class="n">${perStep === null ? "–" : decimal((1000 * perStep) / stepMs, "B/s")}</td>`;
}

/** filesSentence says which files a host needs. */
function filesSentence(d: Draft): string {
  const parts = /^local\.1:(\d+):/.exec(d.dataset?.order ?? "")?.[1];
  if (parts !== undefined) return `The order divides the records into ${parts} parts, and each group of processes reads the files of its part.`;
  return "Over an epoch every process reads rows of all files, so every host needs all of them, on its own disk or on shared storage.";
}

/** readers renders the other processes that read rows of a process. */
function readers(list: Readers | null): unknown {
  if (!list) return html`<td class="others">unknown</td>`;
  const text = (some: Shared[]): string => some.map((o) => `p${o.process}${o.rows ? ` (${listed(o.rows, 2)})` : ""}`).join(", ");
  const more = list.count > 4 ? ` and ${whole(list.count - 4)} more` : "";
  return html`<td class="others" title=${more ? text(list.first) : ""}>${list.count === 0 ? "no other" : text(list.first.slice(0, 4)) + more}</td>`;
}

customElements.define("reads-view", ReadsView);
