// The base class of the page's elements. An element renders again when the model changes.

import { LitElement, html, nothing } from "lit";
import { property } from "lit/decorators.js";
import type { Fault } from "./faults.js";
import type { Problem } from "./guest.js";
import type { Model } from "./model.js";

/** Subject is a model of a document with problems. It sends the event "change" when its
 * state changes. */
export interface Subject extends EventTarget {
  readonly faults: readonly Fault<never>[];
  readonly replaced: number; // counts replacements of the document by another one
}

export abstract class PageElement<M extends Subject = Model> extends LitElement {
  @property({ attribute: false }) model!: M;

  private readonly redraw = (): void => this.requestUpdate();

  override connectedCallback(): void {
    super.connectedCallback();
    this.model.addEventListener("change", this.redraw);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.model.removeEventListener("change", this.redraw);
  }

  /** errorAt returns the first error at a path of the document or, unless exact, below it. */
  protected errorAt(path: string, exact = false): Problem | null {
    const here = (p: string): boolean => p === path || (!exact && p.startsWith(`${path}/`));
    const problems = this.model.faults.flatMap((f) => f.problems);
    return problems.find((p) => p.severity === "error" && here(p.path)) ?? null;
  }

  /** why renders the error that errorAt returns. The input refers to it by aria-describedby. */
  protected why(path: string, exact = false): unknown {
    const p = this.errorAt(path, exact);
    return p ? html`<p class="why" id=${idOf(path)}>${words(p)}</p>` : nothing;
  }
}

/** words returns the message of a problem without its path. */
export function words(p: Problem): string {
  return p.message.replace(`${p.path}: `, "");
}

/** idOf returns the element id of the message at a path. */
export function idOf(path: string): string {
  return `why${path.replaceAll(/[^\w]/g, "-")}`;
}
