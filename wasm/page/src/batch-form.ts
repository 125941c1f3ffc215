// The form of the loader: batch, remainder, dataset, prefetch, way of loading, and budgets.

import { css, html, nothing } from "lit";
import { type Draft, LOADINGS, newBatch } from "./draft.js";
import { idOf } from "./element.js";
import { Form, caption, formStyles, integer, typed } from "./form.js";
import { duration, parseDuration } from "./quantities.js";
import { bytes, parseBytes, product, whole } from "./units.js";

const STEP = "/batch/step"; // a field of the form, which layout documents do not have

const ORDERS = ["sequential.1", "shuffle.1"];

export class BatchForm extends Form {
  static override styles = [
    formStyles,
    css`
      .grid { display: grid; grid-template-columns: 1fr 1fr; gap: 0.55rem 0.5rem; margin-top: 0.5rem; align-items: start; }
      .grid > div { min-width: 0; }
      .why, .note { margin: 0.2rem 0 0; }
      .note { font-size: 0.73rem; color: var(--muted); }
    `,
  ];

  protected override inputs(): unknown {
    const draft = this.model.wanted;
    const { batch, dataset } = draft;
    return html`<h2>Batch and loader</h2><div class="grid">
      ${batch ? this.field("global batch", "/batch/size", batch.size.join(", "), this.size, "", dims(batch.size)) : html`<button @click=${this.addBatch}>+ batch</button>`}
      ${batch ? this.choice("remainder", "/batch/remainder", ["drop", "pad", "error"], batch.remainder, (d, v) => void (d.batch!.remainder = v)) : nothing}
      ${this.field("dataset records", "/dataset/records", dataset ? String(dataset.records) : "", this.records, "unknown")}
      ${dataset ? this.choice("order", "/dataset/order", orders(draft), dataset.order ?? ORDERS[0]!, (d, v) => void (d.dataset!.order = v === ORDERS[0] ? null : v)) : nothing}
      ${dataset ? this.field("seed", "/dataset/seed", String(dataset.seed), (v) => this.whole(v, -Number.MAX_SAFE_INTEGER, (d, n) => void (d.dataset!.seed = n))) : nothing}
      ${this.field("prefetch", "/prefetch", String(draft.prefetch), (v) => this.whole(v, 0, (d, n) => void (d.prefetch = n)))}
      ${this.choice("loading", "/loading", [...LOADINGS], draft.loading, (d, v) => void (d.loading = v))}
      ${batch ? this.choice("extras", "/batch/extras", ["none", "key", "record", "key, record"], batch.extras.join(", ") || "none", (d, v) => void (d.batch!.extras = v === "none" ? [] : v.split(", "))) : nothing}
      ${this.field("device budget", "/budget/device_bytes", draft.deviceBytes ? bytes(draft.deviceBytes) : "", (v) => this.budget(v, "deviceBytes"), "no bound")}
      ${batch ? this.field("a step takes", STEP, draft.stepMs ? duration(draft.stepMs * 1e6) : "", this.step, "unknown") : nothing}
      ${this.field("host budget", "/budget/host_bytes", draft.hostBytes ? bytes(draft.hostBytes) : "", (v) => this.budget(v, "hostBytes"), "no bound")}
    </div>`;
  }

  /** field renders an input. set uses the typed text, or throws an error that says what is expected. */
  private field(name: string, path: string, value: string, set: (value: string) => void, empty = "", note = ""): unknown {
    return html`<div>${caption(path, name)}<input id=${path} inputmode="numeric" data-path=${path} .value=${value} placeholder=${empty} aria-invalid=${this.bad(path)} aria-describedby=${idOf(path)}
      @change=${(e: Event) => this.take(path, () => set(typed(e)))} />
      ${this.reason(path)}${note ? html`<p class="note">${note}</p>` : nothing}</div>`;
  }

  private choice(name: string, path: string, options: string[], value: string, set: (d: Draft, v: string) => void): unknown {
    return html`<div>${caption(path, name)}<select id=${path} data-path=${path} aria-invalid=${this.errorAt(path) !== null} aria-describedby=${idOf(path)}
      @change=${(e: Event) => this.model.edit((d) => set(d, typed(e)))}>
      ${options.map((o) => html`<option ?selected=${o === value}>${o}</option>`)}</select>${this.why(path)}</div>`;
  }

  private whole(value: string, least: number, change: (d: Draft, n: number) => void): void {
    const n = integer(value, least);
    this.model.edit((d) => change(d, n));
  }

  /** size parses the batch size. If there is one batch dimension, "1,024" is one size and "4, 64" are two. */
  private size = (value: string): void => {
    const several = value.split(/[,\s]+/).map(Number);
    const listed = several.length > 1 && several.every((n) => n < 1000 && n > 0) && !/^\d{1,3}(,\d{3})+$/.test(value);
    if (!listed && this.model.wanted.batch!.size.length === 1) return this.whole(value, 1, (d, n) => void (d.batch!.size = [n]));
    if (!several.every((n) => Number.isSafeInteger(n) && n >= 1)) throw new Error("expected whole numbers from 1, one for each batch dimension");
    this.model.edit((d) => void (d.batch!.size = several));
  };

  private records = (value: string): void => {
    if (value !== "") return this.whole(value, 0, (d, n) => void (d.dataset = d.dataset ? { ...d.dataset, records: n } : { records: n, fields: null, fingerprint: null, order: null, seed: 0 }));
    this.model.edit((d) => void (d.dataset = null));
  };

  private budget(value: string, key: "deviceBytes" | "hostBytes"): void {
    const n = value === "" ? null : parseBytes(value);
    this.model.edit((d) => void (d[key] = n));
  }

  private step = (value: string): void => {
    const ms = value === "" ? null : parseDuration(value);
    this.model.edit((d) => void (d.stepMs = ms));
  };

  private addBatch = (): void => {
    this.model.edit((d) => void (d.batch = newBatch()));
  };
}

/** dims describes the batch dimensions if there are several. */
function dims(size: number[]): string {
  if (size.length === 1) return "";
  const names = size.map((_, i) => `B${i}`);
  return `${size.map((n, i) => `B${i} = ${whole(n)}`).join(", ")}: ${whole(product(size))} rows. Shapes begin with ${names.join(", ")}.`;
}

/** orders returns the selectable orders: the standard ones and the document's. */
function orders(d: Draft): string[] {
  return [...new Set([...ORDERS, d.dataset?.order ?? ORDERS[0]!])];
}

customElements.define("batch-form", BatchForm);
