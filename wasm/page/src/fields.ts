// The inputs of the strategy forms. Each input edits the value at one path of the document.

import { css, html, nothing } from "lit";
import { idOf } from "./element.js";
import { Form, caption, formStyles, integer, typed } from "./form.js";
import type { Json } from "./json.js";
import { decimal, parseQuantity } from "./quantities.js";
import { at, numberAt, put, textAt } from "./strategy-draft.js";
import type { StrategyModel } from "./strategy-model.js";
import { whole } from "./units.js";

export const fieldStyles = [
  formStyles,
  css`
    .grid { display: grid; grid-template-columns: 1fr 1fr; gap: 0.55rem 0.5rem; margin-top: 0.5rem; align-items: start; }
    .grid > div { min-width: 0; }
    .grid > .wide { grid-column: 1 / -1; }
    .slide { display: grid; grid-template-columns: minmax(0, 1fr) 6.2rem; gap: 0.1rem 0.6rem; align-items: center; }
    .slide .cap, .slide .why, .slide .note { grid-column: 1 / -1; margin: 0; }
    .slide input[type="range"] { padding: 0; border: 0; background: none; accent-color: var(--accent); height: 1.5rem; cursor: pointer; }
    .why, .note { margin: 0.2rem 0 0; }
    .note { font-size: 0.73rem; color: var(--muted); line-height: 1.45; }
    .more { margin-top: 0.7rem; }
    .more > summary { cursor: pointer; font-size: 0.76rem; color: var(--muted); border-radius: 5px; width: fit-content; }
    .flag { display: flex; gap: 0.45rem; align-items: center; font-size: 0.78rem; color: var(--text); min-height: 1.85rem; }
    .flag input { width: 1rem; height: 1rem; accent-color: var(--accent); margin: 0; }
    .flags { grid-column: 1 / -1; display: flex; flex-wrap: wrap; gap: 0 1rem; }
  `,
];

export abstract class Fields extends Form<StrategyModel> {
  static override styles = fieldStyles;

  /** set changes the value at a path. */
  protected set(path: string, value: Json | undefined, key = ""): void {
    void this.model.edit((d) => put(d, path, value), key);
  }

  /** number renders an input for a whole number. If it is empty, the value is removed; fallback then says what counts.
   * Without a fallback, an empty input is refused. */
  protected number(name: string, path: string, fallback: string, least = 1): unknown {
    const value = numberAt(this.model.wanted, path);
    return this.input(name, path, value === null ? "" : whole(value), fallback, (v) => (v === "" && fallback ? undefined : integer(v, least)), "numeric");
  }

  /** quantity renders an input for a number with a unit. */
  protected quantity(name: string, path: string, fallback: string, unit: string): unknown {
    const value = numberAt(this.model.wanted, path);
    return this.input(name, path, value === null ? "" : decimal(value, unit), fallback, (v) => (v === "" ? undefined : parseQuantity(v)));
  }

  /** numbers renders an input for a list of numbers. */
  protected numbers(name: string, path: string, fallback: string, parse = (v: string): number => integer(v, 0)): unknown {
    const value = at(this.model.wanted, path);
    const shown = value === undefined ? "" : Array.isArray(value) ? value.join(", ") : String(value);
    return this.input(name, path, shown, fallback, (v) => (v === "" ? undefined : v.split(/[,\s]+/).map(parse)));
  }

  /** decimalNumber renders an input for a number from 0 that may have decimals. */
  protected decimalNumber(name: string, path: string, fallback: string): unknown {
    const value = numberAt(this.model.wanted, path);
    return this.input(name, path, value === null ? "" : String(value), fallback, (v) => (v === "" ? undefined : decimalOf(v)));
  }

  private input(name: string, path: string, value: string, fallback: string, parse: (text: string) => Json | undefined, mode = "text"): unknown {
    return html`<div>${caption(path, name)}<input id=${path} inputmode=${mode} data-path=${path} .value=${value} placeholder=${fallback} aria-invalid=${this.bad(path)} aria-describedby=${idOf(path)}
      @change=${(e: Event) => this.take(path, () => this.set(path, parse(typed(e))))} />
      ${this.reason(path)}</div>`;
  }

