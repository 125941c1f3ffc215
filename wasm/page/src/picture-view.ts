// The pictures of the chosen candidate. The planner's module draws the selected one.

import { css, html, nothing } from "lit";
import { query, state } from "lit/decorators.js";
import { Dropped } from "./core.js";
import { PageElement } from "./element.js";
import { typed } from "./form.js";
import { type Picture, pictures } from "./pictures.js";
import type { StrategyModel } from "./strategy-model.js";
import { controls } from "./style.js";
import { nextTab, tabStyles } from "./tablist.js";
import { meshText } from "./candidate.js";

/** A picture is drawn this many milliseconds after the last change, so that it does not delay the next report. */
const PAUSE = 60;

const MARGIN = 20; // at the left of a picture, which the page cuts off

export class PictureView extends PageElement<StrategyModel> {
  @state() private selected = "";
  @state() private choice = 0;
  @state() private failure = "";
  @query(".picture") private place!: HTMLElement | null;
  private drawn = ""; // the document and the width of the picture that is shown or asked for
  private shows: HTMLElement | null = null; // the element that shows it
  private timer = 0;
  private asking = new AbortController();
  private readonly sizes = new ResizeObserver(() => this.plan());

  static override styles = [
    controls,
    tabStyles,
    css`
      .head { display: flex; flex-wrap: wrap; gap: 0.4rem 0.9rem; align-items: center; justify-content: space-between; }
      h2 small { margin-left: 0.4rem; }
      .of { width: auto; max-width: 100%; margin-top: 0.7rem; }
      .note { margin: 0.5rem 0 0; font-size: 0.76rem; color: var(--muted); line-height: 1.45; }
      .picture { margin-top: 0.6rem; min-height: 6rem; overflow: hidden; }
      svg { display: block; margin: -12px 0 -14px -20px; }
      .mf-bg { fill: none; stroke: none; }
      .mf-t { fill: var(--text); }
      .mf-b { fill: var(--text); font-weight: 600; }
      .mf-m { fill: var(--muted); }
      .mf-w { fill: #fff; font-weight: 600; }
      .mf-cell { stroke: var(--edge); }
      .mf-track { fill: light-dark(#e9edf2, #2a333d); }
      .mf-many { fill: light-dark(#6c7a89, #8b99a7); }
      .mf-sep { stroke: var(--muted); }
      @media (forced-colors: active) { :is(.mf-t, .mf-b, .mf-m) { fill: CanvasText; } }
    `,
  ];

  override connectedCallback(): void {
    super.connectedCallback();
    this.sizes.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.sizes.disconnect();
  }

  protected override render(): unknown {
    const all = this.all();
    const picture = this.picture(all);
    if (!picture) return nothing;
    const { report, chosen } = this.model;
    return html`<div class="head"><h2>Pictures <small>of ${report!.best === chosen ? "the best candidate" : "the chosen candidate"}: ${meshText(report!.candidates[chosen]!.mesh)}</small></h2>
        <div role="tablist" aria-label="pictures" @keydown=${(e: KeyboardEvent) => this.onKey(e, all)}>
          ${all.map((p) => html`<button role="tab" id="tab-${p.key}" aria-controls="shown" aria-selected=${p === picture} tabindex=${p === picture ? 0 : -1} @click=${() => this.select(p.key)}>${p.title}</button>`)}
        </div></div>
      <div id="shown" role="tabpanel" aria-labelledby="tab-${picture.key}" tabindex="0">
        ${picture.choices.length > 1 ? html`<select class="of" aria-label="operation" @change=${(e: Event) => (this.choice = Number(typed(e)))}>
          ${picture.choices.map(({ title }, i) => html`<option value=${i} ?selected=${i === this.at(picture)}>${title}</option>`)}</select>` : nothing}
        ${picture.note ? html`<p class="note">${picture.note}</p>` : nothing}
        ${this.failure ? html`<p class="why">${this.failure}</p>` : nothing}
        <div class="picture"></div></div>`;
  }

  protected override updated(): void {
    this.plan();
  }

  private all(): Picture[] {
    const { report, document, catalog, chosen, detail } = this.model;
    return report ? pictures(document, catalog.models, report, chosen, detail) : [];
  }

  /** picture returns the selected picture, or the first one if the candidate does not have that. */
  private picture(all: Picture[]): Picture | undefined {
    return all.find((p) => p.key === this.selected) ?? all[0];
  }

  /** at returns the number of the selected choice. */
  private at(picture: Picture): number {
    return Math.min(this.choice, picture.choices.length - 1);
  }

  private select(key: string): void {
    [this.selected, this.choice] = [key, 0];
  }

  private onKey(e: KeyboardEvent, all: Picture[]): void {
    const next = nextTab(e, all.map((p) => p.key), this.picture(all)!.key);
    if (next === null) return;
    this.select(next);
    void this.updateComplete.then(() => this.renderRoot.querySelector<HTMLElement>(`#tab-${next}`)?.focus());
  }

  /** plan draws the selected picture after a pause, unless it is drawn. */
  private plan(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.draw(), PAUSE);
  }

  private async draw(): Promise<void> {
    const picture = this.picture(this.all());
    const width = this.clientWidth;
    if (!picture || !this.place || width === 0 || this.model.since !== null) return;
    const choice = picture.choices[this.at(picture)];
    if (!choice) return;
    const { diagram } = choice;
    const wanted = `${width} ${JSON.stringify(diagram)}`;
    if (wanted === this.drawn && this.shows === this.place) return;
    [this.drawn, this.shows] = [wanted, this.place];
    this.asking.abort();
    this.asking = new AbortController();
    try {
      const svg = await this.model.draw(diagram, width + MARGIN, this.asking.signal);
      this.place?.replaceChildren(drawing(svg));
      this.failure = "";
    } catch (cause) {
      if (cause instanceof Dropped) return;
      this.place?.replaceChildren();
      this.failure = (cause as Error).message;
    }
  }
}

/** drawing parses an SVG. The page's own style replaces the document's style, so that the
 * picture has the theme of the page. Its title becomes a label, because browsers show
 * titles as tooltips. */
function drawing(text: string): SVGSVGElement {
  const svg = document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true) as unknown as SVGSVGElement;
  svg.querySelector("style")?.remove();
  const title = svg.querySelector("title");
  svg.setAttribute("aria-label", title?.textContent ?? "");
  title?.remove();
  const about = svg.querySelector("desc");
  if (about) {
    about.id = "about";
    svg.setAttribute("aria-describedby", "about");
  }
  return svg;
}

customElements.define("picture-view", PictureView);
