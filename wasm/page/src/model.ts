// The state of the page: the layout being edited (the draft), what the core computed from it (the
// answer), and which part of it is drawn and how (the look). The core is the Go code in a worker.

import { AT_ONCE, type Answers, type Part, type Shown, type Wanted } from "./answers.js";
import { Blocks } from "./blocks.js";
import { type Core, Dropped } from "./core.js";
import { foldOf } from "./cut.js";
import { type Draft, LOADINGS, deviceCount, parse, text } from "./draft.js";
import { type Fault, faults } from "./faults.js";
import type { Described, Schema, Totals } from "./guest.js";
import { DEFAULT_LOOK, type Look } from "./look.js";
import type { Reads } from "./reads.js";
import type { Records } from "./records.js";

const MAX_UNDO = 100;

/** Model sends the event "change" when its state changes. All parts of the page show the same layout, because
 * draft, reply, look and the parts of an answer change together. Until the core answers a question, the page
 * shows the previous layout, and the forms show the wanted one. */
export class Model extends EventTarget {
  draft: Draft; // the draft that reply describes
  wanted: Draft; // the draft in the forms
  reply: Described; // the core's report and errors for draft
  look: Look;
  blocks: Blocks | null = null; // blocks of the shown array; null if it cannot be partitioned
  reads: Reads | null = null;
  records: Records | null = null;
  ways: Record<string, Totals | null> = {}; // the totals for each way of loading; null if unknown
  origin: { name: string; document: string }; // the layout that was opened last
  replaced = 0; // counts replacements of the draft by another layout
  since: number | null = null; // when the page began to wait for an answer; null if it does not wait

  private wantedLook: Look;
  private asking = new AbortController();
  private askingCosts = new AbortController();
  private answered: Promise<unknown> = Promise.resolve();
  private found: { reply: Described; draft: Draft; faults: Fault[] } | null = null;
  private past: Draft[] = []; // previous drafts, for undo
  private kept = 0; // length of past when the answer for draft came; stop shortens past to it

  private constructor(
    readonly core: Core<Answers>,
    private readonly aside: Core<Answers>, // a second worker, for costs of other ways of loading and for schemas
    name: string,
    shown: Shown,
  ) {
    super();
    this.reply = shown.reply!;
    if (!this.reply.document) throw new Error(this.reply.error?.message ?? "not a layout document");
    this.draft = this.wanted = parse(this.reply.document);
    this.look = this.wantedLook = DEFAULT_LOOK;
    this.origin = { name, document: this.reply.document };
    this.accept(this.draft, shown, DEFAULT_LOOK);
  }

  /** open creates the model of a document. It throws if the core rejects the document. */
  static async open(core: Core<Answers>, aside: Core<Answers>, document: string, name = ""): Promise<Model> {
    return new Model(core, aside, name, await core.ask("show", [question(document, DEFAULT_LOOK)], new AbortController().signal));
  }

  /** edit changes the wanted draft and asks the core about it. The promise resolves with the answer. */
  edit(change: (d: Draft) => void, look: Partial<Look> = {}): Promise<void> {
    const draft = structuredClone(this.wanted);
    change(draft);
    this.remember();
    return this.want(draft, { ...this.wantedLook, ...look });
  }

  /** undo reverts the last edit or load. */
  async undo(): Promise<void> {
    const draft = this.past.pop();
    if (!draft) return;
    this.kept = Math.min(this.kept, this.past.length);
    this.replaced++;
    await this.want(draft, this.wantedLook);
  }

  /** undoable reports whether there is an edit to revert. */
  get undoable(): boolean {
    return this.past.length > 0;
  }

  /** stop aborts the question that has no answer yet, and returns to the layout that is shown. */
  stop(): void {
    this.since = null;
    this.asking.abort();
    this.past.length = this.kept;
    this.replaced++;
    [this.wanted, this.wantedLook] = [this.draft, this.look];
    this.tell();
  }

  private remember(): void {
    this.past.push(this.wanted);
    if (this.past.length <= MAX_UNDO) return;
    this.past.shift();
    this.kept--;
  }

  /** load opens the text of a document. It resolves with the core's error, if any. The name is the title
   * if the document is an example, else "". */
  async load(document: string, name = ""): Promise<Described["error"]> {
    const look: Look = { ...DEFAULT_LOOK, tab: this.wantedLook.tab };
    let objection: Described["error"] = null;
    await this.ask(question(document, look), (shown) => {
      objection = shown.reply!.error;
      if (!shown.reply!.document) return this.resume();
      this.remember();
      this.replaced++;
      this.origin = { name, document: shown.reply!.document };
      this.wanted = parse(shown.reply!.document);
      this.wantedLook = look;
      this.accept(this.wanted, shown, look);
    }, (cause) => {
      objection = failed(cause).error;
      this.resume();
    });
    return objection;
  }

  /** resume repeats the question of an edit that a load aborted. */
  private resume(): void {
    if (this.wanted !== this.draft) void this.want(this.wanted, this.wantedLook);
  }

  /** see changes the look: at once, except for parts that need the core. */
  see(change: Partial<Look>): Promise<void> {
    const { array, from, epoch, step } = this.look;
    this.wantedLook = { ...this.wantedLook, ...change };
    this.look = this.fitted({ ...this.look, ...change, array, from, epoch, step });
    if (this.since === null) return this.show();
    this.tell();
    return this.settled(); // take requests the missing parts when the present answer comes
  }

