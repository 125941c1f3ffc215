// Shows the records that a step delivers to each process.

import { css, html, nothing } from "lit";
import { state } from "lit/decorators.js";
import { PageElement } from "./element.js";
import { typed, wholeNumber } from "./form.js";
import { controls } from "./style.js";
import { count, whole } from "./units.js";

export class SamplesView extends PageElement {
  @state() private refused = ""; // the message about a typed number that is unusable; empty without one

  static override styles = [
    controls,
    css`
      h2 { margin: 1.3rem 0 0.4rem; }
      .at { display: flex; flex-wrap: wrap; gap: 0.3rem 1rem; font-size: 0.78rem; color: var(--muted); margin-bottom: 0.4rem; }
      .at span { display: flex; align-items: center; gap: 0.25rem; }
      .at label { display: flex; align-items: center; gap: 0.35rem; font-size: 0.78rem; }
      .at input { width: 5.5rem; }
      .paper { display: none; }
      @media print { .at { display: none; } .paper { display: block; } }
      p { margin: 0.45rem 0 0; font-size: 0.78rem; color: var(--muted); }
    `,
  ];

  protected override render(): unknown {
    const { dataset, batch } = this.model.draft;
    if (!batch) return nothing;
    return html`<h2>Which records <small>${dataset ? `${dataset.order ?? "sequential.1"}, seed ${dataset.seed}` : ""}</small></h2>
      ${dataset ? this.step() : html`<p>Enter the number of records of the dataset to see the records of each process.</p>`}`;
  }

  /** step renders the records of the chosen step. */
  private step(): unknown {
    const { look, records, reply } = this.model;
    const steps = reply.report?.totals.steps_per_epoch ?? 0;
    if (steps < 1) return html`<p>There is no step in an epoch.</p>`;
    if (!records) return nothing;
    if (records.error) return html`<p class="why">${records.error}</p>`;
    return html`<div class="at">
        ${this.stepper("epoch", look.epoch, Number.MAX_SAFE_INTEGER, (epoch) => void this.model.see({ epoch }))}
        ${this.stepper("step", look.step, steps - 1, (n) => this.go(n, steps))}<span>of ${whole(steps)}</span>
      </div>
      ${this.refused ? html`<p class="why" role="alert">${this.refused}</p>` : nothing}
      <p class="paper">epoch ${whole(look.epoch)}, step ${whole(look.step)} of ${whole(steps)}</p>
      <div class="scroll" tabindex="0" role="region" aria-label="which records"><table>
        <thead><tr><th>process</th><th>rows</th><th>records</th></tr></thead>
        <tbody>${records.rows.map((p) => html`<tr><td>${p.process}</td><td>${p.rows}</td><td class="code">${p.records}</td></tr>`)}</tbody>
      </table></div>
      ${records.rest ? html`<p>${count(records.rest.left, "record is", "records are")} left out of this epoch: <span class="code">${records.rest.some}</span></p>` : nothing}`;
  }

  /** stepper renders a number input, with buttons for the previous and the next number. */
  private stepper(name: string, value: number, last: number, set: (n: number) => void): unknown {
    const end = name === "epoch" && value >= last; // the last step has a next one, in the next epoch
    const turn = (n: number): void => {
      this.refused = "";
      set(n);
    };
    return html`<span><label>${name}<input inputmode="numeric" .value=${String(value)} @change=${(e: Event) => {
        const n = wholeNumber(typed(e), 0);
        this.refused = n === null || n > last ? `there is no ${name} "${typed(e)}"; expected a whole number from 0 to ${whole(last)}` : "";
        if (n !== null && n <= last) set(n);
      }} /></label>
      <button class="quiet" aria-label="${name} before" ?disabled=${value === 0 && (name === "epoch" || this.model.look.epoch === 0)} @click=${() => turn(value - 1)}>‹</button>
      <button class="quiet" aria-label="${name} after" ?disabled=${end} @click=${() => turn(value + 1)}>›</button></span>`;
  }

  /** go shows a step. Before step 0 comes the last step of the previous epoch; after the last, step 0 of the next. */
  private go(step: number, steps: number): void {
    const { epoch } = this.model.look;
    if (step < 0) void this.model.see({ epoch: epoch - 1, step: steps - 1 });
    else if (step >= steps) void this.model.see({ epoch: epoch + 1, step: 0 });
    else void this.model.see({ step });
  }
}

customElements.define("samples-view", SamplesView);
