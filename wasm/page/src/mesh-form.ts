// The form of the mesh: the axes, outermost first, and the processes that own the devices.

import { css, html, nothing } from "lit";
import { state } from "lit/decorators.js";
import { orderText, readOrder, setOrder } from "./device-order.js";
import { type Axis, type Draft, addAxis, axesText, changeSpecs, deviceCount, processCount } from "./draft.js";
import { idOf } from "./element.js";
import { hostNames } from "./host-names.js";
import { Form, caption, formStyles, integer, typed } from "./form.js";
import { menu } from "./menu.js";
import { pointer } from "./pointer.js";
import { PRESETS, type Preset } from "./presets.js";
import "./term-help.js";
import { count, whole } from "./units.js";

const PROCESSES = "/mesh/processes";
const PER_PROCESS = "/mesh/processes/each"; // a field of the form, which layout documents do not have
const DEVICES = "/mesh/devices";
const HOSTS = "/mesh/hosts"; // another one

const MAX_SHOWN = 2048; // the input lists the devices if there are at most this many
const RUNS = 24; // runs of consecutive ids in the summary of the order

export class MeshForm extends Form {
  @state() private at = Infinity; // index of the next new axis
  private dragged: number | null = null; // index of the dragged axis

  static override styles = [
    formStyles,
    css`
      ol { list-style: none; margin: 0.5rem 0; padding: 0; display: grid; gap: 0.35rem; }
      li { display: grid; grid-template-columns: auto 1fr 5.2rem auto; gap: 0.3rem; align-items: center; }
      .grip { cursor: grab; color: var(--muted); font-size: 0.9rem; line-height: 1; user-select: none; }
      li .why { grid-column: 1 / -1; }
      .moves { display: flex; }
      .moves button { padding: 0 0.3rem; font-size: 0.8rem; }
      .two { display: grid; grid-template-columns: 1fr 1fr; gap: 0.5rem; margin: 0.6rem 0; }
      .two .why { margin-top: 0.2rem; }
      details { font-size: 0.76rem; margin-top: 0.55rem; color: var(--muted); }
      summary { cursor: pointer; overflow-wrap: anywhere; line-height: 1.45; }
      textarea { width: 100%; min-height: 5rem; resize: vertical; background: var(--field); color: var(--text); border: 1px solid var(--line); border-radius: 6px; padding: 0.4rem 0.5rem; font: 0.74rem/1.5 var(--mono); margin: 0.4rem 0 0.3rem; }
    `,
  ];

  protected override inputs(): unknown {
    const draft = this.model.wanted;
    const own = draft.devices !== null;
    return html`<div class="row" style="justify-content:space-between"><h2>Mesh</h2>
        ${menu("mesh presets", "presets…", PRESETS.map((p, i) => [String(i), `${p.name}: ${axesText(p.axes)}`]), (i) => this.preset(PRESETS[Number(i)]!))}</div>
      <div class="two">
        ${this.number("processes", PROCESSES, String(processCount(draft)), own, (d, n) => void (d.processes = n))}
        ${this.number("devices per process", PER_PROCESS, perProcess(draft), own, (d, n) => void (d.perProcess = n))}
      </div>
      ${this.why(PROCESSES)}
      <ol aria-label="axes, outermost first">${draft.axes.map((a, i) => this.axis(a, i, draft.axes.length))}</ol>
      ${this.adding()}
      ${this.order()}
      ${processCount(draft) > 1 ? this.hosts(draft) : nothing}`;
  }

  /** number renders an input for a count, at least 1. */
  private number(name: string, path: string, value: string, disabled: boolean, set: (d: Draft, n: number) => void): unknown {
    const wrong = this.isRefused(path) || this.errorAt(PROCESSES) !== null;
    return html`<div>${caption(path, name)}
      <input id=${path} inputmode="numeric" placeholder="uneven" data-path=${path} .value=${value} ?disabled=${disabled} aria-invalid=${wrong} aria-describedby="${idOf(path)} ${idOf(PROCESSES)}"
        @change=${(e: Event) => this.set(e, path, `still ${value || "uneven"}`, set)} />
      ${this.isRefused(path) ? this.reason(path) : nothing}</div>`;
  }

