// The layout as a Python program for JAX.

import type { ArrayDraft, Draft, Entry } from "./draft.js";

const MOST_DEVICES = 64; // spelled out

/** jaxCode gives a program that loads the layout's batches. */
export function jaxCode(d: Draft): string {
  const loaded = d.arrays.filter((a) => typeof a.shape[0] === "string");
  const fixed = d.arrays.filter((a) => typeof a.shape[0] !== "string");
  const columns = loaded.some((a) => a.field !== null || a.columns !== null);
  return [
    "import jax",
    "import meshfeed as mf",
    ...(d.devices && d.devices.length <= MOST_DEVICES ? ["import numpy as np"] : []),
    `from jax.sharding import ${fixed.length > 0 ? "NamedSharding, " : ""}PartitionSpec as P`,
    "",
    ...meshLines(d),
    ...(fixed.length > 0 ? ["", ...fixed.map((a) => `${word(a.name)} = NamedSharding(mesh, ${spec(a.spec)})  # ${a.dtype} ${tuple(a.shape.map(Number))}`)] : []),
    ...(loaded.length > 0 && d.batch ? ["", "specs = {", ...loaded.map((a) => `    ${str(a.name)}: ${leaf(a, columns)},`), "}", ...loaderLines(d)] : []),
    "",
  ].join("\n");
}

function meshLines(d: Draft): string[] {
  const call = `jax.make_mesh(${tuple(d.axes.map((a) => a.size))}, ${tuple(d.axes.map((a) => str(a.name)))})`;
  if (!d.devices) return [`mesh = ${call}`];
  const ids = d.devices.map(([, id]) => id);
  if (ids.length > MOST_DEVICES) return ["# the devices stand in an order of their own, which the JSON tells", `mesh = ${call}`];
  return [
    "by_id = {d.id: d for d in jax.devices()}",
    `order = np.array([by_id[i] for i in ${list(ids)}])`,
    `mesh = jax.sharding.Mesh(order.reshape${tuple(d.axes.map((a) => a.size))}, ${tuple(d.axes.map((a) => str(a.name)))})`,
  ];
}

function leaf(a: ArrayDraft, any: boolean): string {
  if (!any || (a.field === null && a.columns === null)) return spec(a.spec);
  const columns = Array.isArray(a.columns) ? `, columns=[${a.columns.map((c) => tuple(c as number[])).join(", ")}]` : "";
  return `mf.Array(${str(a.field ?? a.name)}, ${spec(a.spec)}${columns})`;
}

function loaderLines(d: Draft): string[] {
  const b = d.batch!;
  const order = d.dataset?.order;
  const more: [string, string | null][] = [
    ["batch_size", b.size.length === 1 ? String(b.size[0]) : tuple(b.size)],
    ["shuffle", order?.startsWith("shuffle.") ? "True" : null],
    ["order", order && !order.startsWith("shuffle.") ? str(order) : null],
    ["seed", d.dataset?.seed ? String(d.dataset.seed) : null],
    ["remainder", b.remainder === "drop" ? null : str(b.remainder)],
    ["mask_name", b.remainder === "pad" && b.mask !== null ? str(b.mask) : null],
    ["mask_spec", b.remainder === "pad" && b.maskSpec ? spec(b.maskSpec) : null],
    ["extras", b.extras.length > 0 ? list(b.extras.map(str)) : null],
    ["prefetch", d.prefetch === 2 ? null : String(d.prefetch)],
    ["max_host_bytes", d.hostBytes === null ? null : String(d.hostBytes)],
    ["loading", d.loading === "process" ? null : str(d.loading)],
  ];
  const args = more.filter(([, v]) => v !== null).map(([k, v]) => `${k}=${v}`);
  return ["", 'dataset = mf.open("train-*.arrow")', ...call("loader = mf.Loader(", ["dataset", "mesh", "specs", ...args]), "for batch in loader:", "    ...  # global arrays with these shardings"];
}

/** call writes a call on one line where there is room, else with one argument to a line. */
function call(start: string, args: string[]): string[] {
  const line = `${start}${args.join(", ")})`;
  if (line.length <= 88) return [line];
  const named = args.findIndex((a) => a.includes("="));
  return [start, `    ${args.slice(0, named).join(", ")},`, ...args.slice(named).map((a) => `    ${a},`), ")"];
}

function spec(entries: Entry[]): string {
  return `P(${entries.map((e) => (e.length === 0 ? "None" : e.length === 1 ? str(e[0]!) : tuple(e.map(str)))).join(", ")})`;
}

function tuple(items: (string | number)[]): string {
  return items.length === 1 ? `(${items[0]},)` : `(${items.join(", ")})`;
}

function list(items: (string | number)[]): string {
  return `[${items.join(", ")}]`;
}

function str(s: string): string {
  return JSON.stringify(s);
}

/** word makes a name that Python accepts. */
function word(name: string): string {
  const clean = name.replaceAll(/\W+/g, "_");
  return /^[A-Za-z_]/.test(clean) ? clean : `array_${clean}`;
}
