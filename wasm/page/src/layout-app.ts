// The root element of the page, which contains all forms and panels.

import { type LitElement, css, html, nothing } from "lit";
import { property, query, state } from "lit/decorators.js";
import "./array-form.js";
import "./batch-form.js";
import { EMPTY, axesText, batchRows, deviceCount, processCount, text } from "./draft.js";
import { PageElement } from "./element.js";
import { examples } from "./examples.js";
import { take } from "./file-drop.js";
import { typed } from "./form.js";
import { menu } from "./menu.js";
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
import { THEMES, type Theme, setTheme, theme } from "./theme.js";
import { count } from "./units.js";

export class LayoutApp extends PageElement {
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
      .intro { display: flex; flex-wrap: wrap; gap: 0.2rem 1.5rem; justify-content: space-between; max-width: 110rem; margin: 0 auto; padding: 0.85rem 1.25rem 0; font-size: 0.85rem; }
      .intro p { margin: 0; max-width: 62rem; }
      .intro .from { color: var(--muted); font-size: 0.78rem; align-self: end; }
      details > summary { display: none; }
      main { display: grid; grid-template-columns: 21rem minmax(0, 1fr) 18rem; gap: 1rem; padding: 1rem 1.25rem 2rem; align-items: start; max-width: 110rem; margin: 0 auto; }
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
      .drop { position: fixed; inset: 0.8rem; display: grid; place-items: center; border: 3px dashed var(--accent); border-radius: 16px; background: color-mix(in srgb, var(--panel) 88%, transparent); font-size: 1.15rem; font-weight: 600; text-align: center; pointer-events: none; z-index: 2; padding: 1rem; }
      @media (max-width: 1180px) {
        main { grid-template: auto 1fr / 19rem minmax(0, 1fr); }
        .side { grid-column: 2; grid-row: 1; }
        .center { grid-row: 2; }
        .inputs { grid-row: 1 / span 2; }
      }
      @media (max-width: 820px) {
        main { grid-template: none / minmax(0, 1fr); padding: 0.75rem; gap: 0.75rem; }
        header { padding: 0.6rem 0.75rem; }
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
        header, main { padding: 0; border: 0; }
        main { display: flex; flex-direction: column; align-items: stretch; gap: 0; }
        .stack { display: block; }
        .inputs, .tools, .intro, .working { display: none; }
        .panel { break-inside: avoid; margin: 1rem 0 0; }
      }
    `,
  ];

  @property({ attribute: false }) source = ""; // HTML of the page itself, to save it with a layout
  @state() notice = "";
  @state() private dropping = false;
  @state() private seconds: number | null = null; // how long the core has computed; null before SLOW
  private ticking = 0;
  @state() private narrow = NARROW.matches;
  @state() private unfolded: ReadonlySet<string> = new Set(); // open editors in a narrow window
  private taken = Promise.resolve(); // resolves when the last file has been read
  @query("paste-box") private box!: PasteBox;
  @query("shard-view") private view!: ShardView;
  @query("input[type=file]") private files!: HTMLInputElement;

  protected override render(): unknown {
    const { draft } = this.model;
    const axes = axesText(draft.axes);
    return html`<header>
        <h1>${LOGO}meshfeed layout</h1>
        <div class="sum">${this.sum()}</div>
        <div class="tools">${this.tools()}</div>
      </header>
      <div role="status">${this.notice ? html`<p class="notice"><span>${this.notice}</span><button class="quiet" aria-label="dismiss" @click=${() => (this.notice = "")}>×</button></p>` : nothing}</div>
      <section class="intro" aria-label="about this page"><p>Plan how the batches of a training job are split over its hosts and devices: which device holds what, which process reads which rows, what that costs, and what is wrong. Nothing leaves this browser.</p>
        ${this.from()}</section>
      <main @go-to=${(e: CustomEvent<string>) => this.goTo(e.detail)}>
        <div class="inputs stack">
          ${this.editor("mesh", "Mesh", `${axes} · ${count(processCount(draft), "process", "processes")}`, html`<mesh-form .model=${this.model}></mesh-form>`)}
          ${this.editor("arrays", "Arrays", draft.arrays.map((a) => a.name).join(", ") || "none", html`<array-form .model=${this.model}></array-form>`)}
          ${this.editor("batch and loader", "Batch and loader", draft.batch ? `${count(batchRows(draft), "row")}, ${draft.loading}` : "no batch", html`<batch-form .model=${this.model}></batch-form>`)}
        </div>
        <div class="side stack ${this.seconds === null ? "" : "old"}" aria-busy=${this.seconds !== null}>
          <section class="panel" aria-label="problems"><h2>Problems</h2><problem-list .model=${this.model}></problem-list></section>
          ${this.model.reply.report ? html`<section class="panel" aria-label="figures"><h2>Figures</h2><totals-view .model=${this.model}></totals-view></section>` : nothing}
        </div>
        <div class="center stack ${this.seconds === null ? "" : "old"}" aria-busy=${this.seconds !== null}>
          <section class="panel" aria-label="picture"><shard-view .model=${this.model}></shard-view></section>
          ${this.model.reply.report ? html`<section class="panel" aria-label="data"><reads-view .model=${this.model}></reads-view></section>` : nothing}
          <section class="panel" aria-label="export"><out-panel .model=${this.model}></out-panel></section>
        </div>
      </main>
      <paste-box .model=${this.model}></paste-box>
      ${this.working()}
      ${this.dropping ? html`<div class="drop" aria-hidden="true">Drop an .arrow or .parquet file, or a layout: it stays on this machine.</div>` : nothing}`;
  }

  /** from renders the name of the example that was opened. */
  private from(): unknown {
    const { name, document } = this.model.origin;
    return name ? html`<p class="from">Example: ${name}${this.model.reply.document === document ? "" : ", changed"}</p>` : nothing;
  }

  /** editor renders a form. In a narrow window the form is folded to one line. */
  private editor(name: string, title: string, brief: string, form: unknown): unknown {
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

  /** working renders a notice if the core computes for longer than SLOW. Meanwhile the page shows the
   * previous layout. */
  private working(): unknown {
    const devices = count(deviceCount(this.model.wanted), "device");
    return html`<div class="working" role="status">${this.seconds === null ? nothing : html`<span>Working out the layout of ${devices}<span aria-hidden="true" class="num"> · ${this.seconds} s</span></span>
      <button @click=${() => this.model.stop()}>Stop</button>`}</div>`;
  }

  /** tick updates the seconds since the core was asked, and calls itself again until there is an answer. */
  private tick = (): void => {
    const { since } = this.model;
    this.seconds = since === null || performance.now() - since < SLOW ? null : Math.round((performance.now() - since) / 1000);
    clearTimeout(this.ticking);
    if (since !== null) this.ticking = setTimeout(this.tick, this.seconds === null ? SLOW : 1000);
  };

  private tools(): unknown {
    const local = location.protocol === "file:";
    return html`${menu("examples", "examples…", examples.map((x, i) => [String(i), x.title]), (i) => void this.open(examples[Number(i)]!.text, examples[Number(i)]!.title))}
      <button title="start with one device and no arrays" @click=${() => this.open(EMPTY)}>Start empty</button>
      <button ?disabled=${!this.model.undoable} title="undo the last change: Ctrl-Z" @click=${() => this.model.undo()}>Undo</button>
      <button @click=${() => this.box.open()}>Paste…</button>
      <button @click=${() => this.files.click()}>Open file…</button>
      <input type="file" hidden accept=".arrow,.feather,.parquet,.json" aria-label="file to open" @change=${(e: Event) => this.take((e.target as HTMLInputElement).files)} />
      ${menu("save the picture", "Picture…", [["svg", "as SVG"], ["png", "as PNG"]], this.savePicture)}
      <button class="main" @click=${this.share} title=${local ? "save this page with the layout inside" : "copy a link that holds the layout"}>${local ? "Save page" : "Share link"}</button>
      <select aria-label="colors" @change=${(e: Event) => setTheme(typed(e) as Theme)}>
        ${THEMES.map((t) => html`<option ?selected=${t === theme()}>${t}</option>`)}</select>`;
  }

  /** connectedCallback listens to events. The page has one layout-app and never removes it. */
  override connectedCallback(): void {
    super.connectedCallback();
    this.model.addEventListener("change", this.tick);
    NARROW.addEventListener("change", () => (this.narrow = NARROW.matches));
    addEventListener("dragover", (e) => {
      if (!e.dataTransfer?.types.includes("Files")) return;
      e.preventDefault();
      this.dropping = true;
    });
    addEventListener("dragleave", (e) => (this.dropping &&= e.relatedTarget !== null));
    addEventListener("drop", (e) => {
      e.preventDefault();
      this.dropping = false;
      this.take(e.dataTransfer?.files ?? null);
    });
  }

  /** take opens the first of the given files. If another file is still being read, take waits for it, so that
   * the page shows the last file. */
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
      this.notice = "The page is saved with this layout. The file works alone, without a network.";
      return;
    }
    history.replaceState(null, "", await fragment(this.document));
    this.notice = (await copy(location.href)) ? "The link is copied. It holds the layout after the #, which browsers do not send to servers." : "The link is in the address bar.";
  };

  private savePicture = async (kind: string): Promise<void> => {
    const { drawings } = this.view;
    if (drawings.length === 0) return;
    const style = getComputedStyle(this);
    const svg = picture(drawings, this.view.caption, style.getPropertyValue("background-color"), style.color);
    const name = `${this.model.look.array.replaceAll(/[^\w.-]+/g, "-")}.${kind}`;
    save(name, kind === "svg" ? new Blob([svg], { type: "image/svg+xml" }) : await png(svg));
  };

  /** sum renders a summary of the layout in one line. */
  private sum(): unknown {
    const { draft } = this.model;
    const errors = this.model.faults.filter((f) => f.problems[0].severity === "error").length;
    const state = errors > 0 ? html`<b style="color:var(--error)">${count(errors, "error")}</b>` : html`<b style="color:var(--ok)">loads</b>`;
    return html`<b>${axesText(draft.axes)}</b> · ${count(deviceCount(draft), "device")} · ${count(processCount(draft), "process", "processes")} · ${state}`;
  }

  private async open(document: string, name = ""): Promise<void> {
    this.notice = (await this.model.load(document, name))?.message ?? "";
  }

  /** goTo focuses the input for a path of the layout document, or for the nearest path above it. */
  private async goTo(path: string): Promise<void> {
    const forms = [...this.renderRoot.querySelectorAll<LitElement>("mesh-form, array-form, batch-form")];
    const inputs = forms.flatMap((f) => [...f.renderRoot.querySelectorAll<HTMLElement>("[data-path]")]);
    for (let p = path; p !== ""; p = p.slice(0, p.lastIndexOf("/"))) {
      const found = inputs.find((i) => i.dataset["path"] === p) ?? inputs.find((i) => i.dataset["path"]!.startsWith(`${p}/`));
      if (!found) continue;
      const form = (found.getRootNode() as ShadowRoot).host;
      this.unfold(form.closest("section")!.getAttribute("aria-label")!, true);
      await this.updateComplete;
      found.focus();
      found.scrollIntoView({ block: "center" });
      return;
    }
  }
}

/** If the core computes for longer than this, in milliseconds, the page shows a notice. */
const SLOW = 500;

/** NARROW matches windows in which the page has one column. */
const NARROW = matchMedia("(max-width: 820px)");

const LOGO = html`<svg viewBox="0 0 20 20" aria-hidden="true"><rect width="9" height="9" rx="2" fill="#4c5fd0" /><rect x="11" width="9" height="9" rx="2" fill="#1f8fb0" /><rect y="11" width="9" height="9" rx="2" fill="#36a36d" /><rect x="11" y="11" width="9" height="9" rx="2" fill="#cdb93c" /></svg>`;

customElements.define("layout-app", LayoutApp);
