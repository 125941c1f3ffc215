// A panel that shows texts in tabs, to copy or to save.

import { css, html } from "lit";
import { state } from "lit/decorators.js";
import { PageElement, type Subject } from "./element.js";
import { copy, save } from "./save.js";
import { controls } from "./style.js";
import { nextTab, tabStyles } from "./tablist.js";

export interface TextTab<M> {
  key: string;
  title: string;
  file: string;
  content(model: M): string;
}

export abstract class TextPanel<M extends Subject> extends PageElement<M> {
  @state() private copied = false;

  protected abstract readonly tabs: readonly TextTab<M>[];
  protected abstract selected: string; // the key of the open tab

  static override styles = [
    controls,
    tabStyles,
    css`
      .head { display: flex; flex-wrap: wrap; gap: 0.4rem 0.9rem; align-items: center; justify-content: space-between; margin-bottom: 0.6rem; }
      pre { margin: 0; padding: 0.8rem 0.95rem; background: var(--field); border: 1px solid var(--line); border-radius: 9px; overflow: auto; max-height: 32rem; font: 12px/1.55 var(--mono); tab-size: 4; }
    `,
  ];

  private get tab(): TextTab<M> {
    return this.tabs.find((t) => t.key === this.selected)!;
  }

  private get shown(): string {
    return this.tab.content(this.model);
  }

  protected override render(): unknown {
    return html`<div class="head">
        <div role="tablist" aria-label="export" @keydown=${this.onKey}>
          ${this.tabs.map((t) => html`<button role="tab" id="tab-${t.key}" aria-controls="shown" aria-selected=${t.key === this.selected} tabindex=${t.key === this.selected ? 0 : -1} @click=${() => (this.selected = t.key)}>${t.title}</button>`)}
        </div>
        <div class="row"><button @click=${this.copy}>${this.copied ? "copied ✓" : "copy"}</button><button @click=${this.save}>save</button></div>
      </div>
      <pre id="shown" role="tabpanel" aria-labelledby="tab-${this.selected}" tabindex="0">${this.shown}</pre>`;
  }

  private onKey = (e: KeyboardEvent): void => {
    const next = nextTab(e, this.tabs.map((t) => t.key), this.selected);
    if (next === null) return;
    this.selected = next;
    void this.updateComplete.then(() => this.renderRoot.querySelector<HTMLElement>(`#tab-${next}`)?.focus());
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
