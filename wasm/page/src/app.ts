// The base class of the contents of a tab: a bar of tools, a column of forms, and panels.

import { type LitElement, css, html, nothing } from "lit";
import { property, state } from "lit/decorators.js";
import { PageElement, type Subject } from "./element.js";
import { controls } from "./style.js";

export abstract class App<M extends Subject> extends PageElement<M> {
  @property({ attribute: false }) source = ""; // HTML of the page itself, to save it with a document
  @state() notice = "";
  @state() private narrow = NARROW.matches;
  @state() private unfolded: ReadonlySet<string> = new Set(); // open editors in a narrow window

  static override styles = [
    controls,
    css`
      .tool-bar { display: flex; flex-wrap: wrap; align-items: center; gap: 0.4rem 0.9rem; padding: 0.5rem 1.25rem; background: var(--panel); border-bottom: 1px solid var(--line); }
      .sum { font-size: 0.82rem; color: var(--muted); flex: 1 1 12rem; min-width: 0; }
      .sum b { color: var(--text); font-weight: 600; }
      .tools { display: flex; gap: 0.4rem; align-items: center; flex-wrap: wrap; }
      .tools select { width: auto; max-width: 12rem; }
      .tools :is(button, select) { font-size: 0.8125rem; }
      .intro { display: flex; flex-wrap: wrap; gap: 0.2rem 1.5rem; justify-content: space-between; max-width: 110rem; margin: 0 auto; padding: 0.85rem 1.25rem 0; font-size: 0.85rem; }
      .intro p { margin: 0; max-width: 62rem; }
      .intro .from { color: var(--muted); font-size: 0.78rem; align-self: end; }
      details > summary { display: none; }
      .columns { display: grid; grid-template-columns: 21rem minmax(0, 1fr) 18rem; gap: 1rem; padding: 1rem 1.25rem 2rem; align-items: start; max-width: 110rem; margin: 0 auto; }
      .center { grid-column: 2; grid-row: 1; }
      .side { grid-column: 3; grid-row: 1; }
      .panel { background: var(--panel); border: 1px solid var(--line); border-radius: 12px; padding: 0.95rem 1.05rem; min-width: 0; }
      .stack { display: grid; gap: 1rem; min-width: 0; }
      .panel > h2 { margin-bottom: 0.6rem; }
      :host { background: var(--page); min-height: 100vh; }
      .notice { display: flex; gap: 0.5rem; align-items: center; justify-content: space-between; margin: 0.8rem 1.25rem 0; padding: 0.4rem 0.4rem 0.4rem 0.9rem; border-radius: 9px; background: color-mix(in srgb, var(--accent) 12%, var(--panel)); border: 1px solid color-mix(in srgb, var(--accent) 35%, var(--line)); font-size: 0.83rem; overflow-wrap: anywhere; }
      .working:empty { display: none; }
      .working { position: fixed; left: 50%; bottom: 1.2rem; transform: translateX(-50%); display: flex; gap: 0.8rem; align-items: center; padding: 0.5rem 0.5rem 0.5rem 1rem; border-radius: 10px; border: 1px solid var(--edge); background: var(--panel); box-shadow: 0 8px 28px rgb(0 0 0 / 0.22); font-size: 0.83rem; z-index: 3; max-width: calc(100vw - 1.5rem); }
      .old > section { opacity: 0.55; }
      @media (max-width: 1180px) {
        .columns { grid-template: auto 1fr / 19rem minmax(0, 1fr); }
        .side { grid-column: 2; grid-row: 1; }
        .center { grid-row: 2; }
        .inputs { grid-row: 1 / span 2; }
      }
      @media (max-width: 820px) {
        .columns { grid-template: none / minmax(0, 1fr); padding: 0.75rem; gap: 0.75rem; }
        .tool-bar { padding: 0.5rem 0.75rem; }
        .intro { padding: 0.7rem 0.75rem 0; }
        .side, .center, .inputs { grid-column: 1; grid-row: auto; }
        .inputs { gap: 0.5rem; }
        .panel { padding: 0.8rem; }
        .inputs .panel { padding: 0; }
        .inputs details > :not(summary) { padding: 0 0.8rem 0.8rem; }
        details > summary { display: flex; align-items: center; gap: 0.6rem; padding: 0.75rem 0.8rem; cursor: pointer; border-radius: 12px; list-style: none; }
        summary::-webkit-details-marker { display: none; }
        summary::after { content: "▾"; color: var(--muted); margin-left: auto; }
        [open] > summary::after { content: "▴"; }
        summary .brief { color: var(--muted); font-size: 0.78rem; min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
        .tools { gap: 0.3rem; }
        .tools :is(button, select) { font-size: 0.78rem; padding: 0 0.4rem; max-width: 6.4rem; }
      }
      @media print {
        .columns { padding: 0; border: 0; }
        .columns { display: flex; flex-direction: column; align-items: stretch; gap: 0; }
        .stack { display: block; }
        .inputs, .tools, .intro, .working { display: none; }
        .tool-bar { padding: 0; border: 0; }
        .panel { break-inside: avoid; margin: 1rem 0 0; }
      }
    `,
  ];

