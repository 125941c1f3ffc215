// The root element of the page: its title, and a tab for each app. The apps are its children, in slots.

import { LitElement, css, html, nothing } from "lit";
import { property, state } from "lit/decorators.js";
import { typed } from "./form.js";
import type { Tab } from "./share.js";
import { controls } from "./style.js";
import { nextTab, tabStyles } from "./tablist.js";
import { THEMES, type Theme, setTheme, theme } from "./theme.js";

const TABS: [Tab, string][] = [["layout", "Layout"], ["strategy", "Strategy"]];

export class PageTabs extends LitElement {
  @property() tab: Tab = "layout";
  @state() private dropping = false;

  static override styles = [
    controls,
    tabStyles,
    css`
      :host { background: var(--page); min-height: 100vh; }
      header { display: flex; flex-wrap: wrap; align-items: center; gap: 0.4rem 1.1rem; padding: 0.5rem 1.25rem; background: var(--panel); border-bottom: 1px solid var(--line); }
      h1 { font-size: 1rem; font-weight: 700; letter-spacing: -0.015em; margin: 0; display: flex; align-items: center; gap: 0.5rem; }
      h1 svg { width: 1.25rem; height: 1.25rem; }
      header select { width: auto; margin-left: auto; }
      [role="tab"] { padding: 0 0.9rem; }
      [role="tabpanel"][hidden] { display: none; }
      .drop { position: fixed; inset: 0.8rem; display: grid; place-items: center; border: 3px dashed var(--accent); border-radius: 16px; background: color-mix(in srgb, var(--panel) 88%, transparent); font-size: 1.15rem; font-weight: 600; text-align: center; pointer-events: none; z-index: 2; padding: 1rem; }
      @media (max-width: 820px) { header { padding: 0.5rem 0.75rem; gap: 0.4rem 0.7rem; } [role="tab"] { padding: 0 0.7rem; } }
      @media print { header { padding: 0 0 0.3rem; border: 0; } header select { display: none; } }
    `,
  ];

  protected override render(): unknown {
    return html`<header><h1>${LOGO}meshfeed</h1>
        <div role="tablist" aria-label="meshfeed" @keydown=${this.onKey}>
          ${TABS.map(([tab, title]) => html`<button role="tab" id="tab-${tab}" aria-controls="panel-${tab}" aria-selected=${tab === this.tab} tabindex=${tab === this.tab ? 0 : -1} @click=${() => this.select(tab)}>${title}</button>`)}
        </div>
        <select aria-label="colors" @change=${(e: Event) => setTheme(typed(e) as Theme)}>
          ${THEMES.map((t) => html`<option ?selected=${t === theme()}>${t}</option>`)}</select></header>
      <main>${TABS.map(([tab]) => html`<div role="tabpanel" id="panel-${tab}" aria-labelledby="tab-${tab}" ?hidden=${tab !== this.tab}><slot name=${tab}></slot></div>`)}</main>
      ${this.dropping ? html`<div class="drop" aria-hidden="true">Drop an .arrow or .parquet file, a layout or a strategy: it stays on this machine.</div>` : nothing}`;
  }

  /** connectedCallback listens to dragged files. The page never removes this element. */
  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("dragover", (e) => {
      if (!e.dataTransfer?.types.includes("Files")) return;
      e.preventDefault();
      this.dropping = true;
    });
    addEventListener("dragleave", (e) => (this.dropping &&= e.relatedTarget !== null));
    addEventListener("drop", (e) => {
      e.preventDefault();
      this.dropping = false;
      const file = e.dataTransfer?.files[0];
      if (file) this.dispatchEvent(new CustomEvent("open-file", { detail: file }));
    });
  }

  private select(tab: Tab): void {
    this.dispatchEvent(new CustomEvent("select-tab", { detail: tab }));
  }

  private onKey = (e: KeyboardEvent): void => {
    const next = nextTab(e, TABS.map(([tab]) => tab), this.tab);
    if (next === null) return;
    this.select(next);
    this.renderRoot.querySelector<HTMLElement>(`#tab-${next}`)!.focus();
  };
}

const LOGO = html`<svg viewBox="0 0 20 20" aria-hidden="true"><rect width="9" height="9" rx="2" fill="#4c5fd0" /><rect x="11" width="9" height="9" rx="2" fill="#1f8fb0" /><rect y="11" width="9" height="9" rx="2" fill="#36a36d" /><rect x="11" y="11" width="9" height="9" rx="2" fill="#cdb93c" /></svg>`;

customElements.define("page-tabs", PageTabs);
