// The layout as a Go program.

import type { ArrayDraft, Draft, Entry } from "./draft.js";

const MOST_DEVICES = 64; // spelled out; a longer list comes as a document

const TYPES: Record<string, string> = { bfloat16: "BFloat16" };

/** goCode gives a program that loads the batches of a layout, whose document is given too. */
export function goCode(d: Draft, document: string): string {
  const parsed = (d.devices?.length ?? 0) > MOST_DEVICES || d.dataset?.fields != null || document.includes("`");
  const build = parsed ? fromDocument(document) : fromValues(d);
  const imports = ["context", "log", "", ...["arrowio", ...build.imports, "core/layout", "core/loader", ...build.late].map((p) => `github.com/meshfeed/meshfeed/${p}`)];
  return [
    "package main",
    "",
    "import (",
    ...imports.map((p) => (p === "" ? "" : `\t${JSON.stringify(p)}`)),
    ")",
    "",
    ...build.lines,
    "",
    "func main() {",
    ...build.start,
    "\tif err != nil {",
    "\t\tlog.Fatal(err)",
    "\t}",
    '\tdataset, err := arrowio.Open("train-*.arrow")',
    "\tif err != nil {",
    "\t\tlog.Fatal(err)",
    "\t}",
    "\tl, err := loader.New(dataset, loader.Options{Layout: lay})",
    "\tif err != nil {",
    "\t\tlog.Fatal(err)",
    "\t}",
    "\tdefer l.Close()",
    "\tfor b, err := range l.All(context.Background()) {",
    "\t\tif err != nil {",
    "\t\t\tlog.Fatal(err)",
    "\t\t}",
    "\t\tb.Release()",
    "\t}",
    "}",
    "",
  ].join("\n");
}

interface Build {
  imports: string[];
  late: string[];
  lines: string[];
  start: string[];
}

function fromDocument(document: string): Build {
  const quoted = document.includes("`") ? JSON.stringify(document) : `\`${document}\``;
  return {
    imports: [],
    late: [],
    lines: [`const document = ${quoted}`],
    start: ["\td, err := layout.Parse([]byte(document))", "\tif err != nil {", "\t\tlog.Fatal(err)", "\t}", "\tlay, err := layout.New(d)"],
  };
}

function fromValues(d: Draft): Build {
  return {
    imports: d.arrays.length > 0 ? ["core/dtype"] : [],
    late: ["core/mesh", ...(usesSpecs(d) ? ["core/sharding"] : [])],
    lines: ["var document = layout.Document{", ...meshLines(d), ...arrayLines(d), ...restLines(d), "}"],
    start: ["\tlay, err := layout.New(&document)"],
  };
}

function usesSpecs(d: Draft): boolean {
  return d.arrays.some((a) => a.spec.length > 0) || (d.batch?.remainder === "pad" && (d.batch.maskSpec?.length ?? 0) > 0);
}

function meshLines(d: Draft): string[] {
  const owners = d.devices
    ? `Devices: []mesh.Device{${d.devices.map(([p, id]) => `{Process: ${p}, ID: ${id}}`).join(", ")}}`
    : `Processes: ${d.processes}`;
  return ["\tMesh: layout.MeshSpec{", ...columnsOf([["Axes", `[]mesh.Axis{${d.axes.map((a) => `{Name: ${str(a.name)}, Size: ${a.size}}`).join(", ")}}`], [owners.split(": ")[0]!, owners.slice(owners.indexOf(": ") + 2)]], "\t\t"), "\t},"];
}

function arrayLines(d: Draft): string[] {
  if (d.arrays.length === 0) return [];
  return ["\tArrays: []layout.ArraySpec{", ...d.arrays.map((a) => `\t\t{${arrayFields(a).join(", ")}},`), "\t},"];
}

function arrayFields(a: ArrayDraft): string[] {
  const sizes = a.shape.filter((n) => typeof n === "number");
  const fixed = a.shape.length === sizes.length;
  return [
    `Name: ${str(a.name)}`,
    ...(a.field === null ? [] : [`Field: ${str(a.field)}`]),
    ...(Array.isArray(a.columns) ? [`Columns: [][2]int{${(a.columns as number[][]).map((c) => `{${c.join(", ")}}`).join(", ")}}`] : []),
    ...(sizes.length > 0 ? [`RowShape: []int{${sizes.join(", ")}}`] : []),
    ...(fixed ? ["Static: true"] : []),
    `Type: dtype.${TYPES[a.dtype] ?? a.dtype[0]!.toUpperCase() + a.dtype.slice(1)}`,
    ...(a.spec.length > 0 ? [`Spec: ${spec(a.spec)}`] : []),
  ];
}

function restLines(d: Draft): string[] {
  const b = d.batch;
  const batch = b && [
    `Size: []int{${b.size.join(", ")}}`,
    ...(b.remainder === "drop" ? [] : [`Remainder: ${b.remainder === "pad" ? "layout.Pad" : b.remainder === "error" ? "layout.Refuse" : str(b.remainder)}`]),
    ...(b.remainder === "pad" && b.mask !== null ? [`Mask: ${str(b.mask)}`] : []),
    ...(b.remainder === "pad" && b.maskSpec ? [`MaskSpec: ${spec(b.maskSpec)}`] : []),
    ...(b.extras.length > 0 ? [`Extras: []string{${b.extras.map(str).join(", ")}}`] : []),
  ];
  const data = d.dataset && [
    `Records: ${d.dataset.records}`,
    ...(d.dataset.order === null ? [] : [`Order: ${str(d.dataset.order)}`]),
    ...(d.dataset.seed === 0 ? [] : [`Seed: ${d.dataset.seed}`]),
    ...(d.dataset.fingerprint === null ? [] : [`Fingerprint: ${str(d.dataset.fingerprint)}`]),
  ];
  const budget = [...(d.deviceBytes === null ? [] : [`DeviceBytes: ${d.deviceBytes}`]), ...(d.hostBytes === null ? [] : [`HostBytes: ${d.hostBytes}`])];
  return columnsOf([
    ...(batch ? [["Batch", `&layout.BatchSpec{${batch.join(", ")}}`] as [string, string]] : []),
    ...(data ? [["Dataset", `&layout.DatasetSpec{${data.join(", ")}}`] as [string, string]] : []),
    ...(d.loading === "process" ? [] : [["Loading", str(d.loading)] as [string, string]]),
    ...(d.prefetch === 2 ? [] : [["Prefetch", `new(${d.prefetch})`] as [string, string]]),
    ...(budget.length > 0 ? [["Budget", `layout.BudgetSpec{${budget.join(", ")}}`] as [string, string]] : []),
  ], "\t");
}

/** columnsOf writes keys and values as gofmt lines them up. */
function columnsOf(pairs: [string, string][], indent: string): string[] {
  const widest = Math.max(...pairs.map(([k]) => k.length));
  return pairs.map(([k, v]) => `${indent}${`${k}:`.padEnd(widest + 1)} ${v},`);
}

function spec(entries: Entry[]): string {
  return `sharding.PartitionSpec{${entries.map((e) => (e.length === 0 ? "nil" : `{${e.map(str).join(", ")}}`)).join(", ")}}`;
}

function str(s: string): string {
  return JSON.stringify(s);
}
