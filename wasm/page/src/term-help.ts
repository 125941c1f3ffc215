// Explains a term: a button and a tooltip that the button shows.

import { LitElement, css, html } from "lit";
import { property, query } from "lit/decorators.js";
import { controls } from "./style.js";

export const TERMS = {
  axes: "A mesh arranges the devices along named axes, the outermost first. Arrays are split over the axes that their specs name.",
  processes: "A process is one running program, usually one for each host. It reads the data for the devices that it owns.",
  shape: "B is the batch dimension; with two batch sizes there are B0 and B1. A size may have a name, which stands for it everywhere: B, S=2048.",
  spec: "One entry for each dimension: the axes it is split over, or None to leave it whole. Devices along axes that are not named hold copies.",
  "global batch": "The rows of all processes together. Two sizes, such as 4, 64, make two batch dimensions: B0 is 4 and B1 is 64.",
  remainder: "The records that do not fill the last batch. drop omits them, pad adds empty rows and a mask, error rejects such a dataset.",
  order: "sequential.1 takes the records as they are stored; shuffle.1 uses a new permutation in each epoch, derived from the seed. 1 is the version of the order.",
  prefetch: "The number of batches that are read ahead while a step runs.",
  loading: "How rows reach devices. process: each process reads what its devices hold. global: each reads the whole batch. device: each device's part is read by itself. reshard: equal rows for each device, moved between devices in the step.",
  extras: "Arrays that the loader adds to each batch. key is a hash for each row, to seed random augmentation; record is the number of the record.",
  "device budget": "The memory that one batch may take on a device. The page reports an error if a layout needs more.",
  "host budget": "The memory that a process may take for all batches that it reads ahead. The page reports an error if a layout needs more.",
} as const;

export type Term = keyof typeof TERMS;

const MARGIN = 8; // pixels between the tooltip and the edge of the window

export class TermHelp extends LitElement {
  @property() term: Term = "spec";
  @query("button") private button!: HTMLButtonElement;

  static override styles = [
    controls,
    css`
      :host { display: inline-block; line-height: 1; }
      button { display: grid; place-items: center; width: 1.5rem; height: 1.5rem; margin: -0.35rem -0.2rem; padding: 0; border: 0; background: none; color: var(--muted); }
      button:hover:not(:disabled) { background: none; color: var(--text); }
      button > :first-child { display: grid; place-items: center; width: 1rem; height: 1rem; border: 1px solid var(--line); border-radius: 50%; font-size: 0.66rem; font-weight: 650; line-height: 1; }
      button:hover > :first-child { border-color: var(--edge); }
      p { margin: 0; position: fixed; inset: auto; max-width: min(21rem, calc(100vw - ${2 * MARGIN}px)); padding: 0.55rem 0.7rem; border: 1px solid var(--edge); border-radius: 8px; background: var(--panel); color: var(--text); box-shadow: 0 6px 22px rgb(0 0 0 / 0.18); font-size: 0.78rem; line-height: 1.45; white-space: normal; }
      @media print { :host { display: none; } }
    `,
  ];

  protected override render(): unknown {
    return html`<button popovertarget="text" aria-describedby="text"><span aria-hidden="true">?</span><span class="visually-hidden">what ${this.term} means</span></button>
      <p id="text" popover @beforetoggle=${this.hide} @toggle=${this.position}>${TERMS[this.term]}</p>`;
  }

  /** hide makes the tooltip transparent until it has its position. */
  private hide = (e: ToggleEvent): void => {
    (e.target as HTMLElement).style.opacity = e.newState === "open" ? "0" : "";
  };

  /** position puts the tooltip below its button, or above it if it does not fit below. */
  private position = (e: ToggleEvent): void => {
    if (e.newState !== "open") return;
    const tip = e.target as HTMLElement;
    const [box, { width, height }] = [this.button.getBoundingClientRect(), tip.getBoundingClientRect()];
    const below = box.bottom + 6;
    tip.style.left = `${Math.max(MARGIN, Math.min(box.left - 12, innerWidth - width - MARGIN))}px`;
    tip.style.top = `${below + height + MARGIN <= innerHeight ? below : Math.max(MARGIN, box.top - height - 6)}px`;
    tip.style.opacity = "";
  };
}

customElements.define("term-help", TermHelp);
