// The loader: batch, remainder, dataset, prefetch, way of loading, and budgets.

import { css, html, nothing } from "lit";
import { state } from "lit/decorators.js";
import { type Draft, LOADINGS } from "./draft.js";
import { Part, idOf } from "./element.js";
import { controls } from "./style.js";
import { bytes, parseBytes } from "./units.js";

const ORDERS = ["sequential.1", "shuffle.1"];

export class BatchForm extends Part {
  @state() private wrong = new Map<string, string>(); // inputs that cannot be read, and why

  static override styles = [
    controls,
    css`
      .grid { display: grid; grid-template-columns: 1fr 1fr; gap: 0.55rem 0.5rem; margin-top: 0.5rem; align-items: start; }
      .why { margin: 0.2rem 0 0; }
    `,
  ];

  protected override render(): unknown {
    const { draft } = this.model;
    return html`<h2>Batch and loader</h2><div class="grid">
      ${draft.batch ? this.field("global batch", "/batch/size", draft.batch.size.join(", "), this.size) : html`<button @click=${this.addBatch}>+ batch</button>`}
      ${draft.batch ? this.choice("remainder", "/batch/remainder", ["drop", "pad", "error"], draft.batch.remainder, (d, v) => void (d.batch!.remainder = v)) : nothing}
      ${this.field("records in the dataset", "/dataset/records", draft.dataset ? String(draft.dataset.records) : "", this.records, "unknown")}
      ${draft.dataset ? this.choice("order", "/dataset/order", orders(draft), draft.dataset.order ?? ORDERS[0]!, (d, v) => void (d.dataset!.order = v === ORDERS[0] ? null : v)) : nothing}
      ${draft.dataset ? this.field("seed", "/dataset/seed", String(draft.dataset.seed), (v) => this.whole(v, -Number.MAX_SAFE_INTEGER, (d, n) => void (d.dataset!.seed = n))) : nothing}
      ${this.field("prefetch", "/prefetch", String(draft.prefetch), (v) => this.whole(v, 0, (d, n) => void (d.prefetch = n)))}
      ${this.choice("loading", "/loading", [...LOADINGS], draft.loading, (d, v) => void (d.loading = v))}
      ${draft.batch ? this.choice("extras", "/batch/extras", ["none", "key", "record", "key, record"], draft.batch.extras.join(", ") || "none", (d, v) => void (d.batch!.extras = v === "none" ? [] : v.split(", "))) : nothing}
      ${this.field("device memory budget", "/budget/device_bytes", draft.deviceBytes ? bytes(draft.deviceBytes) : "", (v) => this.budget(v, "deviceBytes"), "no bound")}
      ${this.field("host memory budget", "/budget/host_bytes", draft.hostBytes ? bytes(draft.hostBytes) : "", (v) => this.budget(v, "hostBytes"), "no bound")}
    </div>`;
  }

  /** field shows a value that is typed; set takes it, or says what was expected. */
  private field(name: string, path: string, value: string, set: (value: string) => string, empty = ""): unknown {
    const wrong = this.wrong.get(path);
    return html`<div><label>${name}<input inputmode="numeric" data-path=${path} .value=${value} placeholder=${empty} aria-invalid=${wrong !== undefined || this.trouble(path) !== null} aria-describedby=${idOf(path)}
      @change=${(e: Event) => this.take(path, set((e.target as HTMLInputElement).value.trim()))} /></label>${wrong === undefined ? this.why(path) : html`<p class="why" id=${idOf(path)}>${wrong}</p>`}</div>`;
  }

  private take(path: string, why: string): void {
    const wrong = new Map(this.wrong);
    if (why) wrong.set(path, why);
    else wrong.delete(path);
    this.wrong = wrong;
  }

  private choice(name: string, path: string, options: string[], value: string, set: (d: Draft, v: string) => void): unknown {
    return html`<div><label>${name}<select data-path=${path} aria-invalid=${this.trouble(path) !== null} aria-describedby=${idOf(path)}
      @change=${(e: Event) => this.model.edit((d) => set(d, (e.target as HTMLSelectElement).value))}>
      ${options.map((o) => html`<option ?selected=${o === value}>${o}</option>`)}</select></label>${this.why(path)}</div>`;
  }

  private whole(value: string, least: number, change: (d: Draft, n: number) => void): string {
    const n = Number(value.replaceAll(/[,_\s]/g, ""));
    if (value === "" || !Number.isSafeInteger(n) || n < least) return least < 0 ? "expected a whole number" : `expected a whole number from ${least}`;
    this.model.edit((d) => change(d, n));
    return "";
  }

  private size = (value: string): string => {
    const several = value.split(/[,\s]+/).map(Number);
    const listed = several.length > 1 && several.every((n) => n < 1000 && n > 0) && !/^\d{1,3}(,\d{3})+$/.test(value);
    if (!listed && this.model.draft.batch!.size.length === 1) return this.whole(value, 1, (d, n) => void (d.batch!.size = [n]));
    if (!several.every((n) => Number.isSafeInteger(n) && n >= 1)) return "expected whole numbers from 1, one for each batch dimension";
    this.model.edit((d) => void (d.batch!.size = several));
    return "";
  };

  private records = (value: string): string => {
    if (value !== "") return this.whole(value, 0, (d, n) => void (d.dataset = d.dataset ? { ...d.dataset, records: n } : { records: n, fields: null, fingerprint: null, order: null, seed: 0 }));
    this.model.edit((d) => void (d.dataset = null));
    return "";
  };

  private budget(value: string, key: "deviceBytes" | "hostBytes"): string {
    const n = value === "" ? null : parseBytes(value);
    if (value !== "" && !n) return "expected a size, such as 16 GiB";
    this.model.edit((d) => void (d[key] = n));
    return "";
  }

  private addBatch = (): void => {
    this.model.edit((d) => void (d.batch = { size: [256], remainder: "drop", mask: null, maskSpec: null, extras: [] }));
  };
}

/** orders gives the orders to choose from: the usual ones, and that of the document. */
function orders(d: Draft): string[] {
  return [...new Set([...ORDERS, d.dataset?.order ?? ORDERS[0]!])];
}

customElements.define("batch-form", BatchForm);