  /** choice renders a select. The first option is the default, which documents leave out. An unknown value of the
   * document is an option too. */
  protected choice(name: string, path: string, options: readonly (string | [value: string, title: string])[], fallback: string): unknown {
    const value = textAt(this.model.wanted, path);
    const all = options.map((o) => (typeof o === "string" ? ([o, o] as const) : o));
    if (value && !all.some(([v]) => v === value)) all.push([value, value]);
    return html`<div>${caption(path, name)}<select id=${path} data-path=${path} aria-invalid=${this.errorAt(path) !== null} aria-describedby=${idOf(path)}
      @change=${(e: Event) => this.set(path, typed(e) === fallback ? undefined : typed(e))}>
      ${all.map(([v, title]) => html`<option value=${v} ?selected=${v === (value || fallback)}>${title}</option>`)}</select>${this.why(path)}</div>`;
  }

  /** flag renders a check box. */
  protected flag(name: string, path: string, fallback: boolean): unknown {
    const value = at(this.model.wanted, path);
    return html`<label class="flag"><input type="checkbox" data-path=${path} .checked=${value === undefined ? fallback : value === true} aria-describedby=${idOf(path)}
      @change=${(e: Event) => this.set(path, (e.target as HTMLInputElement).checked === fallback ? undefined : !fallback)} />${name}</label>${this.why(path)}`;
  }

  /** slider renders a slider over stops, beside an input for any number. fallback is the number that counts if the
   * document has none. */
  protected slider(name: string, path: string, stops: readonly number[], fallback: number | null, note = ""): unknown {
    const value = numberAt(this.model.wanted, path);
    const shown = value ?? fallback;
    return html`<div class="wide"><div class="slide">${caption(path, name)}
      <input type="range" aria-label="${name} slider" min="0" max=${stops.length - 1} .value=${String(nearest(stops, shown ?? 1))} aria-valuetext=${whole(shown)}
        @input=${(e: Event) => this.slide(path, stops[Number((e.target as HTMLInputElement).value)]!)} @change=${() => this.model.finish()} />
      <input id=${path} inputmode="numeric" data-path=${path} .value=${value === null ? "" : whole(value)} placeholder=${fallback === null ? "" : whole(fallback)} aria-invalid=${this.bad(path)} aria-describedby=${idOf(path)}
        @change=${(e: Event) => this.take(path, () => this.set(path, typed(e) === "" && fallback !== null ? undefined : integer(typed(e), 1)))} />
      ${this.reason(path)}${note ? html`<p class="note">${note}</p>` : nothing}</div></div>`;
  }

  private slide(path: string, value: number): void {
    this.refuse(path, "");
    this.set(path, value, path);
  }

  /** more renders inputs that few users need. They are open if one of them has a problem. */
  protected more(title: string, paths: string[], content: unknown): unknown {
    return html`<details class="more" ?open=${paths.some((p) => this.errorAt(p) !== null)}><summary>${title}</summary><div class="grid">${content}</div></details>`;
  }
}

/** powers lists the powers of two in a range. With between, 3 × a power of two lies between two of them. */
export function powers(least: number, most: number, between = false): number[] {
  const list: number[] = [];
  for (let n = least; n <= most; n *= 2) {
    list.push(n);
    if (between && n >= 2 && 1.5 * n < most) list.push(1.5 * n);
  }
  return list;
}

/** nearest returns the index of the stop nearest to a value, on a logarithmic scale. */
function nearest(stops: readonly number[], value: number): number {
  const far = (stop: number): number => Math.abs(Math.log(stop / Math.max(1, value)));
  return stops.reduce((best, stop, i) => (far(stop) < far(stops[best]!) ? i : best), 0);
}

/** decimalOf parses a number from 0 with at most three decimals, as documents have them. */
export function decimalOf(text: string): number {
  const n = Number(text);
  if (!/^\d*\.?\d{1,3}$/.test(text) || n > 1e9) throw new Error("expected a number with at most three decimals, such as 0.125");
  return n;
}
