// Formats the rows that a process reads.

import type { Pair, ProcessReport } from "./guest.js";
import { count, span } from "./units.js";

/** rowsText formats the rows that a process reads. The report does not list them if the layout is invalid
 * or if there are too many. */
export function rowsText({ rows, bytes_per_step }: ProcessReport, most: number): string {
  if (!rows) return bytes_per_step === null ? "unknown" : "too many to list";
  return rows.length === 0 ? "none" : listed(rows, most);
}

/** listed formats the first ranges, and the number of ranges if there are more. */
export function listed(rows: Pair[], most: number): string {
  const text = rows.slice(0, most).map(([from, to]) => span(from, to)).join(", ");
  return rows.length > most ? `${text}, … (${count(rows.length, "range")})` : text;
}
