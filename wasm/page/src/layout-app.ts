// The page as a whole.

import { type LitElement, css, html, nothing } from "lit";
import { property, query, state } from "lit/decorators.js";
import "./array-form.js";
import "./batch-form.js";
import { deviceCount, processCount, text } from "./draft.js";
import { Part } from "./element.js";
import { examples } from "./examples.js";
import { take } from "./file-drop.js";
import "./mesh-form.js";
import "./out-panel.js";
import "./paste-box.js";
import type { PasteBox } from "./paste-box.js";
import "./problem-list.js";
import "./reads-view.js";
import { copy, picture, png, save } from "./save.js";
import "./shard-view.js";
import type { ShardView } from "./shard-view.js";
import { fragment, withLayout } from "./share.js";
import { controls } from "./style.js";
import "./totals-view.js";
import { THEMES, setTheme, theme } from "./theme.js";
import { count } from "./units.js";

export class LayoutApp extends Part {
  static override styles = [
    controls,
    css`
      header { display: flex; flex-wrap: wrap; align-items: center; gap: 0.4rem 0.9rem; padding: 0.65rem 1.25rem; background: var(--panel); border-bottom: 1px solid var(--line); }
      h1 { font-size: 1rem; font-weight: 700; letter-spacing: -0.015em; margin: 0; display: flex; align-items: center; gap: 0.5rem; }
      h1 svg { width: 1.25rem; height: 1.25rem; }
      .sum { font-size: 0.82rem; color: var(--muted); flex: 1 1 12rem; min-width: 0; }
      .sum b { color: var(--text); font-weight: 600; }
      .tools { display: flex; gap: 0.4rem; align-items: center; flex-wrap: wrap; }
      .tools select { width: auto; max-width: 12rem; }
      .tools :is(button, select) { font-size: 0.8125rem; }
      main { display: grid; grid-template-columns: 21rem minmax(0, 1fr) 18rem; gap: 1rem; padding: 1rem 1.25rem 2rem; align-items: start; max-width: 110rem; margin: 0 auto; }
      .panel { background: var(--panel); border: 1px solid var(--line); border-radius: 12px; padding: 0.95rem 1.05rem; min-width: 0; }
      .stack { display: grid; gap: 1rem; min-width: 0; }
      .panel > h2 { margin-bottom: 0.6rem; }
      :host { background: var(--page); min-height: 100vh; }
      .notice { display: flex; gap: 0.5rem; align-items: center; justify-content: space-between; margin: 0.8rem 1.25rem 0; padding: 0.4rem 0.4rem 0.4rem 0.9rem; border-radius: 9px; background: color-mix(in srgb, var(--accent) 12%, var(--panel)); border: 1px solid color-mix(in srgb, var(--accent) 35%, var(--line)); font-size: 0.83rem; overflow-wrap: anywhere; }
      .drop { position: fixed; inset: 0.8rem; display: grid; place-items: center; border: 3px dashed var(--accent); border-radius: 16px; background: color-mix(in srgb, var(--panel) 88%, transparent); font-size: 1.15rem; font-weight: 600; text-align: center; pointer-events: none; z-index: 2; padding: 1rem; }
      @media (max-width: 1180px) {
        main { grid-template-columns: 19rem minmax(0, 1fr); }
        .side { grid-column: 2; grid-row: 1; }
        .inputs { grid-row: 1 / span 2; }
      }
      @media (max-width: 820px) {
        main { grid-template-columns: minmax(0, 1fr); padding: 0.75rem; gap: 0.75rem; }
        header { padding: 0.6rem 0.75rem; }
        .side, .inputs { grid-column: 1; grid-row: auto; }
        .side { order: 0; } .center { order: 1; } .inputs { order: 2; }
        .panel { padding: 0.8rem; }
        .tools { gap: 0.3rem; }
        .tools :is(button, select) { font-size: 0.78rem; padding: 0 0.4rem; max-width: 6.4rem; }
      }
      @media print {
        header, main { padding: 0; border: 0; }
        main { display: flex; flex-direction: column; align-items: stretch; gap: 0; }
        .side { order: -1; }
        .stack { display: block; }
        .inputs, .tools { display: none; }
        .panel { break-inside: avoid; margin: 1rem 0 0; }
      }
    `,
  ];

