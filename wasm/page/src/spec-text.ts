// Specs and shapes as people type them: P(('data', 'fsdp'), None) and B, 8192.

import type { Entry } from "./draft.js";

/** specText writes a spec as JAX does. */
export function specText(spec: Entry[]): string {
  const entry = (e: Entry): string =>
    e.length === 0 ? "None" : e.length === 1 ? quote(e[0]!) : `(${e.map(quote).join(", ")})`;
  const inner = spec.map(entry).join(", ");
  return `P(${inner})`;
}

function quote(name: string): string {
  return `'${name}'`;
}

/** parseSpec reads P(…), PartitionSpec(…) or what stands between the parentheses. Names may stand
 * without quotes. Null where it is no spec. */
export function parseSpec(text: string): Entry[] | null {
  const body = text.trim().replace(/^(?:[\w.]*\.)?(?:P|PartitionSpec)\s*\(([^]*)\)$/, "$1");
  const tokens = body.match(/[()[\],]|'[^']*'|"[^"]*"|[^\s()[\],'"]+/g) ?? [];
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

function entryAt(tokens: string[], at: number): { entry: Entry; next: number } | null {
  const token = tokens[at]!;
  if (!/^[([]$/.test(token)) return /^[)\],]$/.test(token) ? null : { entry: nameOf(token), next: at + 1 };
  const entry: Entry = [];
  for (at++; at < tokens.length && !/^[)\]]$/.test(tokens[at]!); at++) {
    if (tokens[at] === ",") continue;
    if (/^[([]$/.test(tokens[at]!)) return null;
    entry.push(...nameOf(tokens[at]!));
  }
  return at < tokens.length ? { entry, next: at + 1 } : null;
}

function nameOf(token: string): Entry {
  const name = token.replace(/^(['"])(.*)\1$/, "$2");
  return name === token && /^(None|null|-)$/.test(token) ? [] : [name];
}

/** parseShape reads sizes and batch dimensions: "B, 8192", "(B, 8, 8)" or "B0 B1 3". Null where it is no shape. */
export function parseShape(text: string): (number | string)[] | null {
  const tokens = text.replace(/^\s*[([]|[)\]]\s*$/g, "").split(/[\s,×x]+(?=\S|$)/).filter((t) => t !== "");
  const out = tokens.map((t) => (/^B\d*$/.test(t) ? t : /^[\d_]+$/.test(t) ? Number(t.replaceAll("_", "")) : NaN));
  return out.some((n) => typeof n === "number" && !Number.isSafeInteger(n)) ? null : out;
}
