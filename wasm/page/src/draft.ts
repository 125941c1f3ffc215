// A draft is a layout document while it is edited. It may be invalid, because only the layout core checks
// documents. The core is the Go code that guest.ts calls.

import { type Json, type JsonObject, read, write } from "./json.js";
import { product, whole } from "./units.js";

export interface Axis {
  name: string;
  size: number;
}

/** Entry names the axes that partition one dimension; it is empty for a whole dimension. */
export type Entry = string[];

export interface ArrayDraft {
  name: string;
  field: string | null;
  columns: Json;
  shape: (number | string)[];
  names: (string | null)[]; // names of sizes; only the form has them, documents do not
  dtype: string;
  spec: Entry[];
}

export interface BatchDraft {
  size: number[];
  remainder: string;
  mask: string | null;
  maskSpec: Entry[] | null;
  extras: string[];
}

export interface DatasetDraft {
  records: number;
  fields: Json;
  fingerprint: string | null;
  order: string | null;
  seed: number;
}

/** RaggedField is a field of the opened file with rows of different lengths. */
export interface RaggedField {
  name: string;
  dtype: string;
  element: number[]; // the shape behind the first dimension
}

/** FormOnly is what only the page knows. Documents do not have it. */
export interface FormOnly {
  files: string | null; // the name of the data file that was opened last
  ragged: RaggedField[]; // ragged fields of that file
  hosts: string[]; // the names of the processes' hosts; empty if unknown
  stepMs: number | null; // how long a step takes
}

const UNKNOWN: FormOnly = { files: null, ragged: [], hosts: [], stepMs: null };

export interface Draft extends FormOnly {
  axes: Axis[];
  processes: number;
  perProcess: number | null; // devices per process, as typed; only the form has it
  devices: [number, number][] | null; // [process, id] in mesh order; null for row-major
  arrays: ArrayDraft[];
  batch: BatchDraft | null;
  dataset: DatasetDraft | null;
  loading: string;
  prefetch: number;
  deviceBytes: number | null;
  hostBytes: number | null;
}

/** EMPTY is the smallest valid document. */
export const EMPTY = '{"meshfeed":1,"mesh":{"axes":[["data",1]]},"arrays":{}}';

export const LOADINGS = ["process", "global", "device", "reshard"] as const;

/** batchRows returns the rows of a batch, or 0 without a batch. */
export function batchRows(draft: Draft): number {
  return draft.batch ? product(draft.batch.size) : 0;
}

/** parse builds the draft of a document that the core accepts. */
export function parse(text: string): Draft {
  const doc = read(text) as JsonObject;
  const mesh = doc.get("mesh") as JsonObject;
  const budget = (doc.get("budget") ?? new Map()) as JsonObject;
  return {
    axes: (mesh.get("axes") as [string, number][]).map(([name, size]) => ({ name, size })),
    processes: (mesh.get("processes") ?? 1) as number,
    perProcess: null,
    devices: (mesh.get("devices") ?? null) as [number, number][] | null,
    arrays: [...(doc.get("arrays") as JsonObject)].map(([name, a]) => parseArray(name, a as JsonObject)),
    batch: parseBatch(doc.get("batch") as JsonObject | undefined),
    dataset: parseDataset(doc.get("dataset") as JsonObject | undefined),
    loading: (doc.get("loading") ?? "process") as string,
    prefetch: (doc.get("prefetch") ?? 2) as number,
    deviceBytes: (budget.get("device_bytes") ?? null) as number | null,
    hostBytes: (budget.get("host_bytes") ?? null) as number | null,
    ...structuredClone(UNKNOWN),
  };
}

function parseArray(name: string, a: JsonObject): ArrayDraft {
  return {
    name,
    field: (a.get("field") ?? null) as string | null,
    columns: a.get("columns") ?? null,
    shape: a.get("shape") as (number | string)[],
    names: [],
    dtype: a.get("dtype") as string,
    spec: parseSpec(a.get("spec")) ?? [],
  };
}

function parseSpec(spec: Json | undefined): Entry[] | null {
  if (!Array.isArray(spec)) return null;
  return spec.map((e) => (e === null ? [] : Array.isArray(e) ? (e as string[]) : [e as string]));
}

