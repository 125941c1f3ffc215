// What the page knows: the draft, what the core says of it, and what of it is looked at.

import { AT_ONCE, type Part, type Shown, type Wanted } from "./answers.js";
import { Blocks } from "./blocks.js";
import { type Core, Dropped } from "./core.js";
import { foldOf } from "./cut.js";
import { type Draft, LOADINGS, deviceCount, parse, text } from "./draft.js";
import { type Fault, faults } from "./faults.js";
import type { Described, Schema, Totals } from "./guest.js";
import type { Reads } from "./reads.js";
import type { Records } from "./records.js";

/** Look is how the layout is looked at; it is no part of it. */
export interface Look {
  array: string;
  dims: [number, number] | null; // down and across; null for the first two that are cut
  slice: number[]; // block coordinate for every dimension
  split: number | null; // axes of the mesh that run down; null for what shows it best
  pinned: number | null; // block
  tab: string;
  from: number; // the first process shown
  epoch: number; // of which records are told
  step: number;
}

const USUAL: Look = { array: "", dims: null, slice: [], split: null, pinned: null, tab: "jax", from: 0, epoch: 0, step: 0 };

const MOST_UNDONE = 100;

/** Model sends the event "change". What is drawn comes from draft, reply, look and the parts
 * beside them, which change together: no part of the page can show another layout than the part beside
 * it. While an answer is on its way they are those of the layout before; the forms show what is wanted. */
export class Model extends EventTarget {
  draft: Draft; // with its reply
  wanted: Draft; // as the forms have it
  reply: Described;
  look: Look;
  blocks: Blocks | null = null; // the array looked at, cut up; null where it cannot be
  reads: Reads | null = null;
  records: Records | null = null;
  ways: Record<string, Totals | null> = {};
  origin: { name: string; document: string }; // what was opened last
  replaced = 0; // how often another layout took the place of the draft
  since: number | null = null; // when the question that is not answered yet was put

  private aim: Look; // as it is wanted
  private asking = new AbortController();
  private weighing = new AbortController();
  private answered: Promise<unknown> = Promise.resolve();
  private found: { reply: Described; draft: Draft; faults: Fault[] } | null = null;
  private past: Draft[] = []; // what edits and loads replaced
  private kept = 0; // of them, when the draft was answered

  private constructor(
    readonly core: Core,
    private readonly aside: Core, // for what other ways of loading would cost
    name: string,
    shown: Shown,
  ) {
    super();
    this.reply = shown.reply!;
    if (!this.reply.document) throw new Error(this.reply.error?.message ?? "not a layout document");
    this.draft = this.wanted = parse(this.reply.document);
    this.look = this.aim = USUAL;
    this.origin = { name, document: this.reply.document };
    this.accept(this.draft, shown, USUAL);
  }

  /** open gives the model of a document. It throws the core's objection. */
  static async open(core: Core, aside: Core, document: string, name = ""): Promise<Model> {
    return new Model(core, aside, name, await core.ask("show", [question(document, USUAL)], new AbortController().signal));
  }

  /** edit changes what is wanted, and asks the core about it. What is given back ends with the answer. */
  edit(change: (d: Draft) => void, look: Partial<Look> = {}): Promise<void> {
    const draft = structuredClone(this.wanted);
    change(draft);
    this.remember();
    return this.want(draft, { ...this.aim, ...look });
  }

  /** undo takes the last edit back, or what was loaded since. */
  async undo(): Promise<void> {
    const draft = this.past.pop();
    if (!draft) return;
    this.kept = Math.min(this.kept, this.past.length);
    this.replaced++;
    await this.want(draft, this.aim);
  }

  /** undoable says whether there is something to take back. */
  get undoable(): boolean {
    return this.past.length > 0;
  }

  /** stop goes back to the layout that is shown, from one that is not answered yet. */
  stop(): void {
    this.since = null;
    this.asking.abort();
    this.past.length = this.kept;
    this.replaced++;
    [this.wanted, this.aim] = [this.draft, this.look];
    this.tell();
  }

  private remember(): void {
    this.past.push(this.wanted);
    if (this.past.length <= MOST_UNDONE) return;
    this.past.shift();
    this.kept--;
  }

  /** load takes the text of a document, and gives the core's objection to it if there is one. The name
   * is that of a ready layout. */
  async load(document: string, name = ""): Promise<Described["error"]> {
    const look: Look = { ...USUAL, tab: this.aim.tab };
    let objection: Described["error"] = null;
    await this.ask(question(document, look), (shown) => {
      objection = shown.reply!.error;
      if (!shown.reply!.document) return this.resume();
      this.remember();
      this.replaced++;
      this.origin = { name, document: shown.reply!.document };
      this.wanted = parse(shown.reply!.document);
      this.aim = look;
      this.accept(this.wanted, shown, look);
    }, (cause) => {
      objection = failed(cause).error;
      this.resume();
    });
    return objection;
  }

  /** resume asks again for an edit whose answer a load took the place of. */
  private resume(): void {
    if (this.wanted !== this.draft) void this.want(this.wanted, this.aim);
  }

  /** see changes the look: at once, but for the parts that the core has to be asked for. */
  see(change: Partial<Look>): Promise<void> {
    const { array, from, epoch, step } = this.look;
    this.aim = { ...this.aim, ...change };
    this.look = this.fitted({ ...this.look, ...change, array, from, epoch, step });
    if (this.since === null) return this.show();
    this.tell();
    return this.settled(); // an answer is on its way: the parts are asked for after it
  }

