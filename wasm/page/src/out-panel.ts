// The export panel shows the layout as JAX code, Go code, a JSON document or a text table.

import { css, html } from "lit";
import { state } from "lit/decorators.js";
import { compose, text } from "./draft.js";
import { PageElement } from "./element.js";
import { goCode } from "./go-code.js";
import { jaxCode } from "./jax-code.js";
import { pretty } from "./json.js";
import type { Model } from "./model.js";
import { copy, save } from "./save.js";
import { controls } from "./style.js";

interface Tab {
  key: string;
  title: string;
  file: string;
  content(model: Model): string;
}

const TABS: Tab[] = [
  { key: "jax", title: "JAX", file: "load.py", content: ({ draft }) => jaxCode(draft) },
  { key: "go", title: "Go", file: "main.go", content: ({ draft, reply }) => goCode(draft, reply.document ?? text(draft)) },
  { key: "json", title: "JSON", file: "layout.json", content: ({ draft }) => `${pretty(compose(draft))}\n` },
  { key: "text", title: "Text table", file: "layout.txt", content: ({ reply }) => reply.text ?? reply.error?.message ?? "" },
];

export class OutPanel extends PageElement {
  @state() private copied = false;

  static override styles = [
    controls,
    css`
      .head { display: flex; flex-wrap: wrap; gap: 0.4rem 0.9rem; align-items: center; justify-content: space-between; margin-bottom: 0.6rem; }
      [role="tablist"] { display: flex; gap: 0.15rem; background: var(--field); border: 1px solid var(--line); border-radius: 8px; padding: 0.15rem; }
      [role="tab"] { border: 0; background: none; color: var(--muted); height: 1.6rem; }
      [role="tab"][aria-selected="true"] { background: var(--panel); color: var(--text); font-weight: 600; box-shadow: 0 1px 2px rgb(0 0 0 / 0.14); }
      pre { margin: 0; padding: 0.8rem 0.95rem; background: var(--field); border: 1px solid var(--line); border-radius: 9px; overflow: auto; max-height: 32rem; font: 12px/1.55 var(--mono); tab-size: 4; }
    `,
  ];

  private get tab(): Tab {
    return TABS.find((t) => t.key === this.model.look.tab)!;
  }

  private get shown(): string {
    return this.tab.content(this.model);
  }

  protected override render(): unknown {
    const { tab } = this.model.look;
    return html`<div class="head">
        <div role="tablist" aria-label="export" @keydown=${this.onKey}>
          ${TABS.map((t) => html`<button role="tab" id="tab-${t.key}" aria-controls="shown" aria-selected=${t.key === tab} tabindex=${t.key === tab ? 0 : -1} @click=${() => this.model.see({ tab: t.key })}>${t.title}</button>`)}
        </div>
        <div class="row"><button @click=${this.copy}>${this.copied ? "copied ✓" : "copy"}</button><button @click=${this.save}>save</button></div>
      </div>
      <pre id="shown" role="tabpanel" aria-labelledby="tab-${tab}" tabindex="0">${this.shown}</pre>`;
  }

  private onKey = (e: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!step) return;
    const next = TABS[(TABS.indexOf(this.tab) + step + TABS.length) % TABS.length]!;
    this.model.see({ tab: next.key });
    void this.updateComplete.then(() => this.renderRoot.querySelector<HTMLElement>(`#tab-${next.key}`)?.focus());
    e.preventDefault();
  };

  private copy = async (): Promise<void> => {
    this.copied = await copy(this.shown);
    // If the browser refuses the clipboard, the text is selected, so that the user can copy it with the keyboard.
    if (!this.copied) getSelection()?.selectAllChildren(this.renderRoot.querySelector("pre")!);
    setTimeout(() => (this.copied = false), 1600);
  };

  private save = (): void => {
    save(this.tab.file, new Blob([this.shown], { type: "text/plain" }));
  };
}

customElements.define("out-panel", OutPanel);
