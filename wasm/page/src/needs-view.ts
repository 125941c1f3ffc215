// What the best candidate needs of the input.

import { css, html, nothing } from "lit";
import type { InputNeeds } from "./advice.js";
import { PageElement } from "./element.js";
import type { StrategyModel } from "./strategy-model.js";
import { controls } from "./style.js";
import { bytes, count, whole } from "./units.js";

export class NeedsView extends PageElement<StrategyModel> {
  static override styles = [
    controls,
    css`
      dl { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 0.35rem 0.8rem; margin: 0; font-size: 0.8rem; }
      dt { color: var(--muted); } dd { margin: 0; text-align: right; font-variant-numeric: tabular-nums; }
      .verdict { margin: 0.7rem 0 0; padding: 0.5rem 0.6rem; border-radius: 8px; border: 1px solid var(--line); background: var(--field); font-size: 0.8rem; line-height: 1.45; }
      .yes b { color: var(--ok); } .no b { color: var(--error); }
    `,
  ];

  protected override render(): unknown {
    const { report } = this.model;
    const input = report?.input;
    if (!input) return html`<p class="muted" style="margin:0;font-size:0.8rem">${report?.best == null ? "There is no best candidate." : "The arrays of a batch are not known."}</p>`;
    const rows: [string, string][] = [
      ["rows per second", rate(input.rows_per_second)],
      ["rows per step", whole(input.rows_per_step)],
      ["bytes per step", bytes(input.bytes_per_step)],
      ["read by all processes", bytes(input.read_bytes)],
      ["processes", whole(input.processes)],
      ["rows of a process per step", whole(input.process_rows)],
      ["bytes of a process per step", bytes(input.process_bytes)],
      ["host memory of a process", bytes(input.host_bytes)],
    ];
    return html`<dl>${rows.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
      ${input.sharing > 1 ? html`<p class="verdict">${count(input.sharing, "process", "processes")} read the same rows, in ${count(input.groups, "group")}.</p>` : nothing}
      ${this.verdict(input)}`;
  }

  private verdict({ available, keeps_up, margin }: InputNeeds): unknown {
    if (available === null || keeps_up === null) return nothing;
    const factor = margin === null ? "" : ` ${margin.toFixed(2)} times what is needed.`;
    return html`<p class="verdict ${keeps_up ? "yes" : "no"}"><b>${keeps_up ? "The input keeps up." : "The input is too slow."}</b> ${whole(available)} rows per second are${factor || " available."}</p>`;
  }
}

/** rate formats rows per second. */
function rate(n: number | null): string {
  if (n === null) return "–";
  return n >= 100 ? whole(Math.round(n)) : String(Number(n.toPrecision(3)));
}

customElements.define("needs-view", NeedsView);
