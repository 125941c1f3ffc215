// Generates a Go program for the layout.

import { type ArrayDraft, type Draft, type Entry, isBatched, padded, processCount } from "./draft.js";
import { plain, quoted } from "./quote.js";

const MAX_LISTED = 64; // devices in a literal; a longer list is parsed from a document

const TYPES: Record<string, string> = { bfloat16: "BFloat16" };

/** goCode returns a program that loads the batches of a layout. document is the layout as JSON. */
export function goCode(d: Draft, document: string): string {
  const parsed = (d.devices?.length ?? 0) > MAX_LISTED || d.dataset?.fields != null;
  const layout = parsed ? fromDocument(document) : fromValues(d);
  const loads = d.arrays.some(isBatched);
  const several = loads && processCount(d) > 1;
  return [
    "package main",
    "",
    "import (",
    ...(loads ? ['\t"context"', ...(several ? ['\t"flag"'] : [])] : ['\t"fmt"']),
    '\t"log"',
    "",
    ...[...layout.imports, ...(loads ? ["arrowio", "core/loader", ...(padded(d).length > 0 ? ["core/view"] : [])] : ["core/layout/picture"])].sort().map((path) => `\t"github.com/meshfeed/meshfeed/${path}"`),
    ")",
    "",
    ...layout.lines,
    "",
    "func main() {",
    ...(several ? [`\tprocess := flag.Int("process", 0, "the number of this process, 0 to ${processCount(d) - 1}")`, "\tflag.Parse()"] : []),
    ...layout.start,
    ...FAILED,
    ...(loads ? [...openLines(d), ...loop(several)] : ["\tfmt.Print(picture.Text(lay, picture.Options{}))"]),
    "}",
    "",
  ].join("\n");
}

const FAILED = ["\tif err != nil {", "\t\tlog.Fatal(err)", "\t}"];

/** openLines opens the file and pads its ragged fields. The last statement sets dataset. */
function openLines(d: Draft): string[] {
  const pads = padded(d);
  const name = (i: number): string => (i === pads.length ? "dataset" : i === 0 ? "opened" : `padded${i}`);
  return [
    `\t${name(0)}, err := arrowio.Open(${quoted(d.files ?? "train-*.arrow")})`,
    ...FAILED,
    ...pads.flatMap((p, i) => [`\t${name(i + 1)}, err := view.Pad(${name(i)}, ${quoted(p.name)}, view.Padding{Length: ${p.length}})`, ...FAILED]),
  ];
}

function loop(several: boolean): string[] {
  return [
    `\tl, err := loader.New(dataset, loader.Options{Layout: lay${several ? ", Process: *process" : ""}})`,
    ...FAILED,
    "\tdefer l.Close()",
    "\tfor b, err := range l.All(context.Background()) {",
    ...FAILED.map((line) => `\t${line}`),
    "\t\tb.Release()",
    "\t}",
  ];
}

/** Build is the code that makes the layout. */
interface Build {
  imports: string[]; // packages of meshfeed
  lines: string[]; // a declaration of the package
  start: string[]; // statements of main that set lay and err
}

function fromDocument(document: string): Build {
  const literal = document.includes("`") || !plain(document) ? quoted(document) : `\`${document}\``;
  return {
    imports: ["core/layout", "core/layout/document"],
    lines: [`const wanted = ${literal}`],
    start: ["\td, err := document.Parse([]byte(wanted))", ...FAILED, "\tlay, err := layout.New(d)"],
  };
}

function fromValues(d: Draft): Build {
  return {
    imports: ["core/layout", "core/mesh", ...(d.arrays.length > 0 ? ["core/dtype"] : []), ...(usesSpecs(d) ? ["core/sharding"] : [])],
    lines: ["var wanted = layout.Document{", ...meshLines(d), ...arrayLines(d), ...restLines(d), "}"],
    start: ["\tlay, err := layout.New(&wanted)"],
  };
}

function usesSpecs(d: Draft): boolean {
  return d.arrays.some((a) => a.spec.length > 0) || (d.batch?.remainder === "pad" && (d.batch.maskSpec?.length ?? 0) > 0);
}

