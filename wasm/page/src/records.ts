// The records that a step delivers to some processes.

import { type Draft, batchRows, processCount } from "./draft.js";
import type { Guest, Pair, ProcessReport } from "./guest.js";
import { size } from "./overlap.js";
import { FEW } from "./reads.js";
import { rowsText } from "./rows-text.js";
import { count, whole } from "./units.js";

const RECORDS = 6; // listed per process

/** Records describes the records of a step. */
export interface Records {
  rows: { process: number; rows: string; records: string }[];
  rest: { left: number; some: string } | null; // records that do not fill a step
  error: string; // why the records are unknown
}

/** records describes a step for up to FEW processes, beginning with process from. It
 * returns null without a dataset or a step. */
export function records(guest: Guest, processes: (from: number, count: number) => ProcessReport[], draft: Draft, from: number, epoch: number, step: number, steps: number): Records | null {
  const { dataset, batch } = draft;
  if (!dataset || !batch || steps < 1) return null;
  const { records, seed, order } = dataset;
  const at = (position: number, count: number): number[] => guest.samples({ order: order ?? "sequential.1", seed, records, epoch, position, count });
  const first = step * batchRows(draft);
  try {
    const shown = processes(from, Math.min(FEW, processCount(draft) - from));
    const rows = shown.map((p) => ({ process: p.process, rows: rowsText(p, 3), records: p.rows ? listed(p.rows, first, records, at) : rowsText(p, 0) }));
    return { rows, rest: step === steps - 1 ? rest(first + batchRows(draft), records, at) : null, error: "" };
  } catch (cause) {
    return { rows: [], rest: null, error: (cause as Error).message };
  }
}

type At = (position: number, count: number) => number[]; // the records at some positions of the epoch

/** listed formats the first records in some rows of a batch, and counts the others. The batch begins at position
 * first of an epoch with total records. Positions from total on are padding. */
function listed(rows: Pair[], first: number, total: number, at: At): string {
  const list: string[] = [];
  let padding = 0;
  for (const [from, to] of rows) {
    const real = Math.max(0, Math.min(to, total - first) - from);
    padding += to - from - real;
    const some = Math.min(real, RECORDS - list.length);
    if (some > 0) list.push(...at(first + from, some).map(String));
  }
  const left = size(rows) - padding - list.length;
  if (left > 0) list.push(`… ${whole(left)} more`);
  if (padding > 0) list.push(count(padding, "row of padding", "rows of padding"));
  return list.join(", ") || "none";
}

/** rest formats the records after the last step of an epoch, which ends at position end. They do not fill a step. */
function rest(end: number, total: number, at: At): Records["rest"] {
  const left = total - end;
  if (left <= 0) return null;
  return { left, some: at(end, Math.min(left, RECORDS)).join(", ") + (left > RECORDS ? ", …" : "") };
}
