// The mesh: axes in order, outermost first, and the processes that own the devices.

import { css, html, nothing } from "lit";
import { state } from "lit/decorators.js";
import { orderText, readOrder, setOrder } from "./device-order.js";
import { type Axis, type Draft, type Entry, deviceCount, processCount } from "./draft.js";
import { Part, idOf, pointer } from "./element.js";
import { controls } from "./style.js";
import { count } from "./units.js";

interface Preset {
  name: string;
  axes: [string, number][];
  processes: number;
}

const PRESETS: Preset[] = [
  { name: "1 host × 8", axes: [["data", 8]], processes: 1 },
  { name: "4 hosts × 2", axes: [["data", 4], ["model", 2]], processes: 4 },
  { name: "4 hosts × 8", axes: [["data", 8], ["model", 4]], processes: 4 },
  { name: "32 hosts × 8", axes: [["data", 16], ["fsdp", 4], ["model", 4]], processes: 32 },
  { name: "512 hosts × 8", axes: [["data", 64], ["fsdp", 16], ["model", 4]], processes: 512 },
  { name: "8,192 hosts × 8", axes: [["data", 256], ["fsdp", 64], ["model", 4]], processes: 8192 },
];

const MOST_SHOWN = 2048; // devices whose order stands in the input
const RUNS = 24; // of it in the summary

export class MeshForm extends Part {
  @state() private refused = ""; // why an order of devices cannot be used
  @state() private taken: { axis: number; why: string } | null = null; // a name that an axis cannot have
  private dragged: number | null = null; // axis

  static override styles = [
    controls,
    css`
      ol { list-style: none; margin: 0.5rem 0; padding: 0; display: grid; gap: 0.35rem; }
      li { display: grid; grid-template-columns: auto 1fr 5.2rem auto; gap: 0.3rem; align-items: center; }
      .grip { cursor: grab; color: var(--muted); font-size: 0.9rem; line-height: 1; user-select: none; }
      li .why { grid-column: 1 / -1; }
      .moves { display: flex; }
      .moves button { padding: 0 0.3rem; font-size: 0.8rem; }
      .two { display: grid; grid-template-columns: 1fr 1fr; gap: 0.5rem; margin-top: 0.6rem; }
      details { font-size: 0.76rem; margin-top: 0.55rem; color: var(--muted); }
      summary { cursor: pointer; overflow-wrap: anywhere; line-height: 1.45; }
      textarea { width: 100%; min-height: 5rem; resize: vertical; background: var(--field); color: var(--text); border: 1px solid var(--line); border-radius: 6px; padding: 0.4rem 0.5rem; font: 0.74rem/1.5 var(--mono); margin: 0.4rem 0 0.3rem; }
    `,
  ];

  protected override render(): unknown {
    const { draft } = this.model;
    return html`<div class="row" style="justify-content:space-between"><h2>Mesh</h2>
        <select aria-label="mesh presets" style="width:auto" @change=${this.preset}>
          <option value="">presets…</option>${PRESETS.map((p, i) => html`<option value=${i}>${p.name}: ${p.axes.map(([n, s]) => `${n} ${s}`).join(" × ")}</option>`)}
        </select></div>
      <ol aria-label="axes, outermost first">${draft.axes.map((a, i) => this.axis(a, i, draft.axes.length))}</ol>
      <button @click=${this.add}>+ axis</button>
      <div class="two">
        <label>processes<input type="number" min="1" data-path="/mesh/processes" .value=${String(processCount(draft))} ?disabled=${draft.devices !== null}
          aria-invalid=${this.trouble("/mesh/processes") !== null} aria-describedby=${idOf("/mesh/processes")}
          @change=${(e: Event) => this.set(e, String(draft.processes), (d, n) => void (d.processes = n))} /></label>
        <label>devices per process<input type="number" min="1" placeholder="uneven" .value=${perProcess(draft)} ?disabled=${draft.devices !== null}
          @change=${(e: Event) => this.set(e, perProcess(draft), (d, n) => void (d.processes = Math.max(1, Math.round(deviceCount(d) / n))))} /></label>
      </div>
      ${this.why("/mesh/processes")}
      ${this.order()}`;
  }

  private order(): unknown {
    const { draft } = this.model;
    const { devices } = draft;
    const path = "/mesh/devices";
    const value = devices && devices.length <= MOST_SHOWN ? JSON.stringify(devices).replaceAll("],[", "], [") : "";
    return html`<details ?open=${this.trouble(path) !== null}>
      <summary>${count(deviceCount(draft), "device")}, ${devices ? html`in this order: <span class="code">${orderText(devices, RUNS)}</span>` : "row-major: change the order"}</summary>
      <textarea spellcheck="false" aria-label="order of the devices" data-path=${path} .value=${value} aria-invalid=${this.refused !== "" || this.trouble(path) !== null} aria-describedby=${idOf(path)}
        placeholder="mesh.device_ids.tolist(), or [process, id] pairs in mesh order"></textarea>
      ${this.refused ? html`<p class="why" id=${idOf(path)}>${this.refused}</p>` : this.why(path)}
      <div class="row"><button @click=${this.reorder}>use this order</button>${devices ? html`<button @click=${this.rowMajor}>make row-major</button>` : nothing}</div>
    </details>`;
  }

  private reorder = (): void => {
    const { draft } = this.model;
    try {
      const devices = readOrder(this.renderRoot.querySelector("textarea")!.value, deviceCount(draft), processCount(draft));
      this.refused = "";
      this.model.edit((d) => setOrder(d, devices));
    } catch (cause) {
      this.refused = (cause as Error).message;
    }
  };

  private rowMajor = (): void => {
    this.refused = "";
    this.model.edit((d) => this.free(d));
  };

