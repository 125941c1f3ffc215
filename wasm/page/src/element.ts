// The base class of the page's parts. A part renders again when the model changes.

import { LitElement, html, nothing } from "lit";
import { property } from "lit/decorators.js";
import type { Problem } from "./guest.js";
import type { Model } from "./model.js";

export abstract class Part extends LitElement {
  @property({ attribute: false }) model!: Model;

  private readonly redraw = (): void => this.requestUpdate();

  override connectedCallback(): void {
    super.connectedCallback();
    this.model.addEventListener("change", this.redraw);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.model.removeEventListener("change", this.redraw);
  }

  /** trouble returns the first error at a path of the document or below it. */
  protected trouble(path: string): Problem | null {
    const here = (p: string): boolean => p === path || p.startsWith(`${path}/`);
    return this.wrong(here);
  }

  private wrong(here: (path: string) => boolean): Problem | null {
    const problems = this.model.faults.flatMap((f) => f.problems);
    return problems.find((p) => p.severity === "error" && here(p.path)) ?? null;
  }

  /** why renders the error of an input. The input refers to it by aria-describedby. */
  protected why(path: string): unknown {
    return this.say(path, this.trouble(path));
  }

  /** whyHere renders the error at exactly this path. */
  protected whyHere(path: string): unknown {
    return this.say(path, this.wrong((p) => p === path));
  }

  private say(path: string, p: Problem | null): unknown {
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


