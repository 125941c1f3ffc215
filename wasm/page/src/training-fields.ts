// The form of the training: batch, precision, optimizer, recomputation.

import { html, nothing } from "lit";
import { Fields, decimalOf, powers } from "./fields.js";
import { caption, typed } from "./form.js";
import { at, batchPath, numberAt, put, sequencePath, textAt } from "./strategy-draft.js";

const EXAMPLES = powers(1, 1 << 16);
const TOKENS = powers(1 << 12, 1 << 27);
const OPTIMIZERS = ["adamw", "adafactor", "lion", "sgd", "momentum", "muon"];
const PRECISION = "/training/precision";

/** The usual precisions, with the types that differ from the defaults. null leaves out a master copy. */
const PRECISIONS: Record<string, [title: string, types: Record<string, string | null>]> = {
  mixed: ["bfloat16, float32 master", {}],
  gradients: ["bfloat16, float32 gradients", { gradients: "float32" }],
  pure: ["all bfloat16", { master: null, moments: "bfloat16" }],
  full: ["all float32", { compute: "float32", weights: "float32", master: null, gradients: "float32" }],
};

const TYPES = ["bfloat16", "float16", "float32", "float8_e4m3fn"];

export class TrainingFields extends Fields {
  protected override inputs(): unknown {
    const doc = this.model.wanted;
    const path = batchPath(doc);
    const tokens = path === "/training/tokens";
    return html`<h2>Training</h2><div class="grid">
      ${this.slider(tokens ? "batch in tokens" : "batch", path, tokens ? TOKENS : EXAMPLES, null)}
      ${sequencePath(doc) ? html`<div>${caption("unit", "batch counts")}<select id="unit" @change=${(e: Event) => this.unit(typed(e) === "tokens")}>
        <option value="examples" ?selected=${!tokens}>sequences</option><option value="tokens" ?selected=${tokens}>tokens</option></select></div>` : nothing}
      ${this.microBatch()}
      ${this.precision()}
      ${this.choice("optimizer", "/training/optimizer", OPTIMIZERS, "adamw")}
      ${this.choice("recomputation", "/training/recomputation", [["auto", "try all"], "none", "dots", "selective", "full"], "auto")}
      ${this.choice("attention", "/training/attention", ["flash", "plain"], "flash")}
    </div>${this.types()}${this.pipeline()}`;
  }

  /** unit changes what the batch counts, and keeps its size. */
  private unit(tokens: boolean): void {
    const doc = this.model.wanted;
    const from = batchPath(doc);
    const to = tokens ? "/training/tokens" : "/training/batch";
    if (from === to) return;
    const known = this.model.catalog.models.find((m) => m.name === textAt(doc, "/model/preset"));
    const sequence = numberAt(doc, sequencePath(doc)!) ?? (known?.transformer["sequence"] as number | undefined) ?? 1;
    const n = numberAt(doc, from) ?? 1;
    void this.model.edit((d) => {
      put(d, from, undefined);
      put(d, to, tokens ? n * sequence : Math.max(1, Math.round(n / sequence)));
    });
  }

  private microBatch(): unknown {
    const path = "/training/micro_batch";
    return at(this.model.wanted, path) === "auto" ? this.choice("micro-batch", path, [["auto", "try several"]], "auto") : this.number("micro-batch", path, "try several");
  }

  private precision(): unknown {
    const types = at(this.model.wanted, PRECISION);
    const written = JSON.stringify(types instanceof Map ? Object.fromEntries([...types].sort()) : {});
    const match = Object.entries(PRECISIONS).find(([, [, t]]) => JSON.stringify(Object.fromEntries(Object.entries(t).sort())) === written)?.[0] ?? "own";
    return html`<div class="wide">${caption(PRECISION, "precision")}<select id=${PRECISION} data-path=${PRECISION} @change=${(e: Event) => this.setPrecision(typed(e))}>
      ${Object.entries(PRECISIONS).map(([key, [title]]) => html`<option value=${key} ?selected=${key === match}>${title}</option>`)}
      ${match === "own" ? html`<option value="own" selected>own types</option>` : nothing}</select></div>`;
  }

  private setPrecision(key: string): void {
    const types = PRECISIONS[key]?.[1];
    if (types) this.set(PRECISION, Object.keys(types).length > 0 ? new Map(Object.entries(types)) : undefined);
  }

  private types(): unknown {
    const type = (name: string, fallback: string): unknown => this.choice(name, `${PRECISION}/${name}`, TYPES, fallback);
    return this.more("types of arrays", [PRECISION], html`${type("compute", "bfloat16")}${type("weights", "bfloat16")}
      ${at(this.model.wanted, `${PRECISION}/master`) === null ? html`<div class="note">no master copy</div>` : type("master", "float32")}
      ${type("gradients", "bfloat16")}${type("moments", "float32")}`);
  }

  private pipeline(): unknown {
    const paths = ["schedule", "chunks", "sequence_parallel", "efficiency", "link_efficiency", "overlap"].map((key) => `/training/${key}`);
    return this.more("pipeline, efficiency", paths, html`
      ${this.choice("schedule", "/training/schedule", [["auto", "try 1f1b and interleaved"], "1f1b", "interleaved", "gpipe", "zero-bubble"], "auto")}
      ${textAt(this.model.wanted, "/training/schedule") === "interleaved" ? this.number("chunks per stage", "/training/chunks", "2") : nothing}
      ${this.numbers("efficiency", "/training/efficiency", "of the device", decimalOf)}
      ${this.numbers("share of link bandwidth", "/training/link_efficiency", "0.35, 1", decimalOf)}
      <div class="flags">${this.flag("split norms by the sequence over tensor", "/training/sequence_parallel", true)}</div>`);
  }
}

customElements.define("training-fields", TrainingFields);