  /** forms lists the names of the elements that hold the inputs. */
  protected abstract readonly forms: string;

  /** connectedCallback listens to the window's width. The page never removes an app. */
  override connectedCallback(): void {
    super.connectedCallback();
    NARROW.addEventListener("change", () => (this.narrow = NARROW.matches));
  }

  /** noticed renders the last message. */
  protected noticed(): unknown {
    return html`<div role="status">${this.notice ? html`<p class="notice"><span>${this.notice}</span><button class="quiet" aria-label="dismiss" @click=${() => (this.notice = "")}>×</button></p>` : nothing}</div>`;
  }

  /** opener renders the button that opens a file. The page decides which tab the file belongs to. */
  protected opener(accepted: string): unknown {
    const input = (): HTMLInputElement => this.renderRoot.querySelector<HTMLInputElement>("input[type=file]")!;
    const take = (): void => {
      const [file] = input().files!;
      if (file) this.dispatchEvent(new CustomEvent("open-file", { detail: file, bubbles: true, composed: true }));
      input().value = "";
    };
    return html`<button @click=${() => input().click()}>Open file…</button>
      <input type="file" hidden accept=${accepted} aria-label="file to open" @change=${take} />`;
  }

  /** editor renders a form. In a narrow window the form is folded to one line. */
  protected editor(name: string, title: string, brief: string, form: unknown): unknown {
    const toggle = (e: Event): void => {
      if (this.narrow) this.unfold(name, (e.target as HTMLDetailsElement).open);
    };
    return html`<section class="panel" aria-label=${name}><details ?open=${!this.narrow || this.unfolded.has(name)} @toggle=${toggle}>
      <summary><h2>${title}</h2><span class="brief">${brief}</span></summary>${form}</details></section>`;
  }

  private unfold(name: string, open: boolean): void {
    const unfolded = new Set(this.unfolded);
    if (open) unfolded.add(name);
    else unfolded.delete(name);
    this.unfolded = unfolded;
  }

  /** goTo focuses the input for a path of the document, or for the nearest path above it. */
  protected async goTo(path: string): Promise<void> {
    const forms = [...this.renderRoot.querySelectorAll<LitElement>(this.forms)];
    const inputs = forms.flatMap((f) => [...f.renderRoot.querySelectorAll<HTMLElement>("[data-path]")]);
    for (let p = path; p !== ""; p = p.slice(0, p.lastIndexOf("/"))) {
      const found = inputs.find((i) => i.dataset["path"] === p) ?? inputs.find((i) => i.dataset["path"]!.startsWith(`${p}/`));
      if (!found) continue;
      const form = (found.getRootNode() as ShadowRoot).host;
      this.unfold(form.closest("section")!.getAttribute("aria-label")!, true);
      await this.updateComplete;
      for (let e = found.closest("details"); e; e = e.parentElement?.closest("details") ?? null) e.open = true;
      found.focus();
      found.scrollIntoView({ block: "center" });
      return;
    }
  }
}

/** NARROW matches windows in which the page has one column. */
const NARROW = matchMedia("(max-width: 820px)");
