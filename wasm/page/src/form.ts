// The base class of the forms. Unusable text stays in its input, with the reason below it.

import { type PropertyValues, css, html, nothing } from "lit";
import { state } from "lit/decorators.js";
import { keyed } from "lit/directives/keyed.js";
import { PageElement, type Subject, idOf } from "./element.js";
import type { Model } from "./model.js";
import { controls } from "./style.js";
import { TERMS, type Term } from "./term-help.js";

/** formStyles hides the title of a form in a narrow window, where the page itself shows it. */
export const formStyles = [controls, css`@media (max-width: 820px) { h2 { display: none; } }`];

export abstract class Form<M extends Subject = Model> extends PageElement<M> {
  @state() private refused: ReadonlyMap<string, string> = new Map(); // by the path of the input
  private replaced = 0;

  /** inputs renders the form. */
  protected abstract inputs(): unknown;

  /** When another layout replaces the draft, the inputs are new and old messages are dropped. */
  protected override willUpdate(changed: PropertyValues): void {
    super.willUpdate(changed);
    if (this.replaced === this.model.replaced) return;
    this.replaced = this.model.replaced;
    this.refused = new Map();
  }

  protected override render(): unknown {
    return keyed(this.model.replaced, this.inputs());
  }

  /** refuse shows why the text at a path is unusable; "" removes the message. */
  protected refuse(path: string, why: string): void {
    if ((this.refused.get(path) ?? "") === why) return;
    const refused = new Map(this.refused);
    if (why) refused.set(path, why);
    else refused.delete(path);
    this.refused = refused;
  }

  /** take uses typed text. If use throws, the reason is shown at the path. */
  protected take(path: string, use: () => void): void {
    try {
      use();
      this.refuse(path, "");
    } catch (cause) {
      this.refuse(path, (cause as Error).message);
    }
  }

  /** isRefused reports whether the input at a path holds unusable text. */
  protected isRefused(path: string): boolean {
    return this.refused.has(path);
  }

  /** bad reports whether the input at a path holds unusable text, or the layout has an error there. */
  protected bad(path: string): boolean {
    return this.isRefused(path) || this.errorAt(path) !== null;
  }

  /** reason renders why the text at a path is unusable, or else the layout's error there. */
  protected reason(path: string): unknown {
    const refused = this.refused.get(path);
    return refused === undefined ? this.why(path) : html`<p class="why" id=${idOf(path)} role="alert">${refused}</p>`;
  }
}

/** typed returns the text of the input, or the option of the select, that an event comes from. */
export function typed(e: Event): string {
  return (e.target as HTMLInputElement | HTMLSelectElement).value.trim();
}

/** caption labels an input and explains the label if it is a term. */
export function caption(id: string, name: string): unknown {
  return html`<div class="cap"><label for=${id}>${name}</label>${name in TERMS ? html`<term-help term=${name as Term}></term-help>` : nothing}</div>`;
}

/** integer parses a whole number. It throws for another text or a number below least. The message ends
 * with still, which names the value that stays in effect. */
export function integer(text: string, least: number, still = ""): number {
  const n = wholeNumber(text, least);
  if (n === null) throw new Error(`expected a whole number${least < 0 ? "" : ` from ${least}`}, such as 64 or 10k${still}`);
  return n;
}

/** wholeNumber parses a whole number with optional separators, or with a decimal suffix: 10M is 10,000,000. It
 * returns null for another text or a number below least. */
export function wholeNumber(text: string, least: number): number | null {
  const [, digits = "", suffix = ""] = /^(.*?)([kmg]?)$/is.exec(text.replaceAll(/[,_\s]/g, ""))!;
  const n = digits === "" ? NaN : Number((Number(digits) * 1000 ** " kmg".indexOf(suffix.toLowerCase() || " ")).toPrecision(15));
  return Number.isSafeInteger(n) && n >= least ? n : null;
}
