// What people paste: lines of JAX, an XLA sharding, Shardy text.

import type { Axis, Draft, Entry } from "./draft.js";
import { deviceCount } from "./draft.js";
import { parseSpec } from "./spec-text.js";

/** Pasted is what was found in a text. */
export interface Pasted {
  axes: Axis[] | null;
  ids: number[] | null; // of the devices in mesh order
  specs: { name: string | null; spec: Entry[] }[];
}

/** UNDERSTOOD says what paste reads. */
export const UNDERSTOOD = "a layout document, jax.make_mesh(…), Mesh('x': 4), NamedSharding(mesh, P(…)), P(…), {devices=[2,2]<=[4]}, or Shardy's sdy.mesh and #sdy.sharding";

/** paste finds meshes and specs in a text; null where there are none. It throws what says why
 * something that it knows cannot be used. */
export function paste(text: string): Pasted | null {
  const axes = shardyMesh(text) ?? jaxMesh(text);
  const specs = [...shardySpecs(text), ...jaxSpecs(text)];
  if (axes || specs.length > 0) return { axes, ids: null, specs };
  return tiles(text);
}

/** apply puts what was found into a draft. Specs without a name go to the array that is shown, and
 * then to those after it. */
export function apply(found: Pasted, d: Draft, shown: string): void {
  if (found.axes) {
    d.axes = found.axes;
    d.devices = found.ids?.map((id): [number, number] => [0, id]) ?? null;
    if (found.ids || deviceCount(d) % d.processes !== 0) d.processes = 1;
    const known = d.axes.map((a) => a.name);
    if (found.specs.length > 0) for (const a of d.arrays) a.spec = a.spec.map((e) => e.filter((n) => known.includes(n)));
  }
  let at = Math.max(0, d.arrays.findIndex((a) => a.name === shown));
  for (const { name, spec } of found.specs) {
    const array = d.arrays.find((a) => a.name === name) ?? d.arrays[at++ % d.arrays.length];
    if (array) array.spec = spec;
  }
}

const QUOTED = /(['"])(.*?)\1/g;

function names(text: string): string[] {
  return [...text.matchAll(QUOTED)].map((m) => m[2]!);
}

function jaxMesh(text: string): Axis[] | null {
  const printed = /Mesh\(((?:\s*'[^']*':\s*\d+,?)+)/.exec(text);
  if (printed) return [...printed[1]!.matchAll(/'([^']*)':\s*(\d+)/g)].map((m) => ({ name: m[1]!, size: Number(m[2]) }));
  const made = /(?:make_mesh|AbstractMesh)\(\s*[([]([\d,\s]+)[)\]]\s*,\s*(?:axis_names\s*=\s*)?[([]([^)\]]*)[)\]]/.exec(text);
  const shaped = made ?? /Mesh\([^]*?reshape\(\s*\(?([\d,\s]+)\)?\s*\)\s*,\s*(?:axis_names\s*=\s*)?[([]([^)\]]*)[)\]]/.exec(text);
  if (!shaped) return null;
  const sizes = shaped[1]!.split(",").map((s) => s.trim()).filter(Boolean).map(Number);
  const called = names(shaped[2]!);
  if (sizes.length !== called.length) throw new Error(`the mesh has ${sizes.length} sizes and ${called.length} names`);
  return called.map((name, i) => ({ name, size: sizes[i]! }));
}

function jaxSpecs(text: string): Pasted["specs"] {
  const out: Pasted["specs"] = [];
  for (const m of text.matchAll(/(?:(?:(['"])([^'"\n]+)\1\s*:|\b(\w+)\s*[:=])\s*)?(?:(?:jax\.)?(?:sharding\.)?NamedSharding\([^]*?)?\b(?:P|PartitionSpec)\(/g)) {
    const start = m.index + m[0].length;
    const inner = text.slice(start, closing(text, start));
    const spec = parseSpec(inner);
    const name = m[2] ?? m[3] ?? null;
    if (!spec) throw new Error(`P(${inner}) is no spec`);
    out.push({ name: name === "spec" ? null : name, spec });
  }
  return out;
}

/** closing gives the place of the parenthesis that ends what begins at a place. */
function closing(text: string, at: number): number {
  for (let depth = 1; at < text.length; at++) {
    if (text[at] === "(") depth++;
    if (text[at] === ")" && --depth === 0) return at;
  }
  return at;
}

function shardyMesh(text: string): Axis[] | null {
  const found = /<\[((?:\s*"[^"]+"\s*=\s*\d+\s*,?)+)\]/.exec(text);
  return found ? [...found[1]!.matchAll(/"([^"]+)"\s*=\s*(\d+)/g)].map((m) => ({ name: m[1]!, size: Number(m[2]) })) : null;
}

function shardySpecs(text: string): Pasted["specs"] {
  return [...text.matchAll(/<@\w+,\s*\[((?:\s*\{[^}]*\}(?:p\d+)?\s*,?)*)\]/g)].map((m) => {
    if (/"\s*:\s*\(/.test(m[1]!)) throw new Error("a part of an axis, such as \"x\":(1)2, cannot be written as a partition spec");
    return { name: null, spec: [...m[1]!.matchAll(/\{([^}]*)\}/g)].map((e) => names(e[1]!)) };
  });
}

/** tiles reads XLA's devices=[2,2]<=[4], with an order T(1,0) or a list of devices. */
function tiles(text: string): Pasted | null {
  const found = /devices=\[([\d,]+)\](?:<=\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))([^}]*)/.exec(text);
  if (!found) return null;
  const numbers = (s: string): number[] => s.split(",").map(Number);
  const cut = numbers(found[1]!);
  const last = /last_tile_dim_replicate/.test(found[5]!);
  const from = found[2] ? numbers(found[2]) : [cut.reduce((a, b) => a * b, 1)];
  const order = found[3] ? numbers(found[3]) : from.map((_, i) => i);
  const { axes, entries } = factored(cut, from, order);
  const ids = found[4] ? numbers(found[4]) : null;
  return { axes, ids, specs: [{ name: null, spec: last ? entries.slice(0, -1) : entries }] };
}

/** factored finds axes whose order in the mesh is that of the devices, and which the tiles are made of. */
function factored(cut: number[], from: number[], order: number[]): { axes: Axis[]; entries: Entry[] } {
  const pieces: { dim: number; size: number; name: string }[] = [];
  const left = order.map((dim) => ({ dim, size: from[dim]! }));
  const entries = cut.map((want): Entry => {
    const entry: Entry = [];
    while (want > 1) {
      const next = left[0];
      if (!next) throw new Error("the tiles are more than the devices");
      const size = gcd(want, next.size);
      if (next.size > 1 && size === 1) throw new Error("the tiles do not divide into the devices");
      if (next.size > 1) {
        const name = `axis${pieces.length}`;
        pieces.push({ dim: next.dim, size, name });
        entry.push(name);
      }
      want /= size;
      next.size /= size;
      if (next.size <= 1) left.shift();
    }
    return entry;
  });
  const axes = pieces.map((p, i) => ({ ...p, i })).sort((a, b) => a.dim - b.dim || a.i - b.i);
  return { axes: axes.map(({ name, size }) => ({ name, size })), entries };
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}
