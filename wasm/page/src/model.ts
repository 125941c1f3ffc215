// What the page knows: the draft, what the core says of it, and what of it is looked at.

import { Blocks } from "./blocks.js";
import { foldOf } from "./cut.js";
import { type Fault, faults } from "./faults.js";
import { type Draft, LOADINGS, deviceCount, parse, text } from "./draft.js";
import type { Described, Guest, ProcessReport, Totals } from "./guest.js";

/** Look is how the picture is looked at; it is no part of the layout. */
export interface Look {
  array: string;
  dims: [number, number] | null; // down and across; null for the first two that are cut
  slice: number[]; // block coordinate for every dimension
  split: number | null; // axes of the mesh that run down; null for what shows it best
  pinned: number | null; // block
  tab: string;
}

/** The largest mesh for which all ways of loading are computed with every edit. */
const AT_ONCE = 4096;

const MOST_UNDONE = 100;

const PAUSE = 200; // ms between computations for a large mesh

/** Model tells whoever listens for "change". Draft, reply and look change together, and what is drawn
 * comes from them alone: no part of the page can show another layout than the part beside it. */
export class Model extends EventTarget {
  draft: Draft;
  reply: Described;
  ways: Record<string, Totals | null> = {};
  look: Look = { array: "", dims: null, slice: [], split: null, pinned: null, tab: "jax" };
  private cached: { reply: Described; array: string; blocks: Blocks | null } | null = null;
  private found: { reply: Described; draft: Draft; faults: Fault[] } | null = null;
  origin: { name: string; document: string }; // what was opened last
  replaced = 0; // how often another layout took the place of the draft
  private later = 0;
  private past: Draft[] = []; // what edits and loads replaced

  constructor(
    readonly guest: Guest,
    document: string,
    name = "",
  ) {
    super();
    this.reply = this.ask(document);
    if (!this.reply.document) throw new Error(this.reply.error?.message ?? "not a layout document");
    this.draft = parse(this.reply.document);
    this.origin = { name, document: this.reply.document };
    this.settle();
    this.weigh();
  }

  /** edit changes the draft and asks the core about it. */
  edit(change: (d: Draft) => void): void {
    const draft = structuredClone(this.draft);
    change(draft);
    this.remember();
    this.show(draft, this.ask(text(draft)), this.look);
  }

  /** undo takes the last edit back, or what was loaded since. */
  undo(): void {
    const draft = this.past.pop();
    if (!draft) return;
    this.replaced++;
    this.show(draft, this.ask(text(draft)), this.look);
  }

  /** undoable says whether there is something to take back. */
  get undoable(): boolean {
    return this.past.length > 0;
  }

  private remember(): void {
    this.past.push(this.draft);
    if (this.past.length > MOST_UNDONE) this.past.shift();
  }

  /** load takes the text of a document, and gives the core's objection to it if there is one. The name
   * is that of a ready layout. */
  load(document: string, name = ""): Described["error"] {
    const reply = this.ask(document);
    if (!reply.document) return reply.error;
    this.remember();
    this.replaced++;
    this.origin = { name, document: reply.document };
    this.show(parse(reply.document), reply, { ...this.look, array: "", dims: null, slice: [], split: null, pinned: null });
    return null;
  }

  /** see changes the look. */
  see(look: Partial<Look>): void {
    this.show(this.draft, this.reply, { ...this.look, ...look });
  }

  private show(draft: Draft, reply: Described, look: Look): void {
    const other = reply !== this.reply;
    const names = (d: Draft): string => JSON.stringify(d.axes.map((a) => a.name));
    if (names(draft) !== names(this.draft)) look = { ...look, split: null }; // it was chosen for other axes
    [this.draft, this.reply, this.look] = [draft, reply, look];
    this.settle();
    if (other) this.weigh();
    this.tell();
  }

  /** names lists the arrays: those asked for, the mask, the extras. */
  get names(): string[] {
    return this.reply.arrays.map((a) => a.name);
  }

  /** faults lists what is wrong with the layout. */
  get faults(): Fault[] {
    if (this.found?.reply !== this.reply || this.found.draft !== this.draft) {
      this.found = { reply: this.reply, draft: this.draft, faults: faults(this.reply, this.draft) };
    }
    return this.found.faults;
  }