function parseBatch(b: JsonObject | undefined): BatchDraft | null {
  if (!b) return null;
  const size = b.get("size") as number | number[];
  return {
    size: Array.isArray(size) ? size : [size],
    remainder: (b.get("remainder") ?? "drop") as string,
    mask: (b.get("mask") ?? null) as string | null,
    maskSpec: parseSpec(b.get("mask_spec")),
    extras: (b.get("extras") ?? []) as string[],
  };
}

function parseDataset(d: JsonObject | undefined): DatasetDraft | null {
  if (!d) return null;
  return {
    records: d.get("records") as number,
    fields: d.get("fields") ?? null,
    fingerprint: (d.get("fingerprint") ?? null) as string | null,
    order: (d.get("order") ?? null) as string | null,
    seed: (d.get("seed") ?? 0) as number,
  };
}

/** compose builds the document of a draft. It leaves out values that are the default. */
export function compose(d: Draft): JsonObject {
  const doc: JsonObject = new Map<string, Json>([["meshfeed", 1]]);
  const mesh: JsonObject = new Map<string, Json>([["axes", d.axes.map((a) => [a.name, a.size])]]);
  if (d.devices) mesh.set("devices", d.devices);
  else if (d.processes !== 1) mesh.set("processes", d.processes);
  doc.set("mesh", mesh);
  doc.set("arrays", new Map(d.arrays.map((a) => [a.name, composeArray(a)])));
  if (d.batch) doc.set("batch", composeBatch(d.batch));
  if (d.dataset) doc.set("dataset", composeDataset(d.dataset, padded(d)));
  if (d.loading !== "process") doc.set("loading", d.loading);
  if (d.prefetch !== 2) doc.set("prefetch", d.prefetch);
  const budget = present([["device_bytes", d.deviceBytes], ["host_bytes", d.hostBytes]]);
  if (budget.size > 0) doc.set("budget", budget);
  return doc;
}

/** text returns the text of a draft's document. */
export function text(d: Draft): string {
  return write(compose(d));
}

/** present makes an object of the pairs with values that are not null. */
function present(pairs: [string, Json][]): JsonObject {
  return new Map(pairs.filter(([, v]) => v !== null));
}

function composeSpec(spec: Entry[]): Json {
  return spec.map((e) => (e.length === 0 ? null : e.length === 1 ? e[0]! : e));
}

function composeArray(a: ArrayDraft): JsonObject {
  return present([
    ["field", a.field],
    ["columns", a.columns],
    ["shape", a.shape],
    ["dtype", a.dtype],
    ["spec", a.spec.length > 0 ? composeSpec(a.spec) : null],
  ]);
}

function composeBatch(b: BatchDraft): JsonObject {
  return present([
    ["size", b.size.length === 1 ? b.size[0]! : b.size],
    ["remainder", b.remainder === "drop" ? null : b.remainder],
    ["mask", b.remainder === "pad" ? b.mask : null],
    ["mask_spec", b.remainder === "pad" && b.maskSpec ? composeSpec(b.maskSpec) : null],
    ["extras", b.extras.length > 0 ? b.extras : null],
  ]);
}

function composeDataset(d: DatasetDraft, pads: Padded[]): JsonObject {
  const lengths = pads.map((p): [string, Json] => [p.name, new Map<string, Json>([["shape", [p.length, ...p.element]], ["dtype", p.dtype]])]);
  return present([
    ["records", d.records],
    ["fields", d.fields instanceof Map ? new Map([...d.fields, ...lengths]) : d.fields],
    ["fingerprint", d.fingerprint],
    ["order", d.order],
    ["seed", d.seed === 0 ? null : d.seed],
  ]);
}

/** Padded is a ragged field that the layout pads to a length. */
export interface Padded extends RaggedField {
  length: number;
}

/** padded lists the ragged fields that arrays of the batch use. The length is the array's first row dimension. */
export function padded(d: Draft): Padded[] {
  return d.ragged.flatMap((field) => {
    const user = d.arrays.find((a) => (a.field ?? a.name) === field.name && isBatched(a));
    const length = user?.shape.find((n) => typeof n === "number");
    return typeof length === "number" ? [{ ...field, length }] : [];
  });
}

