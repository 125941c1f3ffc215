// What the numbers depend on: communication of the chosen candidate, assumptions, and the meshes that were not evaluated.

import { css, html, nothing } from "lit";
import type { Report } from "./advice.js";
import { PageElement } from "./element.js";
import { decimal, duration } from "./quantities.js";
import type { StrategyModel } from "./strategy-model.js";
import { controls } from "./style.js";
import { count, whole } from "./units.js";

const COLUMNS = ["Operation", "Axis", "Link", "Per step", "Bytes each", "Sent by a device", "Time"];

export class NotesView extends PageElement<StrategyModel> {
  static override styles = [
    controls,
    css`
      details + details { border-top: 1px solid var(--line); }
      summary { cursor: pointer; padding: 0.55rem 0.1rem; font-size: 0.8125rem; font-weight: 600; border-radius: 5px; }
      summary span { font-weight: 400; color: var(--muted); margin-left: 0.3rem; }
      ul { margin: 0 0 0.7rem; padding: 0 0 0 1.1rem; font-size: 0.78rem; line-height: 1.5; }
      li { overflow-wrap: anywhere; }
      li + li { margin-top: 0.3rem; }
      code { font-family: var(--mono); font-size: 0.72rem; color: var(--muted); }
      .scroll { margin-bottom: 0.7rem; }
      td:nth-child(n + 4), th:nth-child(n + 4) { text-align: right; }
      tbody th { white-space: normal; min-width: 11rem; color: var(--text); font-weight: 400; padding-top: 0.28rem; padding-bottom: 0.28rem; }
      tr:last-child th[scope="row"] { border-bottom: 0; }
    `,
  ];

  protected override render(): unknown {
    const { report } = this.model;
    if (!report) return nothing;
    const collectives = this.model.detail?.collectives ?? [];
    const pruned = report.pruned.reduce((n, p) => n + p.count, 0);
    return html`${collectives.length > 0 ? this.collectives(collectives) : nothing}
      <details><summary>Assumptions<span>${report.assumptions.length}</span></summary>
        <ul>${report.assumptions.map((a) => html`<li>${a.text} <code>${a.code}</code></li>`)}</ul></details>
      <details><summary>Not evaluated<span>${count(pruned, "mesh", "meshes")}</span></summary>
        <ul>${report.pruned.map((p) => html`<li>${whole(p.count)}: ${p.message} <code>${p.code}</code></li>`)}</ul></details>`;
  }

  private collectives(list: Report["collectives"]): unknown {
    return html`<details open><summary>Communication of the ${this.model.report?.best === this.model.chosen ? "best" : "chosen"} candidate<span>${count(list.length, "kind")}</span></summary>
      <div class="scroll" tabindex="0" role="group" aria-label="table of communication"><table>
        <thead><tr>${COLUMNS.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
        <tbody>${list.map((c) => html`<tr><th scope="row">${c.op}${c.what ? html` <span class="muted">of ${c.what}</span>` : nothing}</th><td>${c.axis}</td><td>${c.link}</td><td>${whole(c.count)}</td><td>${decimal(c.bytes, "B")}</td><td>${decimal(c.sent, "B")}</td>
          <td>${duration(c.ns)}${c.overlapped ? html` <span class="muted">overlapped</span>` : nothing}</td></tr>`)}</tbody></table></div></details>`;
  }
}

customElements.define("notes-view", NotesView);
