// Finds rows that several processes read.

import type { Pair, ProcessReport } from "./guest.js";

/** Shared is another process that reads rows of a given process. rows lists these rows; it is null if they
 * are all rows of the given process. */
export interface Shared {
  process: number;
  rows: Pair[] | null;
}

/** shared returns the other processes that read rows of a process. */
export function shared(of: ProcessReport, all: ProcessReport[]): Shared[] {
  const mine = of.rows ?? [];
  return all.flatMap((other) => {
    if (other.process === of.process) return [];
    const common = both(mine, other.rows ?? []);
    return common.length === 0 ? [] : [{ process: other.process, rows: size(common) === size(mine) ? null : common }];
  });
}

/** both intersects two lists of ascending ranges. */
function both(a: Pair[], b: Pair[]): Pair[] {
  const out: Pair[] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    const [from, to] = [Math.max(a[i]![0], b[j]![0]), Math.min(a[i]![1], b[j]![1])];
    if (from < to) out.push([from, to]);
    if (a[i]![1] < b[j]![1]) i++;
    else j++;
  }
  return out;
}

/** size counts the rows of ranges. */
export function size(rows: Pair[]): number {
  return rows.reduce((n, [from, to]) => n + to - from, 0);
}

/** repeated returns the rows that more than one process reads, with the least and the largest number of
 * readers. */
export function repeated(all: ProcessReport[]): { rows: Pair[]; least: number; most: number } {
  const ends = all.flatMap((p) => (p.rows ?? []).flatMap(([from, to]) => [{ at: from, by: 1 }, { at: to, by: -1 }])).sort((a, b) => a.at - b.at);
  const rows: Pair[] = [];
  let [least, most] = [Infinity, 0];
  let readers = 0;
  for (const [i, { at, by }] of ends.entries()) {
    readers += by;
    const next = ends[i + 1]?.at ?? at;
    if (readers < 2 || next === at) continue;
    [least, most] = [Math.min(least, readers), Math.max(most, readers)];
    if (rows.at(-1)?.[1] === at) rows.at(-1)![1] = next;
    else rows.push([at, next]);
  }
  return { rows, least, most };
}
