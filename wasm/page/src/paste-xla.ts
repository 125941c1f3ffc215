// Finds shardings in the text of compiled programs: in Shardy's form and in XLA's older form.

import type { Axis, Entry } from "./draft.js";
import { strings } from "./paste-jax.js";
import { gcd, product } from "./units.js";

const MOST_DEVICES = 1 << 20;

/** shardyMesh finds a Shardy mesh such as <["data"=4, "model"=2]>, with its device order if there is one. */
export function shardyMesh(text: string): { axes: Axis[]; ids: number[] | null } | null {
  const found = /<\[((?:\s*"[^"]+"\s*=\s*\d+\s*,?)+)\]\s*(?:,\s*device_ids\s*=\s*\[([\d,\s]+)\])?/.exec(text);
  if (!found) return null;
  const axes = [...found[1]!.matchAll(/"([^"]+)"\s*=\s*(\d+)/g)].map((m) => ({ name: m[1]!, size: Number(m[2]) }));
  return { axes, ids: found[2] ? integers(found[2]) : null };
}

/** shardySpecs finds all Shardy shardings such as <@mesh, [{"data"}, {}]>. The mesh may be a name or inline. */
export function shardySpecs(text: string): Entry[][] {
  return [...text.matchAll(/<(?:@[\w."-]+|mesh<\[[^\]]*\][^>]*>),\s*\[((?:\s*\{[^}]*\}(?:p\d+)?\s*,?)*)\s*\]([^>]*)/g)].map((m) => {
    if (/"\s*:\s*\(/.test(m[1]!)) throw new Error('a part of an axis, such as "x":(1)2, cannot be written as a partition spec');
    if (/unreduced\s*=\s*\{\s*"/.test(m[2]!)) throw new Error("unreduced sums cannot be an input, so a layout cannot contain them");
    return [...m[1]!.matchAll(/\{([^}]*)\}/g)].map((e) => strings(e[1]!));
  });
}

/** Tiles is a sharding in XLA's older form. That form has no axis names, so the names are generated. */
export interface Tiles {
  axes: Axis[] | null; // null for {replicated}, which contains no mesh
  ids: number[] | null; // null if the devices are in ascending order
  spec: Entry[];
}

/** tiles parses XLA's form {devices=[2,2]<=[4]}, with an order T(1,0) or a list of devices, or {replicated}. */
export function tiles(text: string): Tiles | null {
  const found = [...text.matchAll(/devices=\[([\d,\s]+)\]\s*(?:<=\s*\[([\d,\s]+)\]\s*(?:T\(([\d,\s]+)\))?|([\d,\s]*))([^}]*\}?)/g)];
  if (found.length > 1) throw new Error("the text contains several shardings; paste them one by one");
  if (/\bmanual\b|\{\s*maximal\b|\bunreduced\b/.test(text)) throw new Error("only tiles and replicas can be written as a partition spec: expected {devices=[…]…} or {replicated}");
  if (!found[0]) return /\{\s*replicated\s*\}/.test(text) ? { axes: null, ids: null, spec: [] } : null;
  const [, cutText, fromText, orderText, idText, rest] = found[0];
  const cut = integers(cutText!);
  const total = product(cut);
  const from = fromText ? integers(fromText) : [total];
  const order = orderText ? integers(orderText) : from.map((_, i) => i);
  const ids = fromText ? null : integers(idText ?? "");
  check(cut, from, order, ids);
  const { axes, entries } = factored(cut, from, order);
  const last = /last_tile_dim_replicate|last_tile_dims=\{replicated\}/.test(rest!);
  return { axes, ids, spec: last ? entries.slice(0, -1) : entries };
}

/** check throws if the numbers of a tiling contradict each other. */
function check(cut: number[], from: number[], order: number[], ids: number[] | null): void {
  const total = product(cut);
  if (!(total >= 1 && total <= MOST_DEVICES)) throw new Error(`[${cut.join(",")}] are ${total} tiles, but 1 to ${MOST_DEVICES} are expected`);
  if (product(from) !== total) throw new Error(`[${cut.join(",")}] are ${total} tiles, but [${from.join(",")}] are ${product(from)} devices`);
  if (order.length !== from.length || from.some((_, i) => !order.includes(i))) throw new Error(`T(${order.join(",")}) is not an order of the dimensions of [${from.join(",")}]`);
  if (ids && ids.length !== total) throw new Error(`[${cut.join(",")}] are ${total} tiles, but ${ids.length} devices are listed`);
}

/** factored finds mesh axes such that every number of tiles is the product of some axes. The axes are in the
 * order of the devices. */
function factored(cut: number[], from: number[], order: number[]): { axes: Axis[]; entries: Entry[] } {
  const pieces: { dim: number; size: number; at: number }[] = [];
  const left = order.map((dim) => ({ dim, size: from[dim]! }));
  const parts = cut.map((want) => {
    const part: number[] = [];
    while (want > 1) {
      const next = left[0]!;
      const size = gcd(want, next.size);
      if (next.size > 1 && size === 1) throw new Error(`tiles [${cut.join(",")}] do not divide into devices [${from.join(",")}], so no axes make them`);
      if (size > 1) part.push(pieces.push({ dim: next.dim, size, at: pieces.length }) - 1);
      want /= size;
      next.size /= size;
      if (next.size === 1) left.shift();
    }
    return part;
  });
  const sorted = [...pieces].sort((a, b) => a.dim - b.dim || a.at - b.at);
  const name = (piece: number): string => `axis${sorted.indexOf(pieces[piece]!)}`;
  return { axes: sorted.map((p) => ({ name: name(p.at), size: p.size })), entries: parts.map((part) => part.map(name)) };
}

function integers(text: string): number[] {
  return (text.match(/\d+/g) ?? []).map(Number);
}
