// Parses the device order of a mesh, and formats it in a short form.

import type { Draft } from "./draft.js";
import { count, span } from "./units.js";

export type Device = [process: number, id: number];

/** readOrder parses the devices in mesh order: [process, id] pairs, ids, or NumPy's output of
 * mesh.devices or mesh.device_ids. Ids without processes are distributed in equal parts. It throws if the
 * text has another form. */
export function readOrder(text: string, devices: number, processes: number): Device[] {
  const expected = `${count(devices, "id")}, or ${count(devices, "[process, id] pair")}, in mesh order`;
  const printed = [...text.matchAll(/\bid=(\d+)(?:,\s*process_index=(\d+))?/g)];
  if (printed.length > 0) return named(printed, devices, processes);
  const bare = text.replace(/,\s*dtype=\w+/, "").replaceAll(/\b(?:np\.)?array\b/g, "");
  if (/[^\d\s,;()[\]]/.test(bare) || !/\d/.test(bare)) throw new Error(`expected ${expected}`);
  const numbers = (bare.match(/\d+/g) ?? []).map(Number);
  if (numbers.length === devices) return owned(numbers, processes);
  if (numbers.length !== 2 * devices) throw new Error(`expected ${expected}, but found ${count(numbers.length, "number")}`);
  const pairs = numbers.flatMap((n, i): Device[] => (i % 2 === 0 ? [[n, numbers[i + 1]!]] : []));
  unique(pairs.map(([, id]) => id));
  return pairs;
}

/** named parses JAX's text for devices, with the ids and perhaps the process_index of each. */
function named(printed: RegExpExecArray[], devices: number, processes: number): Device[] {
  if (printed.length !== devices) throw new Error(`expected ${count(devices, "device")}, but found ${printed.length}`);
  const ids = printed.map((m) => Number(m[1]));
  const owners = printed.map((m) => m[2]);
  return owners.includes(undefined) ? owned(ids, processes) : unique(ids).map((id, i) => [Number(owners[i]), id]);
}

/** unique returns the ids. It throws if two of them are equal. */
function unique(ids: number[]): number[] {
  const positions = new Map<number, number>();
  for (const [i, id] of ids.entries()) {
    if (positions.has(id)) throw new Error(`device ${id} is at positions ${positions.get(id)} and ${i}, counted from 0`);
    positions.set(id, i);
  }
  return ids;
}

/** owned assigns devices to processes in equal parts, in ascending order of ids. */
export function owned(ids: number[], processes: number): Device[] {
  if (ids.length % processes !== 0) throw new Error(`${count(ids.length, "device")} cannot be distributed over ${count(processes, "process", "processes")} in equal parts; give [process, id] pairs`);
  const each = ids.length / processes;
  const ranks = new Map([...unique(ids)].sort((a, b) => a - b).map((id, rank) => [id, rank]));
  return ids.map((id) => [Math.floor(ranks.get(id)! / each), id]);
}

/** setOrder sets the devices of a draft's mesh. Row-major devices need no list. */
export function setOrder(d: Draft, devices: Device[]): void {
  const processes = new Set(devices.map(([p]) => p)).size;
  const each = devices.length / processes;
  d.processes = processes;
  d.devices = devices.every(([p, id], i) => id === i && p === Math.floor(i / each)) ? null : devices;
}

/** orderText formats an order as runs of consecutive ids, at most `most` of them: p0: 0–1 · p1: 4–5, 7, 6 ·
 * p0: 3. */
export function orderText(devices: Device[], most: number): string {
  const runs: { process: number; ids: string[] }[] = [];
  let shown = 0;
  let at = 0;
  for (; at < devices.length && shown < most; shown++) {
    const [process, first] = devices[at]!;
    let end = at + 1;
    while (end < devices.length && devices[end]![0] === process && devices[end]![1] === first + end - at) end++;
    if (runs.at(-1)?.process !== process) runs.push({ process, ids: [] });
    runs.at(-1)!.ids.push(span(first, first + end - at));
    at = end;
  }
  const text = runs.map((r) => `p${r.process}: ${r.ids.join(", ")}`).join(" · ");
  return at < devices.length ? `${text}, … (${count(devices.length - at, "device")} more)` : text;
}
