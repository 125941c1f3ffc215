// The memory and the time of the chosen candidate: bars of their parts, with tables of the numbers.

import { css, html, nothing } from "lit";
import { type Candidate, MEMORY_PARTS, type MemoryPart, type Stage, TIME_PARTS, type Time } from "./advice.js";
import { MEMORY_NAMES, TIME_NAMES, limit, memoryColor, meshText, timeColor } from "./candidate.js";
import { PageElement } from "./element.js";
import { memoryBar, memoryBarStyles } from "./memory-bar.js";
import { duration, gigabytes, share } from "./quantities.js";
import type { StrategyModel } from "./strategy-model.js";
import { controls } from "./style.js";
import { whole } from "./units.js";

const MAX_STAGES = 16; // stages of a pipeline, shown at once

export class CostView extends PageElement<StrategyModel> {
  static override styles = [
    controls,
    memoryBarStyles,
    css`
      h2 small { margin-left: 0.4rem; }
      .parts { display: grid; grid-template-columns: 1fr 1fr; gap: 0.4rem 2rem; margin-top: 0.4rem; align-items: start; }
      h3 { margin: 0.7rem 0 0; font-size: 0.78rem; font-weight: 600; }
      .say { margin: 0.3rem 0 0.4rem; font-size: 0.78rem; line-height: 1.45; }
      td:not(:first-child), th:not(:first-child) { text-align: right; padding-right: 0; padding-left: 0.8rem; }
      th i { display: inline-block; width: 0.75rem; height: 0.75rem; border-radius: 3px; margin-right: 0.45rem; vertical-align: -0.08rem; forced-color-adjust: none; }
      i.idle { background: repeating-linear-gradient(45deg, var(--edge) 0 2px, var(--field) 2px 5px); }
      tbody th { color: inherit; font-weight: inherit; padding-bottom: 0.28rem; }
      tr:last-child th { border-bottom: 0; }
      th small { color: var(--muted); }
      tr.total :is(th, td) { font-weight: 600; border-top: 1px solid var(--edge); }
      .interval { position: relative; height: 0.9rem; margin: 0.15rem 1px 0; }
      .interval i { position: absolute; top: 0.38rem; height: 2px; background: var(--muted); min-width: 2px; }
      .interval b { position: absolute; top: 0.1rem; width: 2px; height: 0.65rem; margin-left: -1px; background: var(--text); }
      .stages { display: grid; grid-template-columns: auto minmax(6rem, 1fr) auto; gap: 0.15rem 0.7rem; align-items: center; font-size: 0.75rem; margin-top: 0.4rem; }
      .stages .stackbar { margin: 0; height: 0.8rem; }
      @media (max-width: 700px) { .parts { grid-template-columns: minmax(0, 1fr); } }
    `,
  ];

  protected override render(): unknown {
    const { report } = this.model;
    const c = report?.candidates[this.model.chosen];
    if (!report || !c) return nothing;
    const best = report.best === this.model.chosen;
    const stages = this.model.detail?.stages ?? [];
    return html`<h2>Memory and time <small>of ${best ? "the best candidate" : "the chosen candidate"}: ${meshText(c.mesh)}</small></h2>
      <div class="parts"><div>${this.memory(c, stages.length > 1)}</div><div>${c.time ? this.time(c.time) : html`<h3>Time of a step</h3><p class="say muted">Not known: a number of the device is missing.</p>`}</div></div>
      ${stages.length > 1 ? this.stages(stages, c.chunks) : nothing}`;
  }