/** pad adds the array of a ragged field, and the array of its rows' own lengths. */
export function pad(d: Draft, field: RaggedField, length: number): void {
  d.batch ??= newBatch();
  const spec = d.axes.slice(0, 1).map((a) => [a.name]);
  const array = (name: string, shape: number[], dtype: string): ArrayDraft => ({ name, field: null, columns: null, shape: [...batchDims(d), ...shape], names: [], dtype, spec: structuredClone(spec) });
  d.arrays.push(array(field.name, [length, ...field.element], field.dtype), array(`${field.name}_length`, [], "int32"));
  if (d.dataset?.fields instanceof Map) d.dataset.fields.set(`${field.name}_length`, new Map<string, Json>([["shape", []], ["dtype", "int32"]]));
}

/** sizes returns the sizes that have a name, by name. */
export function sizes(d: Draft): Map<string, number> {
  const named = d.arrays.flatMap((a) => a.shape.map((size, i) => [a.names[i], size] as const));
  return new Map(named.filter((pair): pair is [string, number] => typeof pair[0] === "string" && typeof pair[1] === "number"));
}

/** resize sets a named size in all arrays. */
export function resize(d: Draft, name: string, size: number | string): void {
  for (const a of d.arrays) a.shape = a.shape.map((old, i) => (a.names[i] === name ? size : old));
}

/** deviceCount returns the number of devices of a draft's mesh. */
export function deviceCount(d: Draft): number {
  return product(d.axes.map((a) => a.size));
}

/** axesText lists axes with their sizes. */
export function axesText(axes: Axis[]): string {
  return axes.map((a) => `${a.name} ${whole(a.size)}`).join(" × ") || "no axes";
}

/** isBatched reports whether an array has a batch dimension. */
export function isBatched(a: ArrayDraft): boolean {
  return typeof a.shape[0] === "string";
}

/** changeSpecs replaces every entry of every spec by change(entry). */
export function changeSpecs(d: Draft, change: (entry: Entry) => Entry): void {
  for (const a of d.arrays) a.spec = a.spec.map(change);
  if (d.batch?.maskSpec) d.batch.maskSpec = d.batch.maskSpec.map(change);
}

/** addAxis inserts an axis with a new name. */
export function addAxis(d: Draft, at: number, size: number): Axis {
  const used = d.axes.map((a) => a.name);
  const names = used.includes("fsdp") && !used.includes("model") ? ["tensor", "data", "seq", "expert", "stage"] : ["data", "model", "fsdp", "seq", "expert", "stage"];
  const name = names.find((n) => !used.includes(n)) ?? `axis${d.axes.length}`;
  d.axes.splice(at, 0, { name, size });
  return d.axes[at]!;
}

/** addArray adds an array of the batch, partitioned like the first one. */
export function addArray(d: Draft): void {
  let n = d.arrays.length;
  while (d.arrays.some((a) => a.name === `x${n}`)) n++;
  const first = d.arrays[0]?.spec.slice(0, 1).map((e) => [...e]) ?? d.axes.slice(0, 1).map((a) => [a.name]);
  d.batch ??= newBatch();
  d.arrays.push({ name: `x${n}`, field: null, columns: null, shape: batchDims(d), names: [], dtype: "float32", spec: first });
}

/** newBatch returns the default batch. */
export function newBatch(): BatchDraft {
  return { size: [256], remainder: "drop", mask: null, maskSpec: null, extras: [] };
}

/** batchDims returns the names of the batch dimensions, which begin a shape. */
export function batchDims(d: Draft): string[] {
  const n = d.batch?.size.length ?? 0;
  return n === 1 ? ["B"] : Array.from({ length: n }, (_, i) => `B${i}`);
}

/** hostOf returns the name of a process's host, "" if it is unknown. After a change of the mesh, names that do not match
 * its processes are not used. */
export function hostOf(d: Draft, process: number): string {
  return d.hosts.length === processCount(d) ? d.hosts[process]! : "";
}

/** processCount returns the number of processes of a draft's mesh. */
export function processCount(d: Draft): number {
  return d.devices ? new Set(d.devices.map(([p]) => p)).size : d.processes;
}
