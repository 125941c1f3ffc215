// The contents of the tab "Strategy": how to split a model over devices, and what the input needs then.

import { css, html, nothing } from "lit";
import { state } from "lit/decorators.js";
import "./answer-view.js";
import { App } from "./app.js";
import "./candidate-table.js";
import { meshText } from "./candidate.js";
import "./cluster-fields.js";
import "./cost-view.js";
import { write } from "./json.js";
import { menu } from "./menu.js";
import "./model-fields.js";
import "./needs-view.js";
import "./notes-view.js";
import "./picture-view.js";
import "./problem-list.js";
import { copy, save } from "./save.js";
import { fragment, withDocument } from "./share.js";
import { strategies } from "./strategies.js";
import { batchPath, formOf, numberAt, sequencePath, textAt } from "./strategy-draft.js";
import type { StrategyModel } from "./strategy-model.js";
import "./strategy-panel.js";
import "./training-fields.js";
import { count, whole } from "./units.js";

/** If the planner computes for longer than this, in milliseconds, the page marks the report as old. */
const SLOW = 500;

export class StrategyApp extends App<StrategyModel> {
  static override styles = [
    ...App.styles,
    css`
      .stale { margin: 0; padding: 0.5rem 0.9rem; border: 1px dashed var(--error); border-radius: 9px; font-size: 0.82rem; }
      @media (max-width: 1180px) { .center { grid-row: 1; } .side { grid-row: 2; } }
      @media (max-width: 820px) { .center, .side { grid-row: auto; } }
    `,
  ];

  protected readonly forms = "model-fields, training-fields, cluster-fields";
  @state() private slow = false;
  private timer = 0;

  protected override render(): unknown {
    const { model } = this;
    const { report } = model;
    const old = `stack ${this.slow ? "old" : ""}`;
    return html`<section class="tool-bar" aria-label="tools"><div class="sum">${this.sum()}</div><div class="tools">${this.tools()}</div></section>
      ${this.noticed()}
      <section class="intro" aria-label="about this tab"><p>Plan how to split a model over devices: what every way of splitting takes in memory and time, why the others lose, and what the input must deliver then. Nothing leaves this browser.</p>
        ${this.from()}</section>
      <div class="columns" @go-to=${(e: CustomEvent<string>) => this.goTo(e.detail)}>
        <div class="inputs stack">
          ${this.editor("model", "Model", this.modelBrief(), html`<model-fields .model=${model}></model-fields>`)}
          ${this.editor("training", "Training", this.batchBrief(), html`<training-fields .model=${model}></training-fields>`)}
          ${this.editor("cluster", "Cluster", this.clusterBrief(), html`<cluster-fields .model=${model}></cluster-fields>`)}
        </div>
        <div class="center ${old}" aria-busy=${this.slow}>
          <section class="panel" aria-label="answer"><answer-view .model=${model}></answer-view></section>
          ${report && model.reply.error ? html`<p class="stale">The numbers below are of the last question without an error.</p>` : nothing}
          ${report && report.candidates.length > 0 ? html`<section class="panel" aria-label="costs"><cost-view .model=${model}></cost-view></section>
            <section class="panel" aria-label="candidates"><candidate-table .model=${model}></candidate-table></section>
            <section class="panel" aria-label="pictures"><picture-view .model=${model}></picture-view></section>` : nothing}
          ${report ? html`<section class="panel" aria-label="notes"><notes-view .model=${model}></notes-view></section>` : nothing}
          <section class="panel" aria-label="export"><strategy-panel .model=${model}></strategy-panel></section>
        </div>
        <div class="side ${old}" aria-busy=${this.slow}>
          <section class="panel" aria-label="problems"><h2>Problems</h2><problem-list .model=${model}></problem-list></section>
          ${report ? html`<section class="panel" aria-label="input"><h2>What the input needs</h2><needs-view .model=${model}></needs-view></section>` : nothing}
        </div>
      </div>`;
  }

