// Reads pasted text: JAX code, an XLA sharding, Shardy text.

import { type Axis, type Draft, type Entry, changeSpecs, deviceCount, processCount } from "./draft.js";
import { owned, setOrder } from "./device-order.js";
import { jaxMesh, jaxSpecs } from "./paste-jax.js";
import { shardyMesh, shardySpecs, tiles } from "./paste-xla.js";

/** Pasted is the mesh and the specs of a text. */
export interface Pasted {
  axes: Axis[] | null;
  unnamed: boolean; // the names of the axes are generated
  ids: number[] | null; // ids of the devices in mesh order
  specs: { name: string | null; spec: Entry[] }[];
}

/** ACCEPTED lists the forms of text that can be pasted. */
export const ACCEPTED = "a layout document, jax.make_mesh(…), Mesh('x': 4), NamedSharding(mesh, P(…)), P(…), {devices=[2,2]<=[4]}, or Shardy's sdy.mesh and #sdy.sharding";

/** paste finds meshes and specs in a text. It returns null if it finds none. It throws if a
 * mesh or a spec cannot be used. */
export function paste(text: string): Pasted | null {
  const code = text.replaceAll(/(^|\s)#(?!sdy\b).*$/gm, "$1"); // without Python's comments
  const mesh = shardyMesh(code);
  const axes = mesh?.axes ?? jaxMesh(code);
  const specs = [...shardySpecs(code).map((spec) => ({ name: null, spec })), ...jaxSpecs(code)];
  if (axes || specs.length > 0) return { axes, unnamed: false, ids: mesh?.ids ?? null, specs };
  const cut = tiles(code);
  return cut && { axes: cut.axes, unnamed: true, ids: cut.ids, specs: [{ name: null, spec: cut.spec }] };
}

/** apply puts meshes and specs into a draft. Specs without a name go to the shown array and the arrays
 * after it. */
export function apply(found: Pasted, d: Draft, shown: string): void {
  if (found.specs.length > d.arrays.length) throw new Error(`there are ${found.specs.length} specs, but ${d.arrays.length} arrays; add arrays first, or paste fewer`);
  const { axes, ids, specs } = found.unnamed ? named(found, d.axes) : found;
  if (axes) setMesh(d, axes, ids);
  const known = d.axes.map((a) => a.name);
  if (axes && specs.length > 0) changeSpecs(d, (e) => e.filter((n) => known.includes(n)));
  const at = Math.max(0, d.arrays.findIndex((a) => a.name === shown));
  const free = [...d.arrays.slice(at), ...d.arrays.slice(0, at)].filter((a) => !specs.some((s) => s.name === a.name));
  for (const { name, spec } of specs) (d.arrays.find((a) => a.name === name) ?? free.shift())!.spec = spec;
}

function setMesh(d: Draft, axes: Axis[], ids: number[] | null): void {
  const processes = processCount(d);
  d.axes = axes;
  d.processes = deviceCount(d) % processes === 0 ? processes : 1;
  d.devices = null;
  if (ids) setOrder(d, owned(ids, d.processes));
}

/** named renames generated axes to the axes in like, if these have the same sizes. */
function named(found: Pasted, like: Axis[]): Pasted {
  const { axes } = found;
  if (!axes || axes.length !== like.length || axes.some((a, i) => a.size !== like[i]!.size)) return found;
  const names = new Map(axes.map((a, i) => [a.name, like[i]!.name]));
  return { ...found, axes: like, specs: found.specs.map(({ name, spec }) => ({ name, spec: spec.map((e) => e.map((n) => names.get(n)!)) })) };
}