  private axis(a: Axis, i: number, n: number): unknown {
    const path = pointer("mesh", "axes", i);
    const taken = this.taken?.axis === i ? this.taken : null;
    return html`<li @dragover=${(e: DragEvent) => this.dragged !== null && e.preventDefault()} @drop=${() => this.dragged !== null && this.move(this.dragged, i)}>
      <span class="grip" draggable="true" title="drag to reorder" aria-hidden="true" @dragstart=${(e: DragEvent) => this.drag(e, i)} @dragend=${() => (this.dragged = null)}>⠿</span>
      <input class="code" aria-label="name of axis ${i + 1}" data-path=${path} .value=${a.name} aria-invalid=${taken !== null || this.trouble(path) !== null} aria-describedby=${idOf(path)}
        @change=${(e: Event) => this.rename(i, (e.target as HTMLInputElement).value.trim())} />
      <input type="number" min="1" aria-label="size of axis ${a.name}" .value=${String(a.size)} aria-invalid=${this.trouble(path) !== null} aria-describedby=${idOf(path)}
        @change=${(e: Event) => this.set(e, String(a.size), (d, size) => void (d.axes[i]!.size = size))} />
      <span class="moves">
        <button class="quiet" aria-label="move ${a.name} outwards" ?disabled=${i === 0} @click=${() => this.step(i, -1)}>↑</button>
        <button class="quiet" aria-label="move ${a.name} inwards" ?disabled=${i === n - 1} @click=${() => this.step(i, 1)}>↓</button>
        <button class="quiet" aria-label="remove axis ${a.name}" @click=${() => this.drop(i)}>×</button>
      </span>
      ${taken ? html`<p class="why" id=${idOf(path)}>${taken.why}</p>` : this.why(path)}</li>`;
  }

  /** set takes a whole number out of an input, and puts the old one back where there is none. */
  private set(e: Event, old: string, change: (d: Draft, n: number) => void): void {
    const n = (e.target as HTMLInputElement).valueAsNumber;
    if (Number.isSafeInteger(n) && n >= 1) this.model.edit((d) => (this.free(d), change(d, n)));
    else (e.target as HTMLInputElement).value = old;
  }

  /** free drops a list of devices, which cannot outlive a change of the mesh. */
  private free(d: Draft): void {
    d.processes = processCount(d);
    d.devices = null;
  }

  /** rename gives an axis another name, in the specs too; so it must be one that no other has. */
  private rename(i: number, name: string): void {
    const { axes } = this.model.draft;
    if (name === "") this.taken = { axis: i, why: "An axis needs a name." };
    else if (axes.some((a, j) => j !== i && a.name === name)) this.taken = { axis: i, why: `There is an axis ${name} already.` };
    else this.taken = null;
    if (this.taken) return;
    this.model.edit((d) => {
      const old = d.axes[i]!.name;
      d.axes[i]!.name = name;
      const renamed = (entry: Entry): Entry => entry.map((n) => (n === old ? name : n));
      for (const a of d.arrays) a.spec = a.spec.map(renamed);
      if (d.batch?.maskSpec) d.batch.maskSpec = d.batch.maskSpec.map(renamed);
    });
  }

  private move(from: number, to: number): void {
    this.taken = null;
    if (from !== to) this.model.edit((d) => (this.free(d), d.axes.splice(to, 0, ...d.axes.splice(from, 1))));
  }

  /** step moves an axis by one, and keeps the focus on it. */
  private step(i: number, by: number): void {
    this.move(i, i + by);
    void this.updateComplete.then(() => {
      const [out, inwards] = this.renderRoot.querySelectorAll<HTMLButtonElement>(`li:nth-child(${i + by + 1}) .moves button`);
      const same = by < 0 ? out! : inwards!;
      (same.disabled ? (by < 0 ? inwards! : out!) : same).focus();
    });
  }

  private drag(e: DragEvent, i: number): void {
    this.dragged = i;
    e.dataTransfer!.effectAllowed = "move";
    e.dataTransfer!.setData("text/plain", this.model.draft.axes[i]!.name);
  }

  private drop(i: number): void {
    this.taken = null;
    this.model.edit((d) => {
      this.free(d);
      const [gone] = d.axes.splice(i, 1);
      const without = (entry: Entry): Entry => entry.filter((n) => n !== gone!.name);
      for (const a of d.arrays) a.spec = a.spec.map(without);
      if (d.batch?.maskSpec) d.batch.maskSpec = d.batch.maskSpec.map(without);
    });
  }

  private add = (): void => {
    this.model.edit((d) => {
      this.free(d);
      const name = ["data", "model", "fsdp", "seq", "expert", "stage"].find((n) => !d.axes.some((a) => a.name === n)) ?? `axis${d.axes.length}`;
      d.axes.push({ name, size: 2 });
    });
  };

  private preset = (e: Event): void => {
    const select = e.target as HTMLSelectElement;
    const p = PRESETS[Number(select.value)];
    select.value = "";
    if (!p) return;
    const names = p.axes.map(([n]) => n);
    this.model.edit((d) => {
      d.axes = p.axes.map(([name, size]) => ({ name, size }));
      d.devices = null;
      d.processes = p.processes;
      for (const a of d.arrays) a.spec = a.spec.map((entry) => entry.filter((n) => names.includes(n)));
    });
  };
}

/** perProcess gives the devices of each process, and nothing where they differ. */
function perProcess(d: Draft): string {
  const total = deviceCount(d);
  if (!d.devices) return String(total / d.processes);
  const counts = new Map<number, number>();
  for (const [p] of d.devices) counts.set(p, (counts.get(p) ?? 0) + 1);
  return new Set(counts.values()).size === 1 ? String(total / counts.size) : "";
}

customElements.define("mesh-form", MeshForm);