  private memory({ memory: m, fits }: Candidate, staged: boolean): unknown {
    const most = Math.max(m.total, m.capacity ?? 0, 1);
    const may = limit(m);
    return html`<h3>Memory of ${staged ? "the fullest device" : "a device"}</h3>
      ${memoryBar(m, most, true)}
      <p class="say">${m.capacity === null ? "The memory of the device is not known." : html`<b>${gigabytes(m.total)}</b> of ${gigabytes(m.capacity)}, of which ${gigabytes(may)} may be used: ${fits ? `${gigabytes(m.free)} stay free` : html`<b style="color:var(--error)">${gigabytes(-(m.free ?? 0))} too much</b>`}.`}</p>
      <table><tbody>${MEMORY_PARTS.map((part) => this.memoryRow(part, m[part], m.total, part === "activations" ? `${gigabytes(m.activations_low)} – ${gigabytes(m.activations_high)}` : ""))}
        <tr class="total"><th scope="row">total</th><td class="num"></td><td class="num">${gigabytes(m.total)}</td></tr></tbody></table>`;
  }

  private memoryRow(part: MemoryPart, n: number, total: number, span: string): unknown {
    return html`<tr><th scope="row"><i style="background:${memoryColor(part)}"></i>${MEMORY_NAMES[part]}${span ? html` <small>${span}</small>` : nothing}</th><td class="num">${share(n, total)}</td><td class="num">${gigabytes(n)}</td></tr>`;
  }

  private time(t: Time): unknown {
    const shown = TIME_PARTS.filter((part) => t[part] > 0);
    const sum = shown.reduce((n, part) => n + t[part], 0);
    const most = Math.max(sum, t.high, 1);
    const percent = (n: number): string => `${(100 * n) / most}%`;
    return html`<h3>Time of a step</h3>
      <div class="stackbar tall" aria-hidden="true">${shown.map((part) => html`<i class=${part === "bubble" ? "idle" : ""} style="width:${percent(t[part])}${part === "bubble" ? "" : `;background:${timeColor(part)}`}"></i>`)}</div>
      <div class="interval" aria-hidden="true"><i style="left:${percent(t.low)};width:${percent(t.high - t.low)}"></i><b style="left:${percent(t.step)}"></b></div>
      <p class="say"><b>${duration(t.step)}</b> expected, from ${duration(t.low)} to ${duration(t.high)}. Bound by <b>${TIME_NAMES[t.bound]}</b>${t.next ? `; ${TIME_NAMES[t.next]} follows ${duration(t.behind)} behind` : ""}.</p>
      <table><tbody>${shown.map((part) => html`<tr><th scope="row"><i class=${part === "bubble" ? "idle" : ""} style=${part === "bubble" ? "" : `background:${timeColor(part)}`}></i>${TIME_NAMES[part]}</th><td class="num">${share(t[part], sum)}</td><td class="num">${duration(t[part])}</td></tr>`)}
        ${sum > t.step ? html`<tr><th scope="row">hidden behind computation</th><td class="num"></td><td class="num">− ${duration(sum - t.step)}</td></tr>` : nothing}
        <tr class="total"><th scope="row">expected</th><td class="num"></td><td class="num">${duration(t.step)}</td></tr></tbody></table>`;
  }

  /** stages renders the memory of every stage of the candidate's pipeline. With chunks, the layers of a stage are not adjacent. */
  private stages(stages: Stage[], chunks: number): unknown {
    const most = Math.max(...stages.map((s) => Math.max(s.memory.total, s.memory.capacity ?? 0)));
    const half = MAX_STAGES / 2;
    const shown = stages.length > MAX_STAGES ? [...stages.slice(0, half), ...stages.slice(-half)] : stages;
    return html`<h3>Memory of every pipeline stage</h3>
      <div class="stages">${shown.map((s, i) => html`${i === half && stages.length > MAX_STAGES ? html`<span class="muted">${whole(stages.length - MAX_STAGES)} more</span><span></span><span></span>` : nothing}
        <span>stage ${s.number}${s.embedding ? ", embedding" : ""}${s.head ? ", head" : ""} <span class="muted">${s.layers > 0 ? (chunks > 1 ? `${s.layers} layers` : `layers ${s.first_layer}–${s.first_layer + s.layers - 1}`) : ""}</span></span>
        ${memoryBar(s.memory, most)}<span class="num">${gigabytes(s.memory.total)}</span>`)}</div>`;
  }
}

customElements.define("cost-view", CostView);
