// A strategy document while it is edited. It may be invalid, because only the planner checks documents.

import type { Candidate } from "./advice.js";
import { sizeOf } from "./candidate.js";
import { type Json, type JsonObject, read } from "./json.js";
import { steps } from "./pointer.js";

/** FIRST is the document that the page opens if nothing else is given. */
export const FIRST = '{"meshfeed":1,"model":{"preset":"llama3-8b"},"training":{"batch":64},"cluster":{"device":"h100-80","devices":8}}';

/** kindOf returns the kind of document that a text is by the names of its members, or null for another text. */
export function kindOf(text: string): "layout" | "strategy" | null {
  try {
    const value = read(text);
    if (!(value instanceof Map)) return null;
    const has = (...keys: string[]): boolean => keys.some((key) => value.has(key));
    return has("mesh", "arrays") ? "layout" : has("model", "training", "cluster") ? "strategy" : null;
  } catch {
    return null;
  }
}

/** at returns the value at a path of a document, or undefined. */
export function at(document: Json, path: string): Json | undefined {
  let value: Json | undefined = document;
  for (const key of steps(path)) value = value instanceof Map ? value.get(key) : Array.isArray(value) ? value[Number(key)] : undefined;
  return value;
}

/** numberAt returns the number at a path, or null. */
export function numberAt(document: Json, path: string): number | null {
  const value = at(document, path);
  return typeof value === "number" ? value : null;
}

/** textAt returns the string at a path, or "". */
export function textAt(document: Json, path: string): string {
  const value = at(document, path);
  return typeof value === "string" ? value : "";
}

/** put sets the value at a path, and makes the objects above it if they are missing. undefined removes the value and
 * the objects above it that become empty, but no section that every document has. */
export function put(document: JsonObject, path: string, value: Json | undefined): void {
  const keys = steps(path);
  const last = keys.pop()!;
  const way = [document];
  for (const key of keys) {
    const object = way.at(-1)!;
    let next = object.get(key);
    if (!(next instanceof Map)) object.set(key, (next = new Map<string, Json>()));
    way.push(next);
  }
  if (value !== undefined) {
    way.at(-1)!.set(last, value);
    return;
  }
  way.at(-1)!.delete(last);
  for (let i = way.length - 1; i > 0 && way[i]!.size === 0; i--) if (i > 1 || OPTIONAL.has(keys[0]!)) way[i - 1]!.delete(keys[i - 1]!);
}

/** The sections that a document may lack. */
const OPTIONAL = new Set(["search", "input"]);

/** FORMS lists the ways to describe a model. */
export const FORMS = ["preset", "transformer", "parameters", "tree"] as const;
export type Form = (typeof FORMS)[number];

/** formOf returns how the document describes its model. */
export function formOf(document: Json): Form {
  return FORMS.find((f) => at(document, `/model/${f}`) !== undefined) ?? "transformer";
}

/** sequencePath returns the path of the sequence length, or null if the model has none. */
export function sequencePath(document: Json): string | null {
  return ["preset", "transformer"].includes(formOf(document)) ? "/model/transformer/sequence" : null;
}

/** batchPath returns the path of the global batch, which counts examples or tokens. */
export function batchPath(document: Json): "/training/batch" | "/training/tokens" {
  return at(document, "/training/tokens") === undefined ? "/training/batch" : "/training/tokens";
}

const AXES = ["pipe", "data", "fsdp", "expert", "context", "tensor"]; // axes of a candidate's mesh
const UNLIMITED = 2 ** 50; // bytes

/** narrowed returns the document that asks about one candidate. The memory is unlimited, so that the planner also
 * reports the communication of a candidate that does not fit. */
export function narrowed(document: JsonObject, c: Candidate): JsonObject {
  const copy = structuredClone(document);
  put(copy, "/training/micro_batch", c.micro_batch);
  put(copy, "/training/recomputation", c.recomputation);
  put(copy, "/cluster/memory_bytes", UNLIMITED);
  put(copy, "/search", new Map<string, Json>([["axes", new Map(AXES.map((axis) => [axis, sizeOf(c, axis)]))], ["zero", [c.zero]], ["keep", 1]]));
  return copy;
}
