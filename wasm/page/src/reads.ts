// The rows that processes read, and the other readers of these rows.

import { type Draft, batchRows, processCount } from "./draft.js";
import type { ProcessReport, Totals } from "./guest.js";
import { type Shared, repeated, shared, size } from "./overlap.js";
import { listed } from "./rows-text.js";
import { times } from "./units.js";

export const FEW = 16; // processes shown at once
const MAX_COMPARED = 1 << 13; // processes that are compared with each other
const PER_QUESTION = 256; // processes in one question to the Go core
const NAMED = 64; // readers of a process's rows that are named

/** Readers describes the other processes that read rows of a process: the first ones, and the number of all. */
export interface Readers {
  first: Shared[];
  count: number;
}

/** Reads describes the reads of some processes. */
export interface Reads {
  processes: ProcessReport[];
  others: (Readers | null)[]; // per process; null if unknown
  summary: string; // how many processes read the same rows, in words
}

type Processes = (from: number, count: number) => ProcessReport[];

/** reads describes up to FEW processes, beginning with number from, and compares them with all others. */
export function reads(processes: Processes, draft: Draft, totals: Totals, from: number): Reads {
  const total = processCount(draft);
  const shown = processes(from, Math.min(FEW, total - from));
  const all = allProcesses(processes, total);
  return {
    processes: shown,
    others: shown.map((p) => (all ? first(shared(p, all)) : p.same_rows_as && first(p.same_rows_as.map((process) => ({ process, rows: null }))))),
    summary: all && batchRows(draft) > 0 ? summary(all, batchRows(draft), totals) : "",
  };
}

/** first returns the first readers, and the number of all. */
function first(list: Shared[]): Readers {
  return { first: list.slice(0, NAMED), count: list.length };
}

/** allProcesses returns the reports of all processes, or null if there are too many or their rows are unknown. */
function allProcesses(processes: Processes, total: number): ProcessReport[] | null {
  const all: ProcessReport[] = [];
  if (total <= MAX_COMPARED) for (let from = 0; from < total; from += PER_QUESTION) all.push(...processes(from, Math.min(PER_QUESTION, total - from)));
  return all.length === total && all.every((p) => p.rows) ? all : null;
}

/** summary describes the rows that several processes read. If a spec splits rows, these processes may read
 * different bytes, so the text also contains the total. */
function summary(all: ProcessReport[], batch: number, { read_bytes, batch_bytes }: Totals): string {
  const { rows, least, most } = repeated(all);
  if (rows.length === 0) return "No row is read twice.";
  const which = size(rows) === batch ? "Every row is" : `Rows ${listed(rows, 4)} are`;
  return `${which} read by ${least === most ? most : `${least} to ${most}`} processes; all together read ${times(read_bytes, batch_bytes)} the batch.`;
}
