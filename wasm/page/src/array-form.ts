// The form of the arrays: name, shape, type, and the axes that partition each dimension.

import { css, html, nothing } from "lit";
import { keyed } from "lit/directives/keyed.js";
import { type ArrayDraft, type RaggedField, addArray, newBatch, pad, resize, sizes } from "./draft.js";
import { idOf } from "./element.js";
import { Form, caption, formStyles, integer, typed } from "./form.js";
import { pointer } from "./pointer.js";
import { parseShape, parseSpec, specText } from "./spec-text.js";

const DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"];

export class ArrayForm extends Form {
  static override styles = [
    formStyles,
    css`
      .list { display: grid; gap: 0.6rem; margin: 0.5rem 0; }
      fieldset { border: 1px solid var(--line); border-radius: 9px; padding: 0.6rem; margin: 0; min-width: 0; display: grid; gap: 0.45rem; background: var(--panel); }
      fieldset.shown { border-color: var(--edge); }
      .top { display: grid; grid-template-columns: 1fr 6.6rem auto; gap: 0.3rem; }
      .dims { display: grid; gap: 0.25rem; }
      .dim { display: grid; grid-template-columns: 3.6rem 1fr; align-items: start; gap: 0.4rem; }
      .dim > span { font: 0.76rem/1.5rem var(--mono); color: var(--muted); text-align: right; overflow: hidden; text-overflow: ellipsis; }
      .chips { display: flex; flex-wrap: wrap; gap: 0.25rem; }
      .chips button { height: 1.5rem; padding: 0 0.5rem; border-radius: 999px; font: 0.73rem var(--mono); color: var(--muted); background: none; }
      .chips button[aria-pressed="true"] { background: var(--accent); border-color: var(--accent); color: var(--on-accent); font-weight: 600; }
      .ragged { display: grid; grid-template-columns: 1fr 6rem; gap: 0.4rem; align-items: center; font-size: 0.78rem; }
      .ragged .why { grid-column: 1 / -1; }
      .chips button.unknown { background: var(--error); border-color: var(--error); color: var(--panel); }
    `,
  ];

  protected override inputs(): unknown {
    const { arrays, ragged } = this.model.wanted;
    const unused = ragged.filter((f) => !arrays.some((a) => (a.field ?? a.name) === f.name));
    return html`<h2>Arrays</h2>
      <div class="list">${arrays.map((a, i) => this.array(a, i))}${unused.map((f) => this.ragged(f))}</div>
      <button @click=${() => this.model.edit(addArray)}>+ array</button>`;
  }

  private array(a: ArrayDraft, i: number): unknown {
    const path = pointer("arrays", a.name);
    const shape = `${path}/shape`;
    const spec = `${path}/spec`;
    return html`<fieldset class=${a.name === this.model.look.array ? "shown" : ""} aria-label="array ${a.name}" @focusin=${() => this.show(a.name)}>
      <div class="top">
        <input class="code" aria-label="name of array ${i + 1}" data-path=${path} .value=${a.name} aria-invalid=${this.isRefused(path) || this.errorAt(path, true) !== null} aria-describedby=${idOf(path)} @change=${(e: Event) => this.take(path, () => this.rename(i, typed(e)))} />
        <select aria-label="type of ${a.name}" data-path="${path}/dtype" aria-invalid=${this.bad(`${path}/dtype`)} @change=${(e: Event) => this.model.edit((d) => void (d.arrays[i]!.dtype = typed(e)))}>
          ${DTYPES.map((t) => html`<option ?selected=${t === a.dtype}>${t}</option>`)}
        </select>
        <button class="quiet" aria-label="remove array ${a.name}" @click=${() => this.model.edit((d) => void d.arrays.splice(i, 1))}>×</button>
      </div>
      <div>${caption(shape, "shape")}<input id=${shape} class="code" data-path=${shape} .value=${shapeText(a)} spellcheck="false" aria-invalid=${this.bad(shape)} aria-describedby=${idOf(shape)} @change=${(e: Event) => this.take(shape, () => this.shape(i, typed(e)))} /></div>
      <div>${caption(spec, "spec")}<input id=${spec} class="code" data-path=${spec} .value=${specText(a.spec)} spellcheck="false" aria-invalid=${this.bad(spec)} aria-describedby=${idOf(spec)} @change=${(e: Event) => this.take(spec, () => this.spec(i, typed(e)))} /></div>
      ${a.shape.length > 0 && a.shape.length <= 8 ? html`<div class="dims">${a.shape.map((n, d) => this.dim(a, i, n, d))}</div>` : nothing}
      ${this.isRefused(path) ? this.reason(path) : this.why(path, true)}
      ${[`${path}/dtype`, `${path}/field`, `${path}/columns`].map((p) => this.why(p))}
      ${[shape, spec].map((p) => this.reason(p))}
    </fieldset>`;
  }