  /** adding renders the button for a new axis and the choice of its position. */
  private adding(): unknown {
    const { axes } = this.model.wanted;
    const help = html`<term-help term="axes"></term-help>`;
    if (axes.length === 0) return html`<div class="row"><button @click=${this.add}>+ axis</button>${help}</div>`;
    const at = Math.min(this.at, axes.length);
    const positions = [...axes.map((a, i) => (i === 0 ? "outermost" : `between ${axes[i - 1]!.name} and ${a.name}`)), "innermost"];
    return html`<div class="row"><button @click=${this.add}>+ axis</button>
      <select aria-label="position of the new axis" style="width:auto" @change=${(e: Event) => (this.at = (e.target as HTMLSelectElement).selectedIndex)}>
        ${positions.map((position, i) => html`<option ?selected=${i === at}>${position}</option>`)}
      </select>${help}</div>`;
  }

  /** order renders the order of the devices, and an input that changes it. */
  private order(): unknown {
    const draft = this.model.wanted;
    const { devices } = draft;
    const value = devices && devices.length <= MAX_SHOWN ? JSON.stringify(devices).replaceAll("],[", "], [") : "";
    return html`<details ?open=${this.errorAt(DEVICES) !== null}>
      <summary>${count(deviceCount(draft), "device")}, ${devices ? html`in this order: <span class="code">${orderText(devices, RUNS)}</span>` : "row-major: change the order"}</summary>
      <textarea spellcheck="false" aria-label="order of the devices" data-path=${DEVICES} .value=${value} aria-invalid=${this.bad(DEVICES)} aria-describedby=${idOf(DEVICES)}
        placeholder="mesh.device_ids.tolist(), or [process, id] pairs in mesh order"></textarea>
      ${this.reason(DEVICES)}
      <div class="row"><button @click=${() => this.take(DEVICES, () => this.reorder())}>use this order</button>${devices ? html`<button @click=${this.rowMajor}>make row-major</button>` : nothing}</div>
    </details>`;
  }

  /** hosts renders the input of the hosts' names, one for each process. */
  private hosts(draft: Draft): unknown {
    return html`<details ?open=${draft.hosts.length > 0 || this.isRefused(HOSTS)}><summary>names of the hosts</summary>
      <input id=${HOSTS} class="code" aria-label="names of the hosts" placeholder="node[01-${String(processCount(draft)).padStart(2, "0")}]" .value=${draft.hosts.join(", ")} aria-invalid=${this.isRefused(HOSTS)} aria-describedby=${idOf(HOSTS)}
        @change=${(e: Event) => this.take(HOSTS, () => this.nameHosts(typed(e)))} />${this.reason(HOSTS)}</details>`;
  }

  private nameHosts(text: string): void {
    const names = hostNames(text, processCount(this.model.wanted));
    void this.model.edit((d) => void (d.hosts = names));
  }

  private reorder(): void {
    const draft = this.model.wanted;
    const devices = readOrder(this.renderRoot.querySelector("textarea")!.value, deviceCount(draft), processCount(draft));
    this.model.edit((d) => setOrder(d, devices));
  }

  private rowMajor = (): void => {
    this.refuse(DEVICES, "");
    this.model.edit((d) => this.dropDevices(d));
  };

  private axis(a: Axis, i: number, n: number): unknown {
    const path = pointer("mesh", "axes", i);
    const [name, size] = [`${path}/0`, `${path}/1`];
    return html`<li @dragover=${(e: DragEvent) => this.dragged !== null && e.preventDefault()} @drop=${() => this.dragged !== null && this.move(this.dragged, i)}>
      <span class="grip" draggable="true" title="drag to reorder" aria-hidden="true" @dragstart=${(e: DragEvent) => this.drag(e, i)} @dragend=${() => (this.dragged = null)}>⠿</span>
      <input class="code" aria-label="name of axis ${i + 1}" data-path=${name} .value=${a.name} aria-invalid=${this.bad(name)} aria-describedby=${idOf(name)}
        @change=${(e: Event) => this.take(name, () => this.rename(i, typed(e)))} />
      <input inputmode="numeric" aria-label="size of axis ${a.name}" data-path=${size} .value=${String(a.size)} aria-invalid=${this.bad(size)} aria-describedby=${idOf(size)}
        @change=${(e: Event) => this.set(e, size, `${a.name} is still ${whole(a.size)}`, (d, value) => void (d.axes[i]!.size = value))} />
      <span class="moves">
        <button class="quiet" aria-label="move ${a.name} outwards" ?disabled=${i === 0} @click=${() => this.step(i, -1)}>↑</button>
        <button class="quiet" aria-label="move ${a.name} inwards" ?disabled=${i === n - 1} @click=${() => this.step(i, 1)}>↓</button>
        <button class="quiet" aria-label="remove axis ${a.name}" @click=${() => this.drop(i)}>×</button>
      </span>
      ${[name, size].map((p) => this.reason(p))}</li>`;
  }