function meshLines(d: Draft): string[] {
  const axes = d.axes.map((a) => `{Name: ${quoted(a.name)}, Size: ${a.size}}`).join(", ");
  const devices = d.devices?.map(([p, id]) => `{Process: ${p}, ID: ${id}}`).join(", ");
  const owners: [string, string] = devices === undefined ? ["Processes", String(d.processes)] : ["Devices", `[]mesh.Device{${devices}}`];
  return ["\tMesh: layout.MeshSpec{", ...columnsOf([["Axes", `[]mesh.Axis{${axes}}`], owners], "\t\t"), "\t},"];
}

function arrayLines(d: Draft): string[] {
  if (d.arrays.length === 0) return [];
  return ["\tArrays: []layout.ArraySpec{", ...d.arrays.map((a) => `\t\t{${arrayFields(a).join(", ")}},`), "\t},"];
}

function arrayFields(a: ArrayDraft): string[] {
  const sizes = a.shape.filter((n) => typeof n === "number");
  return [
    `Name: ${quoted(a.name)}`,
    ...(a.field === null ? [] : [`Field: ${quoted(a.field)}`]),
    ...(Array.isArray(a.columns) ? [`Columns: [][2]int{${(a.columns as number[][]).map((c) => `{${c.join(", ")}}`).join(", ")}}`] : []),
    ...(sizes.length > 0 ? [`RowShape: []int{${sizes.join(", ")}}`] : []),
    ...(isBatched(a) ? [] : ["Static: true"]),
    `Type: dtype.${TYPES[a.dtype] ?? a.dtype[0]!.toUpperCase() + a.dtype.slice(1)}`,
    ...(a.spec.length > 0 ? [`Spec: ${spec(a.spec)}`] : []),
  ];
}

function restLines(d: Draft): string[] {
  const b = d.batch;
  const batch = b && [
    `Size: []int{${b.size.join(", ")}}`,
    ...(b.remainder === "drop" ? [] : [`Remainder: ${b.remainder === "pad" ? "layout.Pad" : b.remainder === "error" ? "layout.Refuse" : quoted(b.remainder)}`]),
    ...(b.remainder === "pad" && b.mask !== null ? [`Mask: ${quoted(b.mask)}`] : []),
    ...(b.remainder === "pad" && b.maskSpec ? [`MaskSpec: ${spec(b.maskSpec)}`] : []),
    ...(b.extras.length > 0 ? [`Extras: []string{${b.extras.map(quoted).join(", ")}}`] : []),
  ];
  const data = d.dataset && [
    `Records: ${d.dataset.records}`,
    ...(d.dataset.order === null ? [] : [`Order: ${quoted(d.dataset.order)}`]),
    ...(d.dataset.seed === 0 ? [] : [`Seed: ${d.dataset.seed}`]),
    ...(d.dataset.fingerprint === null ? [] : [`Fingerprint: ${quoted(d.dataset.fingerprint)}`]),
  ];
  const budget = [...(d.deviceBytes === null ? [] : [`DeviceBytes: ${d.deviceBytes}`]), ...(d.hostBytes === null ? [] : [`HostBytes: ${d.hostBytes}`])];
  return columnsOf([
    ...(batch ? [["Batch", `&layout.BatchSpec{${batch.join(", ")}}`] as [string, string]] : []),
    ...(data ? [["Dataset", `&layout.DatasetSpec{${data.join(", ")}}`] as [string, string]] : []),
    ...(d.loading === "process" ? [] : [["Loading", quoted(d.loading)] as [string, string]]),
    ...(d.prefetch === 2 ? [] : [["Prefetch", `new(${d.prefetch})`] as [string, string]]),
    ...(budget.length > 0 ? [["Budget", `layout.BudgetSpec{${budget.join(", ")}}`] as [string, string]] : []),
  ], "\t");
}

/** columnsOf aligns keys and values as gofmt does. */
function columnsOf(pairs: [string, string][], indent: string): string[] {
  const widest = Math.max(...pairs.map(([k]) => k.length));
  return pairs.map(([k, v]) => `${indent}${`${k}:`.padEnd(widest + 1)} ${v},`);
}

function spec(entries: Entry[]): string {
  return `sharding.PartitionSpec{${entries.map((e) => (e.length === 0 ? "nil" : `{${e.map(quoted).join(", ")}}`)).join(", ")}}`;
}
