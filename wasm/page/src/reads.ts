// What processes read, and what of it others read too.

import { type Draft, batchRows, processCount } from "./draft.js";
import type { ProcessReport, Totals } from "./guest.js";
import { type Shared, repeated, shared, size } from "./overlap.js";
import { listed } from "./rows-text.js";
import { times } from "./units.js";

export const FEW = 16; // processes shown at once
const MANY = 1 << 13; // processes that are compared with each other
const PART = 256; // of them asked for at once
const TOLD = 64; // readers of a process's rows that are named

/** Readers are the other readers of a process's rows: the first of them, and how many there are. */
export interface Readers {
  first: Shared[];
  count: number;
}

/** Reads is what some processes read. */
export interface Reads {
  processes: ProcessReport[];
  others: (Readers | null)[]; // of each; null where they are not known
  twice: string; // what several processes read, in words
}

type Processes = (from: number, count: number) => ProcessReport[];

/** reads tells of the processes from one on, and compares them with all. */
export function reads(processes: Processes, draft: Draft, totals: Totals, from: number): Reads {
  const total = processCount(draft);
  const shown = processes(from, Math.min(FEW, total - from));
  const all = everybody(processes, total);
  return {
    processes: shown,
    others: shown.map((p) => (all ? first(shared(p, all)) : p.same_rows_as && first(p.same_rows_as.map((process) => ({ process, rows: null }))))),
    twice: all && batchRows(draft) > 0 ? twice(all, batchRows(draft), totals) : "",
  };
}

function first(list: Shared[]): Readers {
  return { first: list.slice(0, TOLD), count: list.length };
}

/** everybody gives all processes, to compare them; null where they are too many, or their rows unknown. */
function everybody(processes: Processes, total: number): ProcessReport[] | null {
  const all: ProcessReport[] = [];
  if (total <= MANY) for (let from = 0; from < total; from += PART) all.push(...processes(from, Math.min(PART, total - from)));
  return all.length === total && all.every((p) => p.rows) ? all : null;
}

/** twice tells which rows several processes read. Where an array is split along its rows' columns,
 * they need not read the same bytes, so the sum is told too. */
function twice(all: ProcessReport[], batch: number, { read_bytes, batch_bytes }: Totals): string {
  const { rows, least, most } = repeated(all);
  if (rows.length === 0) return "No row is read twice.";
  const which = size(rows) === batch ? "Every row is" : `Rows ${listed(rows, 4)} are`;
  return `${which} read by ${least === most ? most : `${least} to ${most}`} processes; all together read ${times(read_bytes, batch_bytes)} the batch.`;
}
