// The list of problems, each with its fixes.

import { css, html, nothing } from "lit";
import { PageElement, type Subject, words } from "./element.js";
import type { Fault } from "./faults.js";
import type { Problem } from "./guest.js";
import { controls } from "./style.js";

const SIGN = { error: "✕", warning: "!", info: "i" } as const;

/** Editable is a model of a document that a fix changes. */
interface Editable extends Subject {
  edit(change: (d: never) => void): Promise<void>;
}

export class ProblemList extends PageElement<Editable> {
  static override styles = [
    controls,
    css`
      ul { list-style: none; margin: 0; padding: 0; display: grid; gap: 0.55rem; }
      li { display: grid; grid-template-columns: 1.25rem 1fr; gap: 0.1rem 0.45rem; padding: 0.55rem 0.6rem; border-radius: 8px; background: var(--field); border: 1px solid var(--line); font-size: 0.8rem; }
      li > div { min-width: 0; }
      .sign { width: 1.1rem; height: 1.1rem; border-radius: 50%; display: grid; place-items: center; font-size: 0.68rem; font-weight: 700; color: var(--panel); margin-top: 0.1rem; }
      .error .sign { background: var(--error); } .warning .sign { background: var(--warning); } .info .sign { background: var(--info); }
      .error { border-color: color-mix(in srgb, var(--error) 45%, var(--line)); }
      p { margin: 0 0 0.2rem; overflow-wrap: anywhere; line-height: 1.4; }
      .path { font: 0.72rem var(--mono); color: var(--muted); padding: 0; height: auto; border: 0; background: none; text-align: left; white-space: normal; overflow-wrap: anywhere; text-decoration: underline; text-decoration-color: var(--line); text-underline-offset: 3px; }
      .path:hover { color: var(--text); background: none; }
      .also { font-size: 0.72rem; color: var(--muted); margin: 0.15rem 0 0; }
      .fixes { display: flex; flex-wrap: wrap; gap: 0.35rem; margin-top: 0.4rem; }
      .fixes button { font-size: 0.76rem; height: auto; min-height: 1.65rem; white-space: normal; text-align: left; }
      .fine { display: flex; gap: 0.5rem; align-items: center; color: var(--ok); font-size: 0.85rem; padding: 0.3rem 0; margin: 0; }
    `,
  ];

  protected override render(): unknown {
    const { faults } = this.model;
    if (faults.length === 0) return html`<p class="fine"><span aria-hidden="true">✓</span> No problems found.</p>`;
    return html`<ul>${faults.map((f) => this.item(f))}</ul>`;
  }

  private item({ problems, fixes }: Fault<never>): unknown {
    const [first, ...others] = problems;
    return html`<li class=${first.severity}>
      <span class="sign" role="img" aria-label=${first.severity}>${SIGN[first.severity]}</span>
      <div>
        <p>${words(first)}</p>
        ${first.hint ? html`<p class="muted">→ ${first.hint}</p>` : nothing}
        ${this.pathLink(first, first.path ? `${first.code} at ${first.path}` : first.code)}
        ${others.length > 0 ? html`<p class="also">the same at ${others.map((p, i) => [i > 0 ? ", " : "", this.pathLink(p, p.path)])}</p>` : nothing}
        ${fixes.length > 0
          ? html`<div class="fixes">${fixes.map((f) => html`<button @click=${() => this.model.edit((d) => f.apply(d))}>${f.label}</button>`)}</div>`
          : nothing}
      </div>
    </li>`;
  }

  /** pathLink renders a button that focuses the input of a problem, or plain text if the problem has no path. */
  private pathLink({ path }: Problem, text: string): unknown {
    return path ? html`<button class="path" title="go to the input" @click=${() => this.go(path)}>${text}</button>` : html`<span class="path">${text}</span>`;
  }

  private go(path: string): void {
    this.dispatchEvent(new CustomEvent("go-to", { detail: path, bubbles: true, composed: true }));
  }
}

customElements.define("problem-list", ProblemList);