  /** settled resolves when no question waits for its answer. */
  async settled(): Promise<void> {
    for (let last: unknown = null; last !== this.answered; ) await (last = this.answered);
  }

  /** schema reads the fields of a file from its last bytes. */
  schema(tail: Uint8Array, size: number): Promise<Schema> {
    return this.aside.ask("schema", [tail, size], new AbortController().signal);
  }

  /** names lists the arrays of the document, the mask and the extras. */
  get names(): string[] {
    return this.reply.arrays.map((a) => a.name);
  }

  /** faults lists the problems of the layout. */
  get faults(): Fault[] {
    if (this.found?.reply !== this.reply || this.found.draft !== this.draft) {
      this.found = { reply: this.reply, draft: this.draft, faults: faults(this.reply, this.draft) };
    }
    return this.found.faults;
  }

  /** split returns the number of mesh axes that are drawn downwards; the others are drawn across. */
  get split(): number {
    return this.look.split ?? defaultSplit(this.draft);
  }

  /** want asks the core about a draft. */
  private want(draft: Draft, look: Look): Promise<void> {
    [this.wanted, this.wantedLook] = [draft, look];
    return this.ask(
      question(text(draft), look),
      (shown) => this.accept(draft, shown, look),
      (cause) => this.accept(draft, nothing(cause, look), look),
    );
  }

  /** show asks for the parts that the wanted look needs and the model does not have. */
  private show(): Promise<void> {
    const [look, wanted] = [this.look, this.wantedLook];
    const same = (...keys: (keyof Look)[]): boolean => keys.every((key) => look[key] === wanted[key]);
    const known: Record<Part, boolean> = { blocks: same("array"), reads: same("from"), records: same("from", "epoch", "step") };
    const missing = PARTS.filter((part) => !known[part]);
    if (missing.length === 0 || !this.reply.report) {
      this.look = this.wantedLook = this.fitted(wanted);
      this.tell();
      return Promise.resolve();
    }
    return this.ask(
      { ...question(this.reply.document!, wanted), fresh: false, parts: missing },
      (shown) => this.take(shown, missing, wanted),
      (cause) => this.accept(this.draft, nothing(cause, wanted), wanted),
    );
  }

  /** ask sends a question and aborts the previous one. */
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

  /** end handles the answer, unless a newer question replaced this one. */
  private end(signal: AbortSignal, use: () => void): void {
    if (signal.aborted) return;
    this.since = null;
    use();
    this.tell();
  }

  /** accept shows a draft with its answer. */
  private accept(draft: Draft, shown: Shown, asked: Look): void {
    const names = (d: Draft): string => JSON.stringify(d.axes.map((a) => a.name));
    if (names(draft) !== names(this.draft)) this.wantedLook = { ...this.wantedLook, split: null }; // the split is for other axes
    [this.draft, this.reply, this.ways] = [draft, shown.reply!, shown.ways];
    this.kept = this.past.length;
    this.take(shown, PARTS, asked);
    this.askCosts();
  }

  /** take shows parts of an answer. If the wanted look changed meanwhile, it then asks for the rest. */
  private take(shown: Shown, parts: readonly Part[], asked: Look): void {
    if (parts.includes("blocks")) this.blocks = shown.blocks && new Blocks(shown.blocks);
    if (parts.includes("reads")) this.reads = shown.reads;
    if (parts.includes("records")) this.records = shown.records;
    const keys = ["array", "from", "epoch", "step"] as const;
    const later = keys.filter((key) => this.wantedLook[key] !== asked[key]).map((key) => [key, this.wantedLook[key]]);
    this.look = this.fitted({ ...this.wantedLook, array: shown.array, from: shown.from, epoch: asked.epoch, step: shown.step });
    this.wantedLook = { ...this.look, ...(Object.fromEntries(later) as Partial<Look>) };
    if (later.length > 0) void this.show();
  }

  /** askCosts asks for the costs of each way of loading, if the answer does not contain them. */
  private askCosts(): void {
    this.askingCosts.abort();
    this.askingCosts = new AbortController();
    const { signal } = this.askingCosts;
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

  /** fitted returns a look without dimensions, blocks and axes that the layout does not have. */
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

/** question builds the question for a layout with all parts of a look. */
function question(document: string, { array, from, epoch, step }: Look): Wanted {
  return { document, fresh: true, array, from, epoch, step, parts: [...PARTS] };
}

/** nothing builds an answer without any part, for a core that failed. */
function nothing(cause: unknown, { array, from, step }: Look): Shown {
  return { reply: failed(cause), array, from, step, blocks: null, reads: null, records: null, ways: {} };
}

/** failed builds the reply for a core that failed. It holds an error as for a wrong document, so the page
 * stays usable. */
function failed(cause: unknown): Described {
  const error = { code: "Internal", message: (cause as Error).message, hint: "this is a bug in meshfeed; please report it with the layout", path: "" };
  return { document: null, arrays: [], report: null, text: null, error };
}

/** defaultSplit returns the split that draws the mesh as square as possible; of two equal splits, the taller
 * drawing. If that would be a strip, all axes are drawn downwards and folded into columns. */
function defaultSplit(d: Draft): number {
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

/** A grid is a strip if its sides differ by more than this factor. */
const STRIP = 8;