  @property({ attribute: false }) source = ""; // of the page itself, to save it with a layout inside
  @state() notice = "";
  @state() private dropping = false;
  private taken = Promise.resolve();
  @query("paste-box") private box!: PasteBox;
  @query("shard-view") private view!: ShardView;
  @query("input[type=file]") private files!: HTMLInputElement;
  @query("mesh-form") private mesh!: LitElement;
  @query("array-form") private arrays!: LitElement;
  @query("batch-form") private batch!: LitElement;

  protected override render(): unknown {
    return html`<header>
        <h1>${LOGO}meshfeed layout</h1>
        <div class="sum">${this.sum()}</div>
        <div class="tools">${this.tools()}</div>
      </header>
      <div role="status">${this.notice ? html`<p class="notice"><span>${this.notice}</span><button class="quiet" aria-label="dismiss" @click=${() => (this.notice = "")}>×</button></p>` : nothing}</div>
      <main @go-to=${(e: CustomEvent<string>) => this.goTo(e.detail)}>
        <div class="inputs stack">
          <section class="panel" aria-label="mesh"><mesh-form .model=${this.model}></mesh-form></section>
          <section class="panel" aria-label="arrays"><array-form .model=${this.model}></array-form></section>
          <section class="panel" aria-label="batch and loader"><batch-form .model=${this.model}></batch-form></section>
        </div>
        <div class="center stack">
          <section class="panel" aria-label="picture"><shard-view .model=${this.model}></shard-view></section>
          <section class="panel" aria-label="data"><reads-view .model=${this.model}></reads-view></section>
          <section class="panel" aria-label="take along"><out-panel .model=${this.model}></out-panel></section>
        </div>
        <div class="side stack">
          <section class="panel" aria-label="problems"><h2>Problems</h2><problem-list .model=${this.model}></problem-list></section>
          ${this.model.reply.report ? html`<section class="panel" aria-label="figures"><h2>Figures</h2><totals-view .model=${this.model}></totals-view></section>` : nothing}
        </div>
      </main>
      <paste-box .model=${this.model}></paste-box>
      ${this.dropping ? html`<div class="drop" aria-hidden="true">Drop an .arrow or .parquet file, or a layout: it stays on this machine.</div>` : nothing}`;
  }

  private tools(): unknown {
    const local = location.protocol === "file:";
    return html`${this.examples()}
      <button ?disabled=${!this.model.undoable} title="take the last change back: Ctrl-Z" @click=${() => this.model.undo()}>Undo</button>
      <button @click=${() => this.box.open()}>Paste…</button>
      <button @click=${() => this.files.click()}>Open file…</button>
      <input type="file" hidden accept=".arrow,.feather,.parquet,.json" aria-label="file to open" @change=${(e: Event) => this.take((e.target as HTMLInputElement).files)} />
      <select aria-label="save the picture" @change=${this.savePicture}><option value="">Picture…</option><option value="svg">as SVG</option><option value="png">as PNG</option></select>
      <button class="main" @click=${this.share} title=${local ? "save this page with the layout inside" : "copy a link that holds the layout"}>${local ? "Save page" : "Share link"}</button>
      <select aria-label="colors" @change=${(e: Event) => setTheme(THEMES[(e.target as HTMLSelectElement).selectedIndex]!)}>
        ${THEMES.map((t) => html`<option ?selected=${t === theme()}>${t}</option>`)}</select>`;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("dragover", this.onDrag);
    addEventListener("dragleave", this.onLeave);
    addEventListener("drop", this.onDrop);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("dragover", this.onDrag);
    removeEventListener("dragleave", this.onLeave);
    removeEventListener("drop", this.onDrop);
  }

  private onDrag = (e: DragEvent): void => {
    if (!e.dataTransfer?.types.includes("Files")) return;
    e.preventDefault();
    this.dropping = true;
  };