  /** split gives how many axes of the mesh run down. */
  get split(): number {
    return this.look.split ?? usualSplit(this.draft);
  }

  /** blocks gives the array looked at, cut up; null where it cannot be. */
  get blocks(): Blocks | null {
    const { reply, look } = this;
    if (this.cached?.reply === reply && this.cached.array === look.array) return this.cached.blocks;
    const report = reply.report?.arrays[look.array];
    let blocks: Blocks | null = null;
    if (report?.shard_shape) {
      const [array, rank] = [this.names.indexOf(look.array), report.global_shape.length];
      const table = this.heed(() => this.guest.table(reply, array, rank, deviceCount(this.draft)));
      blocks = table && new Blocks(report, table);
    }
    this.cached = { reply: this.reply, array: look.array, blocks };
    return blocks;
  }

  /** processes tells of some processes. With a mesh too large for the report, who reads the same rows is not known. */
  processes(from: number, count: number): ProcessReport[] {
    const { reply } = this;
    if (!reply.report) return [];
    return reply.report.processes?.slice(from, from + count) ?? this.heed(() => this.guest.processes(reply, from, count)) ?? [];
  }

  private ask(document: string): Described {
    try {
      return this.guest.describe(document);
    } catch (cause) {
      return failed(cause);
    }
  }

  /** heed puts a question to the core. One that it fails at makes the failure the reply, for the whole
   * page; null is what is left of the answer. */
  private heed<T>(question: () => T): T | null {
    try {
      return question();
    } catch (cause) {
      this.reply = failed(cause);
      queueMicrotask(() => this.tell());
      return null;
    }
  }

  /** weigh asks what each way of loading would cost: at once for a small mesh, for a large one when
   * nothing else is to be done. */
  private weigh(): void {
    clearTimeout(this.later);
    this.ways = {};
    if (!this.reply.report) return;
    this.ways[this.draft.loading] = this.reply.report.totals;
    const others = LOADINGS.filter((way) => way !== this.draft.loading);
    if (deviceCount(this.draft) > AT_ONCE) this.weighLater(others);
    else for (const way of others) this.ways[way] = this.cost(way);
  }

  private weighLater([way, ...others]: string[]): void {
    if (way === undefined) return this.tell();
    this.later = setTimeout(() => {
      this.ways[way] = this.cost(way);
      this.weighLater(others);
    }, PAUSE);
  }

  private cost(way: string): Totals | null {
    return this.ask(text({ ...this.draft, loading: way })).report?.totals ?? null;
  }

  /** settle makes the look fit the layout. */
  private settle(): void {
    const { look } = this;
    if (!this.names.includes(look.array)) look.array = this.names[0] ?? "";
    if (look.split !== null && look.split > this.draft.axes.length) look.split = null;
    const blocks = this.blocks;
    if (!blocks) return;
    if (look.dims && Math.max(...look.dims) >= blocks.rank) look.dims = null;
    look.slice = blocks.counts.map((n, d) => Math.min(look.slice[d] ?? 0, n - 1));
    if (look.pinned !== null && look.pinned >= blocks.total) look.pinned = null;
  }

  private tell(): void {
    this.dispatchEvent(new Event("change"));
  }
}

/** failed is the reply of a core that failed: an error like any other, so that the page goes on. */
function failed(cause: unknown): Described {
  const error = { code: "Internal", op: "page", message: (cause as Error).message, hint: "this is a fault of meshfeed, please report it with the layout", path: "" };
  return { document: null, digest: "", arrays: [], report: null, text: null, error };
}

/** usualSplit makes the mesh as square as whole axes can; of two ways it takes the taller. Where only a
 * strip comes of that, all axes run down, and are folded into columns. */
function usualSplit(d: Draft): number {
  const total = deviceCount(d);
  let best = 0;
  let least = Infinity;
  for (let split = 0, down = 1; split <= d.axes.length; down *= d.axes[split++]?.size ?? 1) {
    const far = Math.abs(Math.log((down * down) / total));
    if (far <= least + 1e-9) [best, least] = [split, far];
  }
  const folds = foldOf(total, 1);
  return least > Math.log(STRIP) && folds > 1 && total % folds === 0 ? d.axes.length : best;
}

/** A grid that is longer than wide by more than this factor is a strip. */
const STRIP = 8;
