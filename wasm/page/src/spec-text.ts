// Parses and formats specs and shapes: P(('data', 'fsdp'), None) and B, 8192.

import type { Entry } from "./draft.js";

/** specText formats a spec as JAX does. write formats each axis name. */
export function specText(spec: Entry[], write = quote): string {
  const entry = (e: Entry): string =>
    e.length === 0 ? "None" : e.length === 1 ? write(e[0]!) : `(${e.map(write).join(", ")})`;
  return `P(${spec.map(entry).join(", ")})`;
}

/** quote writes a name as Python does: in double quotes if it contains a single quote. */
function quote(name: string): string {
  const mark = name.includes("'") ? '"' : "'";
  return mark + name.replaceAll(/[\\"]/g, (c) => (c === "\\" || c === mark ? `\\${c}` : c)) + mark;
}

/** parseSpec parses P(…), PartitionSpec(…) or only the text between the parentheses. Quotes around names
 * are optional. It returns null if the text is not a spec. */
export function parseSpec(text: string): Entry[] | null {
  const body = text.trim().replace(/^(?:[\w.]*\.)?(?:P|PartitionSpec)\s*\(([^]*)\)$/, "$1");
  const tokens = body.match(/[()[\],]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s()[\],'"]+/g) ?? [];
  const out: Entry[] = [];
  let at = 0;
  while (at < tokens.length) {
    const e = entryAt(tokens, at);
    if (!e) return null;
    out.push(e.entry);
    at = e.next;
    if (at < tokens.length && tokens[at++] !== ",") return null;
  }
  return out;
}

/** Matches tokens without quotes that cannot be the name of an axis: code, or UNCONSTRAINED. */
const NO_NAME = /^[^'"]*(?:[=*{}]|\bUNCONSTRAINED$)/;

function entryAt(tokens: string[], at: number): { entry: Entry; next: number } | null {
  const token = tokens[at]!;
  if (!/^[([]$/.test(token)) return /^[)\],]$/.test(token) || NO_NAME.test(token) ? null : { entry: nameOf(token), next: at + 1 };
  const entry: Entry = [];
  for (at++; at < tokens.length && !/^[)\]]$/.test(tokens[at]!); at++) {
    if (tokens[at] === ",") continue;
    if (/^[([]$/.test(tokens[at]!) || NO_NAME.test(tokens[at]!)) return null;
    entry.push(...nameOf(tokens[at]!));
  }
  return at < tokens.length ? { entry, next: at + 1 } : null;
}

function nameOf(token: string): Entry {
  const quoted = /^(['"])(.*)\1$/.exec(token);
  if (!quoted) return /^(None|null|-)$/.test(token) ? [] : [token];
  return [quoted[2]!.replaceAll(/\\(.)/g, "$1")];
}

/** Dim is one dimension of a shape: its size or a batch dimension, and its name or null. */
export interface Dim {
  size: number | string;
  name: string | null;
}

/** parseShape parses sizes and batch dimensions: "B, 8192", "(B, 8, 8)" or "B0 B1 3". A size may have a
 * name, which can replace it later: "B, S=8192" and "B, S". It throws if the text has another form. */
export function parseShape(text: string, sizes: ReadonlyMap<string, number>): Dim[] {
  const tokens = text.replaceAll(/\s*=\s*/g, "=").replace(/^\s*[([]|[)\]]\s*$/g, "").split(/\s*[,×]\s*|\s+(?:x\s+)?|(?<=\d)x(?=\d)/).filter((t) => t !== "");
  return tokens.map((token) => dimOf(token, sizes));
}

function dimOf(token: string, sizes: ReadonlyMap<string, number>): Dim {
  const [, name, number] = /^(?:([\p{L}_][\p{L}\d_]*)(?:=|$))?([\d_]*)$/u.exec(token) ?? [];
  if (name === undefined && !number) throw new Error(`"${token}" is not a size; expected whole numbers, or B for the batch: B, 8, 8`);
  const batch = /^B\d*$/.test(name ?? "");
  if (batch && number) throw new Error(`${name} is a batch dimension with the size of the global batch; write ${name} alone`);
  if (!number) return batch ? { size: name!, name: null } : { size: known(name!, sizes), name: name! };
  const size = Number(number.replaceAll("_", ""));
  if (!Number.isSafeInteger(size)) throw new Error(`${token} is larger than 2^53`);
  return { size, name: name ?? null };
}

function known(name: string, sizes: ReadonlyMap<string, number>): number {
  const size = sizes.get(name);
  if (size === undefined) throw new Error(`${name} has no size yet; write ${name}=2048 once`);
  return size;
}