  private onLeave = (e: DragEvent): void => {
    if (!e.relatedTarget) this.dropping = false;
  };

  private onDrop = (e: DragEvent): void => {
    e.preventDefault();
    this.dropping = false;
    this.take(e.dataTransfer?.files ?? null);
  };

  /** take opens a file: one after the other, so that the last one is what stays. */
  private take(files: FileList | null): void {
    const file = files?.[0];
    if (!file) return;
    this.taken = this.taken.then(async () => {
      this.notice = await take(file, this.model).catch((cause: Error) => `${file.name}: ${cause.message}`);
      this.files.value = "";
    });
  }

  private get document(): string {
    return this.model.reply.document ?? text(this.model.draft);
  }

  private share = async (): Promise<void> => {
    if (location.protocol === "file:") {
      save("layout.html", new Blob([withLayout(this.source, this.document)], { type: "text/html" }));
      this.notice = "The page is saved with this layout inside. Send the file: it works by itself, without a network.";
      return;
    }
    history.replaceState(null, "", await fragment(this.document));
    this.notice = (await copy(location.href)) ? "The link is copied. It holds the layout behind the #, which no server gets to see." : "The link stands in the address bar.";
  };

  private savePicture = async (e: Event): Promise<void> => {
    const select = e.target as HTMLSelectElement;
    const kind = select.value;
    select.value = "";
    const drawings = this.view.drawings;
    if (!kind || drawings.length === 0) return;
    const style = getComputedStyle(this);
    const svg = picture(drawings, this.view.caption, style.getPropertyValue("background-color"), style.color);
    const name = `${this.model.look.array.replaceAll(/[^\w.-]+/g, "-")}.${kind}`;
    save(name, kind === "svg" ? new Blob([svg], { type: "image/svg+xml" }) : await png(svg));
  };

  private sum(): unknown {
    const { draft, reply } = this.model;
    const axes = draft.axes.map((a) => `${a.name} ${a.size.toLocaleString("en-US")}`).join(" × ") || "no axes";
    const problems = reply.report?.problems ?? [];
    const errors = reply.error ? 1 : problems.filter((p) => p.severity === "error").length;
    const state = errors > 0 ? html`<b style="color:var(--error)">${count(errors, "error")}</b>` : html`<b style="color:var(--ok)">loads</b>`;
    return html`<b>${axes}</b> · ${count(deviceCount(draft), "device")} · ${count(processCount(draft), "process", "processes")} · ${state}`;
  }

  private examples(): unknown {
    const list = examples();
    if (list.length === 0) return nothing;
    return html`<select aria-label="examples" @change=${(e: Event) => {
      const select = e.target as HTMLSelectElement;
      const found = list[Number(select.value)];
      select.value = "";
      if (found) this.model.load(found.text);
      this.notice = "";
    }}><option value="">examples…</option>${list.map((x, i) => html`<option value=${i}>${x.title}</option>`)}</select>`;
  }

  /** goTo puts the focus on the input of a place, or of the nearest place above it. */
  private goTo(path: string): void {
    const inputs = [this.mesh, this.arrays, this.batch].flatMap((f) => [...f.renderRoot.querySelectorAll<HTMLElement>("[data-path]")]);
    for (let p = path; p !== ""; p = p.slice(0, p.lastIndexOf("/"))) {
      const found = inputs.find((i) => i.dataset["path"] === p) ?? inputs.find((i) => i.dataset["path"]!.startsWith(`${p}/`));
      if (found) {
        found.focus();
        found.scrollIntoView({ block: "center" });
        return;
      }
    }
  }
}

const LOGO = html`<svg viewBox="0 0 20 20" aria-hidden="true"><rect width="9" height="9" rx="2" fill="#4c5fd0" /><rect x="11" width="9" height="9" rx="2" fill="#1f8fb0" /><rect y="11" width="9" height="9" rx="2" fill="#36a36d" /><rect x="11" y="11" width="9" height="9" rx="2" fill="#cdb93c" /></svg>`;

customElements.define("layout-app", LayoutApp);
