// The planner's answer in short: the best candidate, its figures, and the way to its layout.

import { css, html, nothing } from "lit";
import type { Candidate, Report } from "./advice.js";
import { TIME_NAMES, meshText, settingsText } from "./candidate.js";
import { PageElement } from "./element.js";
import { failureText } from "./guest.js";
import { duration, gigabytes, share } from "./quantities.js";
import type { StrategyModel } from "./strategy-model.js";
import { controls } from "./style.js";
import { count, whole } from "./units.js";

export class AnswerView extends PageElement<StrategyModel> {
  static override styles = [
    controls,
    css`
      .top { display: flex; flex-wrap: wrap; gap: 0.6rem 1.2rem; justify-content: space-between; align-items: start; }
      .top > div { min-width: 0; flex: 1 1 16rem; }
      .top p { margin: 0; }
      .top h2 { font-size: 1.2rem; letter-spacing: -0.015em; line-height: 1.3; overflow-wrap: anywhere; }
      .set { font-size: 0.82rem; color: var(--muted); margin-top: 0.15rem !important; }
      .no h2 { color: var(--error); }
      .cards { display: flex; flex-wrap: wrap; gap: 0.5rem; margin-top: 0.8rem; }
      .card { flex: 1 1 7.5rem; border: 1px solid var(--line); border-radius: 9px; padding: 0.55rem 0.65rem; background: var(--field); min-width: 0; }
      .card b { display: block; font-size: 1.12rem; font-weight: 650; letter-spacing: -0.01em; }
      .card span { font-size: 0.73rem; color: var(--muted); }
    `,
  ];

  protected override render(): unknown {
    const { report, error } = this.model.reply;
    if (!report) return html`<div class="top no"><div><h2>The question has an error</h2><p class="set">${error ? failureText(error) : ""}</p></div></div>`;
    const best = report.best === null ? null : report.candidates[report.best];
    return best ? this.best(best, report) : this.none(report);
  }

  private best(c: Candidate, report: Report): unknown {
    const t = c.time;
    return html`<div class="top"><div><h2>${meshText(c.mesh)}</h2><p class="set">${settingsText(c)} · the best of ${count(report.evaluated, "candidate")} for ${count(report.devices, "device")}</p></div>
      <button class="main" ?disabled=${this.model.reply.layout === null} @click=${this.open}>Open this layout</button></div>
      <div class="cards">
        ${t ? this.card(duration(t.step), `a step, from ${duration(t.low)} to ${duration(t.high)}`) : this.card("–", "the time of a step is not known")}
        ${c.tokens_per_second === null ? nothing : this.card(whole(c.tokens_per_second), "tokens per second")}
        ${c.mfu === null ? nothing : this.card(share(c.mfu, 1), "of the peak FLOP/s (MFU)")}
        ${this.card(gigabytes(c.memory.total), c.memory.capacity === null ? "on the fullest device" : `of ${gigabytes(c.memory.capacity)} on the fullest device`)}
        ${t ? this.card(TIME_NAMES[t.bound], `bounds the step${t.next ? `; ${TIME_NAMES[t.next]} is next` : ""}`) : nothing}
      </div>`;
  }

  private none(report: Report): unknown {
    const nearest = report.candidates[0];
    return html`<div class="top no"><div><h2>No candidate fits</h2>
      <p class="set">${count(report.evaluated, "candidate")} for ${count(report.devices, "device")}. ${nearest ? html`The nearest, ${meshText(nearest.mesh)}, ${nearest.reasons[0] ?? "does not fit"}.` : "No mesh divides the model and the batch."}</p></div></div>`;
  }

  private card(number: string, what: string): unknown {
    return html`<div class="card"><b class="num">${number}</b><span>${what}</span></div>`;
  }

  private open = (): void => {
    this.dispatchEvent(new CustomEvent("open-layout", { detail: this.model.reply.layout, bubbles: true, composed: true }));
  };
}

customElements.define("answer-view", AnswerView);
