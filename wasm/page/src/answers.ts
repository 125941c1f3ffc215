// What the page asks, and the answers: they are worked out beside the page, in a worker.

import { type Columns, columns } from "./blocks.js";
import { type Draft, LOADINGS, deviceCount, parse, processCount, text } from "./draft.js";
import { type Described, Guest, type ProcessReport, type Schema, type Totals } from "./guest.js";
import { type Reads, reads } from "./reads.js";
import { type Records, records } from "./records.js";

/** Wanted says what of a layout is looked at, and which parts of that are asked for. */
export interface Wanted {
  document: string;
  fresh: boolean; // the layout itself is asked for
  array: string; // "" or a name that there is not: the first
  from: number; // the first of the processes shown
  epoch: number;
  step: number;
  parts: Part[];
}

export type Part = "blocks" | "reads" | "records";

/** Shown is the answer, with the parts that were asked for. */
export interface Shown {
  reply: Described | null; // where it was asked for
  array: string;
  from: number;
  step: number;
  blocks: Columns | null;
  reads: Reads | null;
  records: Records | null;
  ways: Record<string, Totals | null>;
}

/** The largest mesh for which the costs of all ways of loading are part of an answer. */
export const AT_ONCE = 4096;

export class Answers {
  private readonly guest: Guest;
  private readonly aside: Guest; // for other documents than the one that is shown
  private known: { document: string; reply: Described; draft: Draft | null } | null = null;

  constructor(module: WebAssembly.Module) {
    this.guest = new Guest(module);
    this.aside = new Guest(module);
  }

  /** describe checks any document. */
  describe(document: string | Uint8Array): Described {
    return this.aside.describe(document);
  }

  /** show gives a layout, and what of it is looked at. A core that fails at a part fails at the whole. */
  show(wanted: Wanted): Shown {
    const { reply, draft } = this.of(wanted.document);
    const shown: Shown = { reply: wanted.fresh ? reply : null, array: wanted.array, from: wanted.from, step: wanted.step, blocks: null, reads: null, records: null, ways: {} };
    if (!draft || !reply.report) return shown;
    const names = reply.arrays.map((a) => a.name);
    if (!names.includes(shown.array)) shown.array = names[0] ?? "";
    if (shown.from >= processCount(draft)) shown.from = 0;
    shown.step = Math.max(0, Math.min(wanted.step, (reply.report.totals.steps_per_epoch ?? 0) - 1));
    for (const part of wanted.parts) this.part(part, shown, reply, draft, wanted.epoch);
    if (wanted.fresh && deviceCount(draft) <= AT_ONCE) for (const way of LOADINGS) shown.ways[way] = this.cost(draft, way, reply);
    return shown;
  }

  /** costs gives what a layout costs. */
  costs(document: string): Totals | null {
    return this.aside.describe(document).report?.totals ?? null;
  }

  /** schema reads the fields of a file from its last bytes. */
  schema(tail: Uint8Array, size: number): Schema {
    return this.aside.schema(tail, size);
  }

  private of(document: string): { reply: Described; draft: Draft | null } {
    if (this.known && [this.known.document, this.known.reply.document].includes(document)) return this.known;
    this.known = null;
    const reply = this.guest.describe(document);
    this.known = { document, reply, draft: reply.document === null ? null : parse(reply.document) };
    return this.known;
  }

  private part(part: Part, shown: Shown, reply: Described, draft: Draft, epoch: number): void {
    const processes = (from: number, count: number): ProcessReport[] => this.processes(reply, from, count);
    if (part === "blocks") shown.blocks = this.blocks(reply, draft, shown.array);
    else if (part === "reads") shown.reads = reads(processes, draft, reply.report!.totals, shown.from);
    else shown.records = records(this.aside, processes, draft, shown.from, epoch, shown.step, reply.report!.totals.steps_per_epoch ?? 0);
  }

  /** processes tells of some processes. With a mesh too large for the report, it does not say which of them read the same rows. */
  private processes(reply: Described, from: number, count: number): ProcessReport[] {
    return reply.report!.processes?.slice(from, from + count) ?? this.guest.processes(reply, from, count);
  }

  /** blocks gives an array cut up; null where it cannot be. */
  private blocks(reply: Described, draft: Draft, name: string): Columns | null {
    const report = reply.report!.arrays[name];
    if (!report?.shard_shape) return null;
    const array = reply.arrays.findIndex((a) => a.name === name);
    return columns(report, this.guest.table(reply, array, report.global_shape.length, deviceCount(draft)));
  }

  private cost(draft: Draft, way: string, reply: Described): Totals | null {
    return way === draft.loading ? reply.report!.totals : this.costs(text({ ...draft, loading: way }));
  }
}