  /** settled ends when no answer is on its way. */
  async settled(): Promise<void> {
    for (let last: unknown = null; last !== this.answered; ) await (last = this.answered);
  }

  /** schema reads the fields of a file from its last bytes. */
  schema(tail: Uint8Array, size: number): Promise<Schema> {
    return this.aside.ask("schema", [tail, size], new AbortController().signal);
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

  /** want asks for the answer to a draft. */
  private want(draft: Draft, look: Look): Promise<void> {
    [this.wanted, this.aim] = [draft, look];
    return this.ask(
      question(text(draft), look),
      (shown) => this.accept(draft, shown, look),
      (cause) => this.accept(draft, nothing(cause, look), look),
    );
  }

  /** show asks for what is new in the look that is aimed at, where anything is. */
  private show(): Promise<void> {
    const [look, aim] = [this.look, this.aim];
    const same = (...keys: (keyof Look)[]): boolean => keys.every((key) => look[key] === aim[key]);
    const known: Record<Part, boolean> = { blocks: same("array"), reads: same("from"), records: same("from", "epoch", "step") };
    const missing = PARTS.filter((part) => !known[part]);
    if (missing.length === 0 || !this.reply.report) {
      this.look = this.aim = this.fitted(aim);
      this.tell();
      return Promise.resolve();
    }
    return this.ask(
      { ...question(this.reply.document!, aim), fresh: false, parts: missing },
      (shown) => this.take(shown, missing, aim),
      (cause) => this.accept(this.draft, nothing(cause, aim), aim),
    );
  }

  /** ask puts a question in place of the one before. */
  private ask(wanted: Wanted, use: (shown: Shown) => void, fail: (cause: unknown) => void): Promise<void> {
    this.asking.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    this.since ??= performance.now();
    this.answered = this.core.ask("show", [wanted], signal).then(
      (shown) => this.end(signal, () => use(shown)),
      (cause: unknown) => cause instanceof Dropped || this.end(signal, () => fail(cause)),
    );
    this.tell();
    return this.settled();
  }

  /** end takes the answer of the last question. */
  private end(signal: AbortSignal, use: () => void): void {
    if (signal.aborted) return;
    this.since = null;
    use();
    this.tell();
  }

  /** accept shows a draft with its answer. */
  private accept(draft: Draft, shown: Shown, asked: Look): void {
    const names = (d: Draft): string => JSON.stringify(d.axes.map((a) => a.name));
    if (names(draft) !== names(this.draft)) this.aim = { ...this.aim, split: null }; // it was chosen for other axes
    [this.draft, this.reply, this.ways] = [draft, shown.reply!, shown.ways];
    this.kept = this.past.length;
    this.take(shown, PARTS, asked);
    this.weigh();
  }

  /** take shows parts of an answer, and then asks for what else was wanted to be seen meanwhile. */
  private take(shown: Shown, parts: readonly Part[], asked: Look): void {
    if (parts.includes("blocks")) this.blocks = shown.blocks && new Blocks(shown.blocks);
    if (parts.includes("reads")) this.reads = shown.reads;
    if (parts.includes("records")) this.records = shown.records;
    const keys = ["array", "from", "epoch", "step"] as const;
    const later = keys.filter((key) => this.aim[key] !== asked[key]).map((key) => [key, this.aim[key]]);
    this.look = this.fitted({ ...this.aim, array: shown.array, from: shown.from, epoch: asked.epoch, step: shown.step });
    this.aim = { ...this.look, ...(Object.fromEntries(later) as Partial<Look>) };
    if (later.length > 0) void this.show();
  }

  /** weigh asks what each way of loading would cost, where the answer did not say it. */
  private weigh(): void {
    this.weighing.abort();
    this.weighing = new AbortController();
    const { signal } = this.weighing;
    if (!this.reply.report || deviceCount(this.draft) <= AT_ONCE) return;
    this.ways = { [this.draft.loading]: this.reply.report.totals };
    for (const way of LOADINGS.filter((way) => way !== this.draft.loading)) {
      const known = (totals: Totals | null): void => {
        if (signal.aborted) return;
        this.ways = { ...this.ways, [way]: totals };
        this.tell();
      };
      void this.aside.ask("costs", [text({ ...this.draft, loading: way })], signal).then(known, () => known(null));
    }
  }

  /** fitted makes a look fit the layout. */
  private fitted(look: Look): Look {
    const fit = { ...look };
    if (fit.split !== null && fit.split > this.draft.axes.length) fit.split = null;
    const { blocks } = this;
    if (!blocks) return fit;
    if (fit.dims && Math.max(...fit.dims) >= blocks.rank) fit.dims = null;
    fit.slice = blocks.counts.map((n, d) => Math.min(fit.slice[d] ?? 0, n - 1));
    if (fit.pinned !== null && fit.pinned >= blocks.total) fit.pinned = null;
    return fit;
  }

  private tell(): void {
    this.dispatchEvent(new Event("change"));
  }
}

const PARTS: readonly Part[] = ["blocks", "reads", "records"];

/** question asks for a layout, and for all parts of a look. */
function question(document: string, { array, from, epoch, step }: Look): Wanted {
  return { document, fresh: true, array, from, epoch, step, parts: [...PARTS] };
}

/** nothing is the answer of a core that failed. */
function nothing(cause: unknown, { array, from, step }: Look): Shown {
  return { reply: failed(cause), array, from, step, blocks: null, reads: null, records: null, ways: {} };
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
