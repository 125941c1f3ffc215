// Which records a step delivers, and to whom.

import { css, html, nothing } from "lit";
import { property, state } from "lit/decorators.js";
import { batchRows } from "./draft.js";
import { Part } from "./element.js";
import { wholeNumber } from "./form.js";
import type { Pair, ProcessReport } from "./guest.js";
import { rowsText } from "./rows-text.js";
import { controls } from "./style.js";
import { count, whole } from "./units.js";

const RECORDS = 6; // told of each process

export class SamplesView extends Part {
  @property({ attribute: false }) processes: ProcessReport[] = [];
  @state() private epoch = 0;
  @state() private step = 0;
  @state() private refused = ""; // why a number that was typed cannot be used

  static override styles = [
    controls,
    css`
      h2 { margin: 1.3rem 0 0.4rem; }
      .at { display: flex; flex-wrap: wrap; gap: 0.3rem 1rem; font-size: 0.78rem; color: var(--muted); margin-bottom: 0.4rem; }
      .at span { display: flex; align-items: center; gap: 0.25rem; }
      .at label { display: flex; align-items: center; gap: 0.35rem; font-size: 0.78rem; }
      .at input { width: 5.5rem; }
      .scroll { overflow-x: auto; }
      table { border-collapse: collapse; width: 100%; font-size: 0.78rem; font-variant-numeric: tabular-nums; }
      th { text-align: left; font-weight: 500; color: var(--muted); padding: 0.25rem 0.7rem 0.35rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
      td { padding: 0.28rem 0.7rem 0.28rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
      tr:last-child td { border-bottom: 0; }
      .paper { display: none; }
      @media print { .at { display: none; } .paper { display: block; } }
      p { margin: 0.45rem 0 0; font-size: 0.78rem; color: var(--muted); }
    `,
  ];

  protected override render(): unknown {
    const { dataset, batch } = this.model.draft;
    if (!batch) return nothing;
    return html`<h2>Which records<small>${dataset ? `${dataset.order ?? "sequential.1"}, seed ${dataset.seed}` : ""}</small></h2>
      ${dataset ? this.told(dataset.records) : html`<p>Say how many records the dataset has, to see which of them each process reads.</p>`}`;
  }

  private told(records: number): unknown {
    const steps = this.model.reply.report?.totals.steps_per_epoch ?? 0;
    if (steps < 1) return html`<p>There is no step in an epoch.</p>`;
    const step = Math.min(this.step, steps - 1);
    const rows = batchRows(this.model.draft);
    const first = step * rows;
    try {
      return html`<div class="at">
          ${this.stepper("epoch", this.epoch, Number.MAX_SAFE_INTEGER, (n) => (this.epoch = n))}
          ${this.stepper("step", step, steps - 1, (n) => this.go(n, steps))}<span>of ${whole(steps)}</span>
        </div>
        ${this.refused ? html`<p class="why" role="alert">${this.refused}</p>` : nothing}
        <p class="paper">epoch ${whole(this.epoch)}, step ${whole(step)} of ${whole(steps)}</p>
        <div class="scroll" tabindex="0" role="region" aria-label="which records"><table>
          <thead><tr><th>process</th><th>rows</th><th>records</th></tr></thead>
          <tbody>${this.processes.map((p) => html`<tr><td>${p.process}</td><td>${rowsText(p, 3)}</td><td class="code">${p.rows ? this.records(p.rows, first, records) : rowsText(p, 0)}</td></tr>`)}</tbody>
        </table></div>
        ${step === steps - 1 ? this.rest(first + rows, records) : nothing}`;
    } catch (cause) {
      return html`<p class="why">${(cause as Error).message}</p>`;
    }
  }

  private stepper(name: string, value: number, last: number, set: (n: number) => void): unknown {
    const end = name === "epoch" && value >= last;
    const turn = (n: number): void => {
      this.refused = "";
      set(n);
    };
    return html`<span><label>${name}<input inputmode="numeric" .value=${String(value)} @change=${(e: Event) => {
        const input = e.target as HTMLInputElement;
        const n = wholeNumber(input.value, 0);
        this.refused = n === null || n > last ? `there is no ${name} "${input.value}"; expected a whole number from 0 to ${whole(last)}` : "";
        if (n !== null && n <= last) set(n);
      }} /></label>
      <button class="quiet" aria-label="${name} before" ?disabled=${value === 0 && (name === "epoch" || this.epoch === 0)} @click=${() => turn(value - 1)}>‹</button>
      <button class="quiet" aria-label="${name} after" ?disabled=${end} @click=${() => turn(value + 1)}>›</button></span>`;
  }

  /** go shows a step; before the first and after the last lie other epochs. */
  private go(step: number, steps: number): void {
    if (step < 0) [this.epoch, this.step] = [this.epoch - 1, steps - 1];
    else if (step >= steps) [this.epoch, this.step] = [this.epoch + 1, 0];
    else this.step = step;
  }

  /** records tells the first records in some rows of a batch whose first position is given. */
  private records(rows: Pair[], first: number, records: number): string {
    const told: string[] = [];
    let padding = 0;
    for (const [from, to] of rows) {
      const real = Math.max(0, Math.min(to, records - first) - from);
      padding += to - from - real;
      const some = Math.min(real, RECORDS - told.length);
      if (some > 0) told.push(...this.ask(first + from, some).map(String));
    }
    const left = rows.reduce((n, [from, to]) => n + to - from, 0) - padding - told.length;
    if (left > 0) told.push(`… ${whole(left)} more`);
    if (padding > 0) told.push(count(padding, "row of padding", "rows of padding"));
    return told.join(", ") || "none";
  }

  /** rest tells the records of an epoch that fill no step. */
  private rest(end: number, records: number): unknown {
    const left = records - end;
    if (left <= 0) return nothing;
    const some = this.ask(end, Math.min(left, RECORDS)).join(", ");
    return html`<p>${count(left, "record is", "records are")} left out of this epoch: <span class="code">${some}${left > RECORDS ? ", …" : ""}</span></p>`;
  }

  private ask(position: number, n: number): number[] {
    const { records, order, seed } = this.model.draft.dataset!;
    return this.model.guest.samples({ order: order ?? "sequential.1", seed, records, epoch: this.epoch, position, count: n });
  }
}

customElements.define("samples-view", SamplesView);
