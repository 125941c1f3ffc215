// Answers the page's questions. This code runs in the worker.

import { type Columns, columns } from "./blocks.js";
import { type Draft, LOADINGS, deviceCount, parse, processCount, text } from "./draft.js";
import { type Described, Guest, type ProcessReport, type Schema, type Totals } from "./guest.js";
import { type Reads, reads } from "./reads.js";
import { type Records, records } from "./records.js";

/** Wanted is a question of the page: a layout, the part of it that is shown, and the data that the page needs. */
export interface Wanted {
  document: string;
  fresh: boolean; // the description of the layout is needed
  array: string; // "" or an unknown name means the first
  from: number; // the first process shown
  epoch: number;
  step: number;
  parts: Part[];
}

export type Part = "blocks" | "reads" | "records";

/** Shown is the answer, with the parts that the question needs. */
export interface Shown {
  reply: Described | null; // null unless Wanted.fresh
  array: string;
  from: number;
  step: number;
  blocks: Columns | null;
  reads: Reads | null;
  records: Records | null;
  ways: Record<string, Totals | null>; // the totals of every way of loading
}

/** AT_ONCE is the most devices for an answer with the totals of all ways of loading. */
export const AT_ONCE = 4096;

export class Answers {
  private readonly guest: Guest;
  private readonly aside: Guest; // for documents that are not shown: guest keeps the shown one
  private known: { document: string; reply: Described; draft: Draft | null } | null = null;

  constructor(module: WebAssembly.Module) {
    this.guest = new Guest(module);
    this.aside = new Guest(module);
  }

  /** describe checks any document. */
  describe(document: string | Uint8Array): Described {
    return this.aside.describe(document);
  }

  /** show answers a question. If the core fails at one part, the whole answer fails. */
  show(wanted: Wanted): Shown {
    const { reply, draft } = this.described(wanted.document);
    const shown: Shown = { reply: wanted.fresh ? reply : null, array: wanted.array, from: wanted.from, step: wanted.step, blocks: null, reads: null, records: null, ways: {} };
    if (!draft || !reply.report) return shown;
    const names = reply.arrays.map((a) => a.name);
    if (!names.includes(shown.array)) shown.array = names[0] ?? "";
    if (shown.from >= processCount(draft)) shown.from = 0;
    shown.step = Math.max(0, Math.min(wanted.step, (reply.report.totals.steps_per_epoch ?? 0) - 1));
    const { totals } = reply.report;
    const processes = (from: number, count: number): ProcessReport[] => this.processes(reply, from, count);
    if (wanted.parts.includes("blocks")) shown.blocks = this.blocks(reply, draft, shown.array);
    if (wanted.parts.includes("reads")) shown.reads = reads(processes, draft, totals, shown.from);
    if (wanted.parts.includes("records")) shown.records = records(this.aside, processes, draft, shown.from, wanted.epoch, shown.step, totals.steps_per_epoch ?? 0);
    if (!wanted.fresh || deviceCount(draft) > AT_ONCE) return shown;
    for (const way of LOADINGS) shown.ways[way] = way === draft.loading ? totals : this.costs(text({ ...draft, loading: way }));
    return shown;
  }

  /** costs returns the totals of a layout. */
  costs(document: string): Totals | null {
    return this.aside.describe(document).report?.totals ?? null;
  }

  /** schema reads the fields of a file from its last bytes. */
  schema(tail: Uint8Array, size: number): Schema {
    return this.aside.schema(tail, size);
  }

  /** described returns the description of a document, and keeps it for the next question. */
  private described(document: string): { reply: Described; draft: Draft | null } {
    if (this.known && [this.known.document, this.known.reply.document].includes(document)) return this.known;
    this.known = null;
    const reply = this.guest.describe(document);
    this.known = { document, reply, draft: reply.document === null ? null : parse(reply.document) };
    return this.known;
  }

  /** processes returns the rows of some processes. For a mesh that is too large for the report, same_rows_as is missing. */
  private processes(reply: Described, from: number, count: number): ProcessReport[] {
    return reply.report!.processes?.slice(from, from + count) ?? this.guest.processes(reply, from, count);
  }

  /** blocks returns the blocks of an array, or null if the array cannot be partitioned. */
  private blocks(reply: Described, draft: Draft, name: string): Columns | null {
    const report = reply.report!.arrays[name];
    if (!report?.shard_shape) return null;
    const array = reply.arrays.findIndex((a) => a.name === name);
    return columns(report, this.guest.table(reply, array, report.global_shape.length, deviceCount(draft)));
  }
}
