// The base of the forms: what was typed and cannot be used stays in its input, with the reason below.

import { type PropertyValues, html } from "lit";
import { state } from "lit/decorators.js";
import { keyed } from "lit/directives/keyed.js";
import { Part, idOf } from "./element.js";

export abstract class Form extends Part {
  @state() private refused: ReadonlyMap<string, string> = new Map(); // by the path of the input
  private replaced = 0;

  /** inputs draws the form. */
  protected abstract inputs(): unknown;

  /** Another layout brings inputs of its own: what was refused in the old ones is gone with them. */
  protected override willUpdate(changed: PropertyValues): void {
    super.willUpdate(changed);
    if (this.replaced === this.model.replaced) return;
    this.replaced = this.model.replaced;
    this.refused = new Map();
  }

  protected override render(): unknown {
    return keyed(this.model.replaced, this.inputs());
  }

  /** refuse says why what was typed at a path cannot be used; "" takes that back. */
  protected refuse(path: string, why: string): void {
    if ((this.refused.get(path) ?? "") === why) return;
    const refused = new Map(this.refused);
    if (why) refused.set(path, why);
    else refused.delete(path);
    this.refused = refused;
  }

  /** isRefused says whether the input at a path holds what cannot be used. */
  protected isRefused(path: string): boolean {
    return this.refused.has(path);
  }

  /** bad says whether anything is wrong at a path. */
  protected bad(path: string): boolean {
    return this.isRefused(path) || this.trouble(path) !== null;
  }

  /** reason shows what is wrong at a path. */
  protected reason(path: string): unknown {
    const refused = this.refused.get(path);
    return refused === undefined ? this.why(path) : html`<p class="why" id=${idOf(path)}>${refused}</p>`;
  }
}

/** wholeNumber reads a whole number, with or without separators; null where the text is none, or it is too small. */
export function wholeNumber(text: string, least: number): number | null {
  const n = Number(text.replaceAll(/[,_\s]/g, ""));
  return text.trim() !== "" && Number.isSafeInteger(n) && n >= least ? n : null;
}