  /** set reads a whole number of at least 1 from an input and changes the draft with it. The error text
   * ends with `still`, which names the value that remains. */
  private set(e: Event, path: string, still: string, change: (d: Draft, n: number) => void): void {
    this.take(path, () => {
      const n = integer(typed(e), 1, `; ${still}`);
      this.model.edit((d) => (this.dropDevices(d), change(d, n)));
    });
  }

  /** dropDevices removes the list of devices, which a change of the mesh makes invalid. The number of
   * processes stays the same. */
  private dropDevices(d: Draft): void {
    if (d.devices) d.processes = processCount(d);
    d.devices = null;
  }

  /** rename renames an axis, also in the specs. The new name must be unique. */
  private rename(i: number, name: string): void {
    if (name === "") throw new Error("An axis needs a name.");
    if (this.model.wanted.axes.some((a, j) => j !== i && a.name === name)) throw new Error(`Another axis has the name ${name}.`);
    this.model.edit((d) => {
      const old = d.axes[i]!.name;
      d.axes[i]!.name = name;
      changeSpecs(d, (entry) => entry.map((n) => (n === old ? name : n)));
    });
  }

  /** move moves an axis to another position. */
  private move(from: number, to: number): void {
    this.acceptNames();
    if (from !== to) this.model.edit((d) => (this.dropDevices(d), d.axes.splice(to, 0, ...d.axes.splice(from, 1))));
  }

  /** step moves an axis by one position and keeps the focus on it. */
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
    e.dataTransfer!.setData("text/plain", this.model.wanted.axes[i]!.name);
  }

  private drop(i: number): void {
    this.acceptNames();
    this.model.edit((d) => {
      this.dropDevices(d);
      const [removed] = d.axes.splice(i, 1);
      changeSpecs(d, (entry) => entry.filter((n) => n !== removed!.name));
    });
  }

  /** acceptNames removes the messages about rejected names and sizes of axes. A message belongs to a
   * position, so it would appear at another axis after a move. */
  private acceptNames(): void {
    for (const i of this.model.wanted.axes.keys()) for (const part of [0, 1]) this.refuse(pointer("mesh", "axes", i, part), "");
  }

  /** add inserts an axis at the chosen position. If the number of devices per process was typed, the new
   * axis has the size that matches it. */
  private add = (): void => {
    this.acceptNames();
    const draft = this.model.wanted;
    const at = Math.min(this.at, draft.axes.length);
    const missing = draft.perProcess === null ? 2 : (draft.processes * draft.perProcess) / deviceCount(draft);
    this.model.edit((d) => {
      this.dropDevices(d);
      addAxis(d, at, Number.isInteger(missing) ? missing : 1);
    });
    this.at = Infinity;
    void this.updateComplete.then(() => this.renderRoot.querySelector<HTMLInputElement>(`li:nth-child(${at + 1}) input`)?.select());
  };

  private preset({ axes, processes }: Preset): void {
    this.model.edit((d) => {
      d.axes = structuredClone(axes);
      d.devices = null;
      d.processes = processes;
      d.perProcess = deviceCount(d) / processes;
      changeSpecs(d, (entry) => entry.filter((n) => axes.some((a) => a.name === n)));
    });
  }
}

/** perProcess returns the number of devices per process, or "" if processes have different numbers. */
function perProcess(d: Draft): string {
  const total = deviceCount(d);
  if (!d.devices) return d.perProcess !== null ? String(d.perProcess) : total % d.processes === 0 ? String(total / d.processes) : "";
  const counts = new Map<number, number>();
  for (const [p] of d.devices) counts.set(p, (counts.get(p) ?? 0) + 1);
  return new Set(counts.values()).size === 1 ? String(total / counts.size) : "";
}

customElements.define("mesh-form", MeshForm);
