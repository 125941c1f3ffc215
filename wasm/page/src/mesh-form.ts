// The mesh: axes in order, outermost first, and the processes that own the devices.

import { css, html, nothing } from "lit";
import { type Axis, deviceCount, processCount } from "./draft.js";
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

export class MeshForm extends Part {
  static override styles = [
    controls,
    css`
      ol { list-style: none; margin: 0.5rem 0; padding: 0; display: grid; gap: 0.35rem; }
      li { display: grid; grid-template-columns: 1fr 5.2rem auto; gap: 0.3rem; }
      .moves { display: flex; }
      .moves button { padding: 0 0.3rem; font-size: 0.8rem; }
      .two { display: grid; grid-template-columns: 1fr 1fr; gap: 0.5rem; margin-top: 0.6rem; }
      .total { font-size: 0.76rem; margin: 0.45rem 0 0; }
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
          @change=${(e: Event) => this.set(e, (d, n) => void (d.processes = n))} /></label>
        <label>devices per process<input type="number" min="1" .value=${String(deviceCount(draft) / processCount(draft))} ?disabled=${draft.devices !== null}
          @change=${(e: Event) => this.set(e, (d, n) => void (d.processes = Math.max(1, Math.round(deviceCount(d) / n))))} /></label>
      </div>
      ${this.why("/mesh/processes")}
      <p class="total muted">${count(deviceCount(draft), "device")}${draft.devices
        ? html` in an order of their own <button class="quiet" @click=${() => this.model.edit((d) => ((d.processes = processCount(d)), (d.devices = null)))}>make row-major</button>`
        : ", row-major"}</p>`;
  }

  private axis(a: Axis, i: number, n: number): unknown {
    const path = pointer("mesh", "axes", i);
    return html`<li><input class="code" aria-label="name of axis ${i + 1}" data-path=${path} .value=${a.name} aria-invalid=${this.trouble(path) !== null} aria-describedby=${idOf(path)}
        @change=${(e: Event) => this.rename(i, (e.target as HTMLInputElement).value.trim())} />
      <input type="number" min="1" aria-label="size of axis ${a.name}" .value=${String(a.size)} aria-invalid=${this.trouble(path) !== null} aria-describedby=${idOf(path)}
        @change=${(e: Event) => this.set(e, (d, size) => void (d.axes[i]!.size = size))} />
      <span class="moves">
        <button class="quiet" aria-label="move ${a.name} outwards" ?disabled=${i === 0} @click=${() => this.move(i, i - 1)}>↑</button>
        <button class="quiet" aria-label="move ${a.name} inwards" ?disabled=${i === n - 1} @click=${() => this.move(i, i + 1)}>↓</button>
        <button class="quiet" aria-label="remove axis ${a.name}" @click=${() => this.drop(i)}>×</button>
      </span>
      ${this.trouble(path) ? html`<div style="grid-column:1/-1">${this.why(path)}</div>` : nothing}</li>`;
  }

  /** set takes a whole number out of an input, and puts the old one back where there is none. */
  private set(e: Event, change: (d: typeof this.model.draft, n: number) => void): void {
    const n = (e.target as HTMLInputElement).valueAsNumber;
    if (Number.isSafeInteger(n) && n >= 1) this.model.edit((d) => (this.free(d), change(d, n)));
    else this.requestUpdate();
  }

  /** free drops a list of devices, which cannot outlive a change of the mesh. */
  private free(d: typeof this.model.draft): void {
    if (d.devices) {
      d.processes = processCount(d);
      d.devices = null;
    }
  }

  private rename(i: number, name: string): void {
    this.model.edit((d) => {
      const old = d.axes[i]!.name;
      d.axes[i]!.name = name;
      for (const a of d.arrays) a.spec = a.spec.map((entry) => entry.map((n) => (n === old ? name : n)));
    });
  }

  private move(from: number, to: number): void {
    this.model.edit((d) => (this.free(d), d.axes.splice(to, 0, ...d.axes.splice(from, 1))));
  }

  private drop(i: number): void {
    this.model.edit((d) => {
      this.free(d);
      const [gone] = d.axes.splice(i, 1);
      for (const a of d.arrays) a.spec = a.spec.map((entry) => entry.filter((n) => n !== gone!.name));
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

customElements.define("mesh-form", MeshForm);
