// The contents of the tab "Layout".

import { html, nothing } from "lit";
import { query, state } from "lit/decorators.js";
import { App } from "./app.js";
import "./array-form.js";
import "./batch-form.js";
import { EMPTY, axesText, batchRows, deviceCount, processCount, text } from "./draft.js";
import { examples } from "./examples.js";
import { take } from "./file-drop.js";
import { menu } from "./menu.js";
import "./mesh-form.js";
import type { Model } from "./model.js";
import "./out-panel.js";
import "./paste-box.js";
import type { PasteBox } from "./paste-box.js";
import "./problem-list.js";
import "./reads-view.js";
import { copy, picture, png, save } from "./save.js";
import "./shard-view.js";
import type { ShardView } from "./shard-view.js";
import { fragment, withDocument } from "./share.js";
import "./totals-view.js";
import { count } from "./units.js";

export class LayoutApp extends App<Model> {
  protected readonly forms = "mesh-form, array-form, batch-form";
  @state() private seconds: number | null = null; // how long the core has computed; null before SLOW
  private ticking = 0;
  private taken = Promise.resolve(); // resolves when the last file has been read
  @query("paste-box") private box!: PasteBox;
  @query("shard-view") private view!: ShardView;

  protected override render(): unknown {
    const { draft } = this.model;
    const axes = axesText(draft.axes);
    return html`<section class="tool-bar" aria-label="tools"><div class="sum">${this.sum()}</div><div class="tools">${this.tools()}</div></section>
      ${this.noticed()}
      <section class="intro" aria-label="about this page"><p>Plan how the batches of a training job are split over its hosts and devices: which device holds what, which process reads which rows, what that costs, and what is wrong. Nothing leaves this browser.</p>
        ${this.from()}</section>
      <div class="columns" @go-to=${(e: CustomEvent<string>) => this.goTo(e.detail)}>
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
      </div>
      <paste-box .model=${this.model}></paste-box>
      ${this.working()}`;
  }

  /** from renders the name of the example that was opened. */
  private from(): unknown {
    const { name, document } = this.model.origin;
    return name ? html`<p class="from">Example: ${name}${this.model.reply.document === document ? "" : ", changed"}</p>` : nothing;
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
      ${this.opener(".arrow,.arrows,.ipc,.feather,.ftr,.parquet,.parq,.pq,.json")}
      ${menu("save the picture", "Picture…", [["svg", "as SVG"], ["png", "as PNG"]], this.savePicture)}
      <button class="main" @click=${this.share} title=${local ? "save this page with the layout inside" : "copy a link that holds the layout"}>${local ? "Save page" : "Share link"}</button>`;
  }

  /** connectedCallback listens to the model. The page has one layout-app and never removes it. */
  override connectedCallback(): void {
    super.connectedCallback();
    this.model.addEventListener("change", this.tick);
  }

  /** take opens a file. If another file is still being read, take waits for it, so that the page shows the last
   * file. */
  take(file: File): Promise<void> {
    return (this.taken = this.taken.then(async () => {
      this.notice = await take(file, this.model).catch((cause: Error) => `${file.name}: ${cause.message}`);
    }));
  }

  private get document(): string {
    return this.model.reply.document ?? text(this.model.draft);
  }

  private share = async (): Promise<void> => {
    if (location.protocol === "file:") {
      save("layout.html", new Blob([withDocument(this.source, this.document)], { type: "text/html" }));
      this.notice = "The page is saved with this layout. The file works alone, without a network.";
      return;
    }
    history.replaceState(null, "", await fragment("layout", this.document));
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
}

/** If the core computes for longer than this, in milliseconds, the page shows a notice. */
const SLOW = 500;

customElements.define("layout-app", LayoutApp);
