// Finds meshes and specs in Python code.

import type { Axis, Entry } from "./draft.js";
import { parseSpec } from "./spec-text.js";

/** jaxMesh finds make_mesh(…), AbstractMesh(…), Mesh(…), or the text that JAX prints for a mesh. */
export function jaxMesh(text: string): Axis[] | null {
  const meshes = [...text.matchAll(/\b(?:make_mesh|AbstractMesh|Mesh)\(/g)].map((m) => meshOf(inside(text, m.index + m[0].length), text));
  const [first, ...others] = meshes;
  if (!first) return null;
  if (others.some((axes) => JSON.stringify(axes) !== JSON.stringify(first))) throw new Error("the text contains several different meshes; paste one of them");
  return first;
}

/** meshOf parses the arguments of a call. If they give no sizes, it searches text for the shape of the devices. */
function meshOf(call: string, text: string): Axis[] {
  const printed = [...call.matchAll(/(['"])([^'"]*)\1\s*:\s*(\d+)/g)];
  if (printed.length > 0) return printed.map((m) => ({ name: m[2]!, size: Number(m[3]) }));
  const args = argumentsOf(call);
  const find = (at: number, key: RegExp): string => args.find((a) => key.test(a.key))?.value ?? args.filter((a) => a.key === "")[at]?.value ?? "";
  const shape = find(0, /^axis_(shapes|sizes)$/) || find(0, /^devices$/);
  const pairs = [...shape.matchAll(/\(\s*(['"])([^'"]*)\1\s*,\s*(\d+)\s*\)/g)];
  if (pairs.length > 0) return pairs.map((m) => ({ name: m[2]!, size: Number(m[3]) }));
  const sizes = numbers(shape, text);
  const called = strings(find(1, /^axis_names$/));
  if (sizes.length !== called.length) throw new Error(`the mesh has ${sizes.length} sizes and ${called.length} names`);
  return called.map((name, i) => ({ name, size: sizes[i]! }));
}

/** numbers parses the sizes of a mesh: a tuple, or the shape of an array of devices. */
function numbers(value: string, text: string): number[] {
  const tuple = /^[([]([\d,\s]*)[)\]]$/.exec(value);
  const shaped = tuple ?? reshaped(value) ?? reshaped(text);
  if (!shaped) throw new Error(`the sizes of the mesh are ${value || "missing"}, but numbers are expected: make_mesh((4, 2), …), or reshape(4, 2)`);
  return shaped[1]!.split(",").map((s) => s.trim()).filter(Boolean).map(Number);
}

/** reshaped matches the shape in a call such as reshape(4, 2). */
function reshaped(value: string): RegExpExecArray | null {
  return /(?:reshape|create_device_mesh|create_hybrid_device_mesh)\(\s*(?:mesh_shape\s*=\s*)?[([]?\s*(\d[\d,\s]*)[)\]]/.exec(value);
}

/** argumentsOf splits the arguments of a call. The key of a positional argument is "". */
function argumentsOf(call: string): { key: string; value: string }[] {
  const parts = [""];
  for (let at = 0, depth = 0; at < call.length; at++) {
    const c = call[at]!;
    if ("([{".includes(c)) depth++;
    if (")]}".includes(c)) depth--;
    if (c === "," && depth === 0) parts.push("");
    else parts[parts.length - 1] += c;
  }
  return parts.map((part) => {
    const [, key, value] = /^\s*(?:(\w+)\s*=\s*)?([^]*?)\s*$/.exec(part)!;
    return { key: key ?? "", value: value! };
  });
}

/** jaxSpecs finds P(…) and PartitionSpec(…), with the names that they are assigned to. */
export function jaxSpecs(text: string): { name: string | null; spec: Entry[] }[] {
  const calls = [...text.matchAll(/\bNamedSharding\(/g)].map((m) => ({ at: m.index, end: m.index + m[0].length + inside(text, m.index + m[0].length).length }));
  return [...text.matchAll(/(?:\b[\w.]*\.)?\b(?:P|PartitionSpec)\(/g)].map((m) => {
    const body = inside(text, m.index + m[0].length);
    if (/\bUNCONSTRAINED\b/.test(body)) throw new Error(`P(${body}) leaves a dimension to the compiler; expected None or axes`);
    const spec = parseSpec(body);
    if (!spec) throw new Error(`P(${body}) is not a spec; expected axes and None, such as P('data', None)`);
    const call = calls.find((c) => c.at < m.index && m.index < c.end);
    return { name: nameBefore(text.slice(0, call?.at ?? m.index)), spec };
  });
}

/** nameBefore returns the name that a text ends with, as a key or as an assignment: 'x': or x =. */
function nameBefore(text: string): string | null {
  const m = /(?:(['"])([^'"\n]+)\1\s*:|\b(\w+)\s*(?::\s*[\w.]+\s*)?[:=])\s*(?:[\w.]+\.)?$/.exec(text);
  return m?.[2] ?? m?.[3] ?? null;
}

/** inside returns the text up to the matching parenthesis. start follows the opening one. */
function inside(text: string, start: number): string {
  let at = start;
  for (let depth = 1; at < text.length; at++) {
    if ("([{".includes(text[at]!)) depth++;
    if (")]}".includes(text[at]!) && --depth === 0) break;
  }
  if (at === text.length) throw new Error(`a parenthesis is not closed: ${/[\w.]*\($/.exec(text.slice(0, start))![0]}${text.slice(start, start + 24)}…`);
  return text.slice(start, at);
}

/** strings returns the quoted strings of a text. */
export function strings(text: string): string[] {
  return [...text.matchAll(/(['"])(.*?)\1/g)].map((m) => m[2]!);
}
