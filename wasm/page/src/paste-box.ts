// The dialog into which a user pastes a layout, or JAX code that defines a mesh and shardings.

import { LitElement, css, html, nothing } from "lit";
import { property, query, state } from "lit/decorators.js";
import { failureText } from "./guest.js";
import type { Model } from "./model.js";
import { ACCEPTED, apply, paste } from "./paste.js";
import { controls } from "./style.js";

export class PasteBox extends LitElement {
  @property({ attribute: false }) model!: Model;
  @state() private why = "";
  @query("dialog") private dialog!: HTMLDialogElement;
  @query("textarea") private area!: HTMLTextAreaElement;

  static override styles = [
    controls,
    css`
      dialog { width: min(42rem, calc(100vw - 2rem)); border: 1px solid var(--line); border-radius: 14px; background: var(--panel); color: var(--text); padding: 1.2rem; box-shadow: 0 18px 50px rgb(0 0 0 / 0.28); }
      dialog::backdrop { background: rgb(10 15 22 / 0.45); }
      textarea { width: 100%; min-height: 11rem; resize: vertical; background: var(--field); border: 1px solid var(--line); border-radius: 8px; padding: 0.7rem; font: 0.8rem/1.5 var(--mono); margin: 0.6rem 0; }
      p { margin: 0.3rem 0; font-size: 0.8rem; }
      .row { justify-content: flex-end; margin-top: 0.6rem; }
    `,
  ];

  /** open shows the dialog. */
  open(): void {
    this.why = "";
    this.dialog.showModal();
    this.area.select();
  }

  protected override render(): unknown {
    return html`<dialog aria-labelledby="title">
      <h2 id="title">Paste a layout or a sharding</h2>
      <p class="muted">Accepted: ${ACCEPTED}.</p>
      <textarea aria-label="text to read" spellcheck="false" aria-describedby="refused" placeholder="mesh = jax.make_mesh((4, 2), ('data', 'model'))&#10;image = NamedSharding(mesh, P('data', None, 'model'))"
        @keydown=${(e: KeyboardEvent) => e.key === "Enter" && (e.ctrlKey || e.metaKey) && this.use()}></textarea>
      ${this.why ? html`<p class="why" id="refused" role="alert">${this.why}</p>` : nothing}
      <div class="row"><button @click=${() => this.dialog.close()}>Cancel</button><button class="main" @click=${this.use}>Use it</button></div>
    </dialog>`;
  }

  private use = async (): Promise<void> => {
    this.why = await this.read(this.area.value.trim());
    if (!this.why) this.dialog.close();
  };

  /** read opens the text as a layout, or applies the mesh and shardings in it to the current layout. It
   * returns an error message, or "". */
  private async read(text: string): Promise<string> {
    try {
      const found = isJson(text) ? null : paste(text);
      if (!found && text.startsWith("{")) {
        const error = await this.model.load(text);
        return error ? failureText(error) : "";
      }
      if (!found) return `The text contains no layout, mesh or sharding. Accepted: ${ACCEPTED}.`;
      await this.model.edit((d) => apply(found, d, this.model.look.array));
      return "";
    } catch (cause) {
      return cause instanceof Error ? cause.message : String(cause);
    }
  }
}

function isJson(text: string): boolean {
  try {
    return typeof JSON.parse(text) === "object";
  } catch {
    return false;
  }
}

customElements.define("paste-box", PasteBox);
