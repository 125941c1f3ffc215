// The form of the model: a known transformer, the sizes of another one, or numbers of any model.

import { html, nothing } from "lit";
import type { KnownModel } from "./advice.js";
import { idOf } from "./element.js";
import { Fields, powers } from "./fields.js";
import { caption, typed } from "./form.js";
import { type Json, type JsonObject, read } from "./json.js";
import { at, formOf, numberAt, put, sequencePath, textAt } from "./strategy-draft.js";
import { count, whole } from "./units.js";

const SEQUENCES = powers(128, 1 << 20);
const OWN = { transformer: "another transformer", parameters: "any model, by its parameters" } as const;
const T = "/model/transformer";
const EXPERTS = `${T}/experts`;

export class ModelFields extends Fields {
  protected override inputs(): unknown {
    const form = formOf(this.model.wanted);
    const sequence = sequencePath(this.model.wanted);
    return html`<h2>Model</h2><div class="grid">
      <div class="wide">${caption("/model", "model")}<select id="/model" data-path="/model/preset" aria-invalid=${this.errorAt("/model/preset") !== null} aria-describedby=${idOf("/model/preset")} @change=${(e: Event) => this.pick(typed(e))}>${this.options()}</select>
        ${this.why("/model/preset")}${this.why("/model", true)}${this.about()}</div>
      ${sequence ? this.slider("sequence", sequence, SEQUENCES, this.known ? numberOf(this.known, "sequence") : null) : nothing}
      ${form === "transformer" ? this.sizes() : nothing}
      ${form === "parameters" ? this.number("parameters", "/model/parameters", "") : nothing}
      ${form === "parameters" || form === "tree" ? this.example() : nothing}
    </div>${form === "transformer" ? this.details() : nothing}`;
  }

  /** known is the known model that the document names. */
  private get known(): KnownModel | null {
    return this.model.catalog.models.find((m) => m.name === textAt(this.model.wanted, "/model/preset")) ?? null;
  }

  private options(): unknown {
    const form = formOf(this.model.wanted);
    const name = textAt(this.model.wanted, "/model/preset");
    const unknown = form === "preset" && !this.known ? html`<option value=${`preset ${name}`} selected>${name}</option>` : nothing;
    const tree = form === "tree" ? html`<option value="tree" selected>a tree of arrays</option>` : nothing;
    return html`${unknown}${this.model.catalog.models.map((m) => html`<option value=${`preset ${m.name}`} ?selected=${form === "preset" && m.name === name}>${m.title}</option>`)}
      ${Object.entries(OWN).map(([f, title]) => html`<option value=${f} ?selected=${f === form}>${title}</option>`)}${tree}`;
  }

  /** about describes the model in one line. */
  private about(): unknown {
    const { known } = this;
    const tree = at(this.model.wanted, "/model/tree");
    if (tree instanceof Map) return html`<p class="note">${count(tree.size, "array")}; edit them in a file and open it again.</p>`;
    if (!known) return nothing;
    const [layers, hidden, heads, kv, ffn, vocab] = ["layers", "hidden", "heads", "kv_heads", "ffn", "vocab"].map((key) => numberOf(known, key));
    const experts = known.transformer["experts"] as Record<string, number> | undefined;
    return html`<p class="note" title=${known.source}>${whole(known.parameters)} parameters: ${layers} layers of ${whole(hidden!)}, ${heads} heads${kv && kv !== heads ? `, ${kv} of keys and values` : ""}, feed-forward
      ${whole(ffn!)}${known.transformer["gated"] === true ? ", gated" : ""}${experts ? `, ${experts["active"]} of ${experts["count"]} experts` : ""}, ${whole(vocab!)} tokens.</p>`;
  }

  private sizes(): unknown {
    return html`${this.number("layers", `${T}/layers`, "")}${this.number("hidden", `${T}/hidden`, "")}
      ${this.number("heads", `${T}/heads`, "")}${this.number("kv heads", `${T}/kv_heads`, "as heads")}
      ${this.number("feed-forward", `${T}/ffn`, "")}${this.number("vocabulary", `${T}/vocab`, "")}
      <div class="flags">${this.flag("gated", `${T}/gated`, false)}${this.flag("tied embeddings", `${T}/tied`, false)}</div>`;
  }

  private details(): unknown {
    const experts = at(this.model.wanted, EXPERTS) instanceof Map;
    const paths = ["head_dim", "norm", "positions", "biases", "qkv_biases", "dropout", "causal", "experts"].map((key) => `${T}/${key}`);
    return this.more("head size, norms, experts", paths, html`
      ${this.number("head size", `${T}/head_dim`, "hidden / heads")}${this.choice("norm", `${T}/norm`, [["rms", "RMS"], ["layer", "layer norm"]], "rms")}
      ${this.choice("positions", `${T}/positions`, ["rotary", "learned"], "rotary")}
      <div class="flags">${this.flag("biases", `${T}/biases`, false)}${this.flag("biases of queries, keys, values", `${T}/qkv_biases`, false)}${this.flag("dropout", `${T}/dropout`, false)}${this.flag("causal mask", `${T}/causal`, true)}</div>
      ${this.number("experts", `${EXPERTS}/count`, "none")}${experts ? html`${this.number("active experts", `${EXPERTS}/active`, "")}
        ${this.number("every … layers", `${EXPERTS}/every`, "1")}${this.number("expert's feed-forward", `${EXPERTS}/ffn`, "as above")}
        ${this.number("shared experts", `${EXPERTS}/shared`, "0", 0)}${this.decimalNumber("capacity", `${EXPERTS}/capacity`, "1")}` : nothing}`);
  }

  private example(): unknown {
    return html`<div class="wide">${this.quantity("activations per example", "/model/activation_bytes_per_example", "unknown", "B")}</div>
      <div class="wide">${this.quantity("forward FLOPs per example", "/model/flops_per_example", "unknown", "FLOP")}</div>`;
  }

  /** pick replaces the model. Another transformer begins with the sizes of the known one. */
  private pick(value: string): void {
    const [form, name] = value.split(" ");
    const { known } = this;
    const before = this.model.wanted;
    void this.model.edit((d) => {
      const model: JsonObject = new Map();
      const inputs = at(before, "/model/inputs");
      if (form === "preset") model.set("preset", name!);
      else if (form === "transformer") model.set("transformer", known ? ownForm(known, numberAt(before, `${T}/sequence`)) : read(OTHER));
      else if (form === "parameters") {
        model.set("parameters", this.model.reply.report?.model.parameters ?? 1_000_000_000);
        if (inputs !== undefined) model.set("inputs", inputs);
      }
      put(d, "/model", model);
    });
  }
}

/** OTHER is a transformer to begin with. */
const OTHER = '{"layers":24,"hidden":2048,"heads":16,"ffn":8192,"vocab":32000,"sequence":2048}';

/** ownForm returns the sizes of a known model, with another sequence length if one is given. */
function ownForm(known: KnownModel, sequence: number | null): Json {
  const form = read(JSON.stringify(known.transformer)) as JsonObject;
  if (sequence !== null) form.set("sequence", sequence);
  return form;
}

function numberOf(known: KnownModel, key: string): number | null {
  const value = known.transformer[key];
  return typeof value === "number" ? value : null;
}

customElements.define("model-fields", ModelFields);
