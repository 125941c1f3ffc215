// The totals: batch bytes, read bytes, memory of devices and hosts, steps of an epoch.

import { css, html, nothing } from "lit";
import { PageElement } from "./element.js";
import type { Totals } from "./guest.js";
import { controls } from "./style.js";
import { bytes, count, times, whole } from "./units.js";

export class TotalsView extends PageElement {
  static override styles = [
    controls,
    css`
      .cards { display: flex; flex-wrap: wrap; gap: 0.5rem; }
      .card { flex: 1 1 7rem; border: 1px solid var(--line); border-radius: 9px; padding: 0.55rem 0.65rem; background: var(--field); min-width: 0; }
      .card b { display: block; font-size: 1.12rem; font-weight: 650; letter-spacing: -0.01em; }
      .card span { font-size: 0.73rem; color: var(--muted); }
      .card .bound { display: block; }
      .meter { height: 5px; border-radius: 3px; background: var(--line); margin-top: 0.4rem; overflow: hidden; }
      .meter i { display: block; height: 100%; background: var(--accent); }
      .meter.over i { background: var(--error); }
    `,
  ];

  protected override render(): unknown {
    const { draft, reply } = this.model;
    const t = reply.report?.totals;
    if (!t) return nothing;
    return html`<div class="cards">
      ${this.card(bytes(t.batch_bytes), "in a global batch")}
      ${this.card(times(t.read_bytes, t.batch_bytes), `read: ${bytes(t.read_bytes)} in all`)}
      ${this.card(bytes(t.device_bytes), "on the fullest device, for one batch", t.device_bytes, draft.deviceBytes)}
      ${this.card(bytes(t.host_bytes), `in the fullest process, for ${count(draft.prefetch + 1, "batch", "batches")}`, t.host_bytes, draft.hostBytes)}
      ${draft.dataset ? this.card(whole(t.steps_per_epoch), this.remainder(t)) : nothing}
    </div>`;
  }

  private remainder(t: Totals): string {
    if (!t.remainder_records) return "steps in an epoch";
    return `steps in an epoch, ${whole(t.remainder_records)} ${this.model.draft.batch?.remainder === "pad" ? "in the last" : "left out"}`;
  }

  private card(number: string, what: string, used: number | null = null, budget: number | null = null): unknown {
    const meter = used !== null && budget !== null;
    return html`<div class="card"><b class="num">${number}</b><span>${what}</span>${meter ? html`<span class="bound">${used > budget ? "over the budget of" : "budget"} ${bytes(budget)}</span>` : nothing}
      ${meter ? html`<div class="meter ${used > budget ? "over" : ""}" aria-hidden="true"><i style="width:${Math.min(100, (100 * used) / budget)}%"></i></div>` : nothing}</div>`;
  }
}

customElements.define("totals-view", TotalsView);
