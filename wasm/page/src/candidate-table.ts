// The table of candidates. The best is highlighted; a loser has a sentence that says why it loses.

import { css, html, nothing } from "lit";
import { state } from "lit/decorators.js";
import type { Candidate } from "./advice.js";
import { meshText, settingsText } from "./candidate.js";
import { PageElement } from "./element.js";
import { memoryBar, memoryBarStyles } from "./memory-bar.js";
import { duration, gigabytes, share } from "./quantities.js";
import type { StrategyModel } from "./strategy-model.js";
import { controls } from "./style.js";
import { count, whole } from "./units.js";

/** FEW is the number of candidates that the table shows at first. */
const FEW = 8;

interface Column {
  key: string;
  title: string;
  value(c: Candidate): number | null; // null sorts last
  down: boolean; // the largest value comes first
}

const COLUMNS: Column[] = [
  { key: "memory", title: "Memory", value: (c) => c.memory.total, down: false },
  { key: "step", title: "Step", value: (c) => c.time?.step ?? null, down: false },
  { key: "tokens", title: "Tokens/s", value: (c) => c.tokens_per_second, down: true },
  { key: "mfu", title: "MFU", value: (c) => c.mfu, down: true },
];

export class CandidateTable extends PageElement<StrategyModel> {
  @state() private whole = false; // all candidates are shown
  @state() private sorted: { column: Column; down: boolean } | null = null; // null for the planner's order

  static override styles = [
    controls,
    memoryBarStyles,
    css`
      .head { display: flex; flex-wrap: wrap; gap: 0.3rem 0.8rem; justify-content: space-between; align-items: baseline; margin-bottom: 0.5rem; }
      .head p { margin: 0; font-size: 0.76rem; }
      thead button { border: 0; background: none; padding: 0 0.2rem; margin: 0 -0.2rem; height: 1.4rem; font-size: 0.78rem; font-weight: 500; color: var(--muted); }
      thead button:hover { color: var(--text); }
      th[aria-sort] button { color: var(--text); font-weight: 600; }
      tbody { border-bottom: 1px solid var(--line); }
      tbody:last-of-type { border-bottom: 0; }
      tbody :is(th, td) { vertical-align: top; padding-top: 0.4rem; padding-bottom: 0.35rem; border: 0; }
      tbody th { color: var(--text); font-weight: 400; }
      tbody th, .why { width: 46%; min-width: 15rem; white-space: normal; }
      :is(th, .why):first-child { padding-left: 0.5rem; }
      .mesh { border: 0; background: none; padding: 0; height: auto; min-height: 1.5rem; font-weight: 600; text-align: left; white-space: normal; }
      .mesh:hover:not(:disabled) { background: none; text-decoration: underline; text-underline-offset: 3px; }
      .set { color: var(--muted); font-size: 0.74rem; line-height: 1.4; }
      tbody .why { padding-top: 0; color: var(--text); margin: 0; }
      .no .why { color: var(--error); }
      .best :is(th, td) { background: color-mix(in srgb, var(--ok) 10%, transparent); }
      .best :is(th, td):first-child { box-shadow: inset 3px 0 0 var(--ok); }
      .chosen:not(.best) :is(th, td) { background: var(--field); }
      .chosen:not(.best) :is(th, td):first-child { box-shadow: inset 3px 0 0 var(--edge); }
      .tag { display: inline-block; font-size: 0.68rem; font-weight: 650; border: 1px solid currentcolor; border-radius: 4px; padding: 0 0.3rem; margin-left: 0.4rem; color: var(--ok); }
      .no .tag { color: var(--error); }
      .memory { min-width: 7.5rem; }
      .all { margin-top: 0.7rem; }
      .span { color: var(--muted); font-size: 0.72rem; display: block; }
      @media (max-width: 560px) {
        tbody th, .why { min-width: 8rem; }
        .memory { min-width: 5.2rem; }
        :is(th, td):nth-child(n + 4) { display: none; }
      }
    `,
  ];

  protected override render(): unknown {
    const { report } = this.model;
    if (!report) return nothing;
    const { candidates } = report;
    const most = Math.max(...candidates.map((c) => Math.max(c.memory.total, c.memory.capacity ?? 0)), 1);
    const rest = report.evaluated - candidates.length;
    return html`<div class="head"><h2>Candidates</h2><p class="muted">${count(report.evaluated, "candidate")} evaluated${rest > 0 ? `, the best ${candidates.length} shown` : ""}</p></div>
      <div class="scroll" tabindex="0" role="group" aria-label="table of candidates"><table>
        <thead><tr><th scope="col" aria-sort=${this.sorted ? nothing : "ascending"}><button @click=${() => (this.sorted = null)}>Mesh, by rank</button></th>${COLUMNS.map((c) => this.heading(c))}</tr></thead>
        ${this.order(candidates).slice(0, this.whole ? undefined : FEW).map((i) => this.row(candidates[i]!, i, most))}
      </table></div>
      ${candidates.length > FEW ? html`<button class="all" @click=${() => (this.whole = !this.whole)}>${this.whole ? `Show the first ${FEW}` : `Show all ${candidates.length}`}</button>` : nothing}`;
  }

  private heading(column: Column): unknown {
    const on = this.sorted?.column === column;
    const direction = on ? (this.sorted!.down ? "descending" : "ascending") : nothing;
    return html`<th scope="col" aria-sort=${direction}><button @click=${() => this.sort(column)}>${column.title}<span aria-hidden="true">${on ? (this.sorted!.down ? " ↓" : " ↑") : ""}</span></button></th>`;
  }

  private sort(column: Column): void {
    this.sorted = { column, down: this.sorted?.column === column ? !this.sorted.down : column.down };
  }

  /** order returns the numbers of the candidates in the order of the table. */
  private order(candidates: Candidate[]): number[] {
    const numbers = candidates.map((_, i) => i);
    if (!this.sorted) return numbers;
    const { column, down } = this.sorted;
    const worst = down ? -Infinity : Infinity;
    const value = (i: number): number => column.value(candidates[i]!) ?? worst;
    return numbers.sort((a, b) => (down ? value(b) - value(a) : value(a) - value(b)) || a - b);
  }

  private row(c: Candidate, i: number, most: number): unknown {
    const best = this.model.report!.best === i;
    const chosen = this.model.chosen === i;
    const time = c.time;
    return html`<tbody class="${best ? "best" : ""} ${chosen ? "chosen" : ""} ${c.fits ? "" : "no"}"><tr><th scope="row"><button class="mesh" aria-pressed=${chosen} @click=${() => this.model.choose(i)}>${meshText(c.mesh)}</button>${best ? html`<span class="tag">best</span>` : c.fits ? nothing : html`<span class="tag">does not fit</span>`}
        <div class="set">${settingsText(c)}</div></th>
      <td class="num memory">${gigabytes(c.memory.total)}${memoryBar(c.memory, most)}</td>
      <td class="num">${duration(time?.step ?? null)}${time ? html`<span class="span">${duration(time.low)} – ${duration(time.high)}</span>` : nothing}</td>
      <td class="num">${whole(c.tokens_per_second)}</td>
      <td class="num">${c.mfu === null ? "–" : share(c.mfu, 1)}</td></tr>
      ${c.reasons.length > 0 ? html`<tr><td class="why" colspan="5">${c.reasons.join("; ")}</td></tr>` : nothing}</tbody>`;
  }
}

customElements.define("candidate-table", CandidateTable);
