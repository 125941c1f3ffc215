// Generates a Python program with JAX for the layout.

import { type ArrayDraft, type BatchDraft, type Draft, type Entry, isBatched, padded, processCount } from "./draft.js";
import { quoted } from "./quote.js";
import { specText } from "./spec-text.js";

const MAX_LISTED = 64; // devices in a literal; a longer list is read from layout.json
const WIDE = 88; // characters in a line
const SHUFFLE = "shuffle.1"; // the order that shuffle=True selects

const NARROWED = /^(u?int64|float64|complex128)$/; // types that JAX narrows unless x64 is enabled

/** jaxCode returns a program that loads the layout's batches. */
export function jaxCode(d: Draft): string {
  const fixed = d.arrays.filter((a) => !isBatched(a));
  const loads = d.batch !== null && fixed.length < d.arrays.length;
  const long = (d.devices?.length ?? 0) > MAX_LISTED;
  const processes = processCount(d);
  const standard = [...(long ? ["import json"] : []), ...(processes > 1 ? ["import os"] : []), ...(processes > 1 && loads ? ["from pathlib import Path"] : [])];
  return [
    ...(standard.length > 0 ? [...standard, ""] : []),
    "import jax",
    ...(loads || !d.devices ? ["import meshfeed as mf"] : []),
    ...(d.devices ? ["import numpy as np"] : []),
    `from jax.sharding import ${fixed.length > 0 ? "NamedSharding, " : ""}PartitionSpec as P`,
    "",
    ...(d.arrays.some((a) => NARROWED.test(a.dtype)) ? ['jax.config.update("jax_enable_x64", True)  # else 64-bit types are narrowed'] : []),
    ...(processes > 1 ? startLines(processes) : []),
    ...meshLines(d, long),
    ...(fixed.length > 0 ? ["", "shardings = {", ...fixed.map((a) => `    ${quoted(a.name)}: NamedSharding(mesh, ${spec(a.spec)}),  # ${a.dtype} ${tuple(a.shape)}`), "}"] : []),
    ...(loads ? loaderLines(d, d.batch!) : []),
    "",
  ].join("\n");
}

/** startLines connects the processes of a job. */
function startLines(processes: number): string[] {
  return [
    "given = {}",
    'if "JOB_COMPLETION_INDEX" in os.environ:  # a JobSet; JAX finds the numbers of Slurm and TPUs itself',
    `    given = {"num_processes": ${processes}, "process_id": int(os.environ["JOB_COMPLETION_INDEX"])}`,
    "jax.distributed.initialize(**given)",
    "",
  ];
}

function meshLines(d: Draft, long: boolean): string[] {
  const sizes = tuple(d.axes.map((a) => a.size));
  const names = tuple(d.axes.map((a) => quoted(a.name)));
  if (!d.devices && d.axes.length > 0) return bracketed("mesh = mf.make_mesh({", d.axes.map((a) => `${quoted(a.name)}: ${a.size}`), "})");
  if (!d.devices) return ["mesh = jax.make_mesh((), ())"];
  return [
    ...(long
      ? ['with open("layout.json") as f:  # this layout as JSON', '    ids = [i for _, i in json.load(f)["mesh"]["devices"]]']
      : bracketed("ids = [", d.devices.map(([, id]) => String(id)), "]")),
    "by_id = {d.id: d for d in jax.devices()}",
    `devices = np.array([by_id[i] for i in ids]).reshape(${sizes})`,
    `mesh = jax.sharding.Mesh(devices, ${names})`,
  ];
}

/** bracketed writes items on as few lines as possible. */
function bracketed(start: string, items: string[], end: string): string[] {
  const line = `${start}${items.join(", ")}${end}`;
  if (line.length <= WIDE) return [line];
  const rows = [""];
  for (const item of items) {
    const longer = `${rows.at(-1) || "   "} ${item},`;
    if (longer.length <= WIDE) rows[rows.length - 1] = longer;
    else rows.push(`    ${item},`);
  }
  return [start, ...rows, end];
}

/** leaf writes the value of an array in the specs. */
function leaf(a: ArrayDraft): string {
  if (a.field === null && a.columns === null) return spec(a.spec);
  const columns = Array.isArray(a.columns) ? `, columns=[${a.columns.map((c) => tuple(c as number[])).join(", ")}]` : "";
  return `mf.Array(${quoted(a.field ?? a.name)}, ${spec(a.spec)}${columns})`;
}

function loaderLines(d: Draft, b: BatchDraft): string[] {
  const order = d.dataset?.order ?? null;
  const pads = b.remainder === "pad";
  const several = processCount(d) > 1;
  const more: [string, string | null][] = [
    ["batch_size", b.size.length === 1 ? String(b.size[0]) : tuple(b.size)],
    ["shuffle", order === SHUFFLE ? "True" : null],
    ["order", order !== null && order !== SHUFFLE ? quoted(order) : null],
    ["seed", d.dataset?.seed ? String(d.dataset.seed) : null],
    ["remainder", b.remainder === "drop" ? null : quoted(b.remainder)],
    ["mask_name", pads && b.mask !== null ? quoted(b.mask) : null],
    ["mask_spec", pads && b.maskSpec ? spec(b.maskSpec) : null],
    ["extras", b.extras.length > 0 ? `[${b.extras.map(quoted).join(", ")}]` : null],
    ["prefetch", d.prefetch === 2 ? null : String(d.prefetch)],
    ["max_host_bytes", d.hostBytes === null ? null : String(d.hostBytes)],
    ["loading", d.loading === "process" ? null : quoted(d.loading)],
    ["state", several ? "saved if saved.exists() else None" : null],
  ];
  const args = more.filter(([, v]) => v !== null).map(([k, v]) => `${k}=${v}`);
  const moved = d.loading === "reshard";
  return [
    "",
    "specs = {",
    ...d.arrays.filter(isBatched).map((a) => `    ${quoted(a.name)}: ${leaf(a)},`),
    "}",
    "",
    `dataset = mf.open(${quoted(d.files ?? "train-*.arrow")})`,
    ...padded(d).map((p) => `dataset = dataset.pad(${quoted(p.name)}, length=${p.length})  # too_long="truncate" cuts longer rows`),
    ...(several ? ['saved = Path("run.state")  # on storage of all hosts'] : []),
    ...call("loader = mf.Loader(", ["dataset", "mesh", "specs", ...args]),
    ...(moved ? ["reshard = jax.jit(loader.reshard)  # better still: call it inside the training step"] : []),
    "for batch in loader:",
    ...(moved ? ["    batch = reshard(batch)"] : []),
    "    ...  # global arrays with these shardings",
    ...(several ? ["    loader.save_state(saved)  # a restart continues with the next batch"] : []),
  ];
}

/** call writes a call on one line if it fits, else with one argument per line. */
function call(start: string, args: string[]): string[] {
  const line = `${start}${args.join(", ")})`;
  if (line.length <= WIDE) return [line];
  const named = args.findIndex((a) => a.includes("="));
  return [start, `    ${args.slice(0, named).join(", ")},`, ...args.slice(named).map((a) => `    ${a},`), ")"];
}

function spec(entries: Entry[]): string {
  return specText(entries, quoted);
}

function tuple(items: (string | number)[]): string {
  return items.length === 1 ? `(${items[0]},)` : `(${items.join(", ")})`;
}
