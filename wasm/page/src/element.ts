// The base of the page's parts: they look at the model, and are drawn anew when it changes.

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

  /** trouble gives what is wrong at a place of the document, or below it. */
  protected trouble(path: string): Problem | null {
    const here = (p: string): boolean => p === path || p.startsWith(`${path}/`);
    return this.wrong(here);
  }

  private wrong(here: (path: string) => boolean): Problem | null {
    const problems = this.model.faults.flatMap((f) => f.problems);
    return problems.find((p) => p.severity === "error" && here(p.path)) ?? null;
  }

  /** why shows the trouble of an input below it; the input names it by aria-describedby. */
  protected why(path: string): unknown {
    return this.say(path, this.trouble(path));
  }

  /** whyHere shows the trouble of a place itself, and not of what is below it. */
  protected whyHere(path: string): unknown {
    return this.say(path, this.wrong((p) => p === path));
  }

  private say(path: string, p: Problem | null): unknown {
    return p ? html`<p class="why" id=${idOf(path)}>${words(p)}</p>` : nothing;
  }
}

/** words gives the message of a problem without its place. */
export function words(p: Problem): string {
  return p.message.replace(`${p.path}: `, "");
}

/** idOf gives the id of the message at a place. */
export function idOf(path: string): string {
  return `why${path.replaceAll(/[^\w]/g, "-")}`;
}

/** pointer joins parts as a JSON Pointer. */
export function pointer(...parts: (string | number)[]): string {
  return parts.map((p) => `/${String(p).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** steps takes a JSON Pointer apart. */
export function steps(path: string): string[] {
  return path.split("/").slice(1).map((s) => s.replaceAll("~1", "/").replaceAll("~0", "~"));
}