  /** connectedCallback listens to the model. The page has one strategy-app and never removes it. */
  override connectedCallback(): void {
    super.connectedCallback();
    this.model.addEventListener("change", () => {
      clearTimeout(this.timer);
      if (this.model.since === null) this.slow = false;
      else this.timer = setTimeout(() => (this.slow = true), SLOW);
    });
  }

  /** take opens a file with a strategy document. */
  async take(name: string, text: string): Promise<void> {
    this.notice = await this.model.load(text).then(() => `${name} is open.`, (cause: Error) => `${name}: ${cause.message}`);
  }

  private tools(): unknown {
    const local = location.protocol === "file:";
    return html`${menu("examples", "examples…", strategies.map((x, i) => [String(i), x.title]), (i) => void this.open(Number(i)))}
      <button ?disabled=${!this.model.undoable} title="undo the last change: Ctrl-Z" @click=${() => this.model.undo()}>Undo</button>
      ${this.opener(".json")}
      <button class="main" @click=${this.share} title=${local ? "save this page with the strategy inside" : "copy a link that holds the strategy"}>${local ? "Save page" : "Share link"}</button>`;
  }

  private async open(i: number): Promise<void> {
    const { text, title } = strategies[i]!;
    await this.model.load(text, title);
    this.notice = "";
  }

  private share = async (): Promise<void> => {
    const { text } = this.model;
    if (location.protocol === "file:") {
      save("strategy.html", new Blob([withDocument(this.source, text)], { type: "text/html" }));
      this.notice = "The page is saved with this strategy. The file works alone, without a network.";
      return;
    }
    history.replaceState(null, "", await fragment("strategy", text));
    this.notice = (await copy(location.href)) ? "The link is copied. It holds the strategy after the #, which browsers do not send to servers." : "The link is in the address bar.";
  };

  /** from renders the name of the example that was opened. */
  private from(): unknown {
    const { name, document } = this.model.origin;
    return name ? html`<p class="from">Example: ${name}${write(this.model.wanted) === document ? "" : ", changed"}</p>` : nothing;
  }

  /** sum renders a summary in one line. */
  private sum(): unknown {
    const { report, error } = this.model.reply;
    const best = report?.best == null ? null : report.candidates[report.best]!;
    const state = error ? html`<b style="color:var(--error)">1 error</b>` : best ? html`<b style="color:var(--ok)">fits: ${meshText(best.mesh)}</b>` : html`<b style="color:var(--error)">nothing fits</b>`;
    return html`<b>${this.modelBrief()}</b> · ${this.clusterBrief()} · ${this.batchBrief()} · <span role="status">${state}</span>`;
  }

  private modelBrief(): string {
    const { wanted, catalog } = this.model;
    const form = formOf(wanted);
    if (form === "preset") return catalog.models.find((m) => m.name === textAt(wanted, "/model/preset"))?.title ?? textAt(wanted, "/model/preset");
    if (form === "parameters") return `${whole(numberAt(wanted, "/model/parameters"))} parameters`;
    return form === "tree" ? "a tree of arrays" : `${whole(numberAt(wanted, "/model/transformer/layers"))} layers of ${whole(numberAt(wanted, "/model/transformer/hidden"))}`;
  }

  private batchBrief(): string {
    const { wanted } = this.model;
    const path = batchPath(wanted);
    const n = numberAt(wanted, path);
    return n === null ? "no batch" : `batch ${count(n, path === "/training/tokens" ? "token" : sequencePath(wanted) ? "sequence" : "example")}`;
  }

  private clusterBrief(): string {
    const { wanted, catalog } = this.model;
    const device = textAt(wanted, "/cluster/device");
    return `${whole(numberAt(wanted, "/cluster/devices"))} × ${catalog.devices.find((d) => d.name === device)?.title ?? (device || "own device")}`;
  }
}

customElements.define("strategy-app", StrategyApp);
