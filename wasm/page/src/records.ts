// The records that a step delivers to some processes.

import { type Draft, batchRows, processCount } from "./draft.js";
import type { Guest, Pair, ProcessReport } from "./guest.js";
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

/** records describes a step for up to FEW processes, beginning with number from. It returns null if there is
 * no dataset or no step. */
export function records(guest: Guest, processes: (from: number, count: number) => ProcessReport[], draft: Draft, from: number, epoch: number, step: number, steps: number): Records | null {
  if (!draft.dataset || !draft.batch || steps < 1) return null;
  const order = new Order(guest, draft.dataset, epoch);
  const batch = batchRows(draft);
  try {
    const shown = processes(from, Math.min(FEW, processCount(draft) - from));
    const rows = shown.map((p) => ({ process: p.process, rows: rowsText(p, 3), records: p.rows ? order.listed(p.rows, step * batch) : rowsText(p, 0) }));
    return { rows, rest: step === steps - 1 ? order.rest((step + 1) * batch) : null, error: "" };
  } catch (cause) {
    return { rows: [], rest: null, error: (cause as Error).message };
  }
}

/** Order lists records of one epoch. */
class Order {
  constructor(
    private readonly guest: Guest,
    private readonly dataset: NonNullable<Draft["dataset"]>,
    private readonly epoch: number,
  ) {}

  /** listed formats the first records in some rows of a batch. The batch begins at position first. */
  listed(rows: Pair[], first: number): string {
    const list: string[] = [];
    let padding = 0;
    for (const [from, to] of rows) {
      const real = Math.max(0, Math.min(to, this.dataset.records - first) - from);
      padding += to - from - real;
      const some = Math.min(real, RECORDS - list.length);
      if (some > 0) list.push(...this.ask(first + from, some).map(String));
    }
    const left = rows.reduce((n, [from, to]) => n + to - from, 0) - padding - list.length;
    if (left > 0) list.push(`… ${whole(left)} more`);
    if (padding > 0) list.push(count(padding, "row of padding", "rows of padding"));
    return list.join(", ") || "none";
  }

  /** rest formats the records of an epoch after position end, which do not fill a step. */
  rest(end: number): Records["rest"] {
    const left = this.dataset.records - end;
    if (left <= 0) return null;
    return { left, some: this.ask(end, Math.min(left, RECORDS)).join(", ") + (left > RECORDS ? ", …" : "") };
  }

  private ask(position: number, n: number): number[] {
    const { records, order, seed } = this.dataset;
    return this.guest.samples({ order: order ?? "sequential.1", seed, records, epoch: this.epoch, position, count: n });
  }
}
