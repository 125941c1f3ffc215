// The rows that a process reads, in words.

import type { Pair, ProcessReport } from "./guest.js";
import { count, spans } from "./units.js";

/** rowsText tells which rows a process reads. The core does not list them where a layout is wrong, and
 * where they are too many. */
export function rowsText({ rows, bytes_per_step }: ProcessReport, most: number): string {
  if (!rows) return bytes_per_step === null ? "unknown" : "too many to list";
  return rows.length === 0 ? "none" : listed(rows, most);
}

/** listed gives the first of some ranges, and where there are more, how many. */
export function listed(rows: Pair[], most: number): string {
  const text = spans(rows, most);
  return rows.length > most ? `${text}, … (${count(rows.length, "range")})` : text;
}