  /** ragged renders the input of the length that a ragged field is padded to. */
  private ragged(f: RaggedField): unknown {
    const path = pointer("ragged", f.name);
    return keyed(f.name, html`<fieldset aria-label="field ${f.name}"><div class="ragged">
      <span><span class="code">${f.name}</span>: ${f.dtype}, rows of different lengths</span>
      <input id=${path} inputmode="numeric" aria-label="pad ${f.name} to" placeholder="pad to …" aria-invalid=${this.bad(path)} aria-describedby=${idOf(path)}
        @change=${(e: Event) => this.take(path, () => this.pad(f, integer(typed(e), 1)))} />${this.reason(path)}</div></fieldset>`);
  }

  private pad(field: RaggedField, length: number): void {
    void this.model.edit((d) => pad(d, field, length));
  }

  private dim(a: ArrayDraft, i: number, size: number | string, d: number): unknown {
    const entry = a.spec[d] ?? [];
    const axes = this.model.wanted.axes.map((x) => x.name);
    const unknown = entry.filter((n) => !axes.includes(n));
    const order = (name: string): string => (entry.length > 1 && entry.includes(name) ? `${name} ${entry.indexOf(name) + 1}` : name);
    return html`<div class="dim"><span title="dimension ${d}">${typeof size === "number" ? size.toLocaleString("en-US") : size}</span>
      <div class="chips" role="group" aria-label="axes that partition dimension ${d} of ${a.name}">
        ${axes.map((n) => html`<button aria-pressed=${entry.includes(n)} @click=${() => this.toggle(i, d, n)}>${order(n)}</button>`)}
        ${unknown.map((n) => html`<button class="unknown" aria-label="remove unknown axis ${n}" @click=${() => this.toggle(i, d, n)}>${n} ×</button>`)}
      </div></div>`;
  }

  private toggle(i: number, dim: number, axis: string): void {
    this.model.edit((d) => {
      const a = d.arrays[i]!;
      while (a.spec.length <= dim) a.spec.push([]);
      const entry = a.spec[dim]!;
      a.spec[dim] = entry.includes(axis) ? entry.filter((n) => n !== axis) : [...entry, axis];
      while (a.spec.length > 0 && a.spec.at(-1)!.length === 0) a.spec.pop();
    });
  }

  private show(name: string): void {
    if (this.model.look.array !== name && this.model.names.includes(name)) this.model.see({ array: name, dims: null, slice: [], pinned: null });
  }

  private shape(i: number, text: string): void {
    const dims = parseShape(text, sizes(this.model.wanted));
    this.model.edit((d) => {
      const a = d.arrays[i]!;
      a.shape = dims.map((dim) => dim.size);
      a.names = dims.map((dim) => dim.name);
      if (a.shape.includes("B") && !d.batch) d.batch = newBatch();
      for (const { name, size } of dims) if (name) resize(d, name, size);
    });
    this.requestUpdate();
  }

  private spec(i: number, text: string): void {
    const spec = parseSpec(text);
    if (!spec) throw new Error("A spec is written P('data', None) or P(('data', 'fsdp'), 'model')");
    this.model.edit((d) => void (d.arrays[i]!.spec = spec));
  }

  private rename(i: number, name: string): void {
    const old = this.model.wanted.arrays[i]!.name;
    if (name === old) return;
    if (this.model.wanted.arrays.some((a) => a.name === name)) throw new Error(`Another array has the name ${name}.`);
    void this.model.edit((d) => void (d.arrays[i]!.name = name), this.model.look.array === old ? { array: name } : {});
  }
}

function shapeText(a: ArrayDraft): string {
  return a.shape.map((size, i) => (a.names[i] ? `${a.names[i]}=${size}` : size)).join(", ");
}

customElements.define("array-form", ArrayForm);
