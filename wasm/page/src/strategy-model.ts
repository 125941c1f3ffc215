// The state of the strategy tab: the document in the form, and the planner's report about it. The planner is the Go
// code in a worker.

import type { Advised, Candidate, Catalog, Collective, Pipeline, Report, Stage } from "./advice.js";
import { limit } from "./candidate.js";
import { type Core, Dropped } from "./core.js";
import type { Subject } from "./element.js";
import type { Fault } from "./faults.js";
import type { Problem } from "./guest.js";
import { type JsonObject, read, write } from "./json.js";
import type { Planner } from "./planner.js";
import { narrowed } from "./strategy-draft.js";

const MAX_UNDO = 100;

/** If the planner computes for longer than this, in milliseconds, a newer document does not wait for it. */
const LATE = 2000;

/** Detail is what the planner reports about one candidate alone. */
export interface Detail {
  stages: Stage[];
  pipeline: Pipeline | null;
  collectives: Collective[];
}

const NOTHING: Advised = { report: null, layout: null, text: null, error: null };

const ORDER = { error: 0, warning: 1, info: 2 } as const;

/** StrategyModel sends the event "change" when its state changes. While the user drags a slider, the planner skips
 * documents that a newer one replaced before their turn. */
export class StrategyModel extends EventTarget implements Subject {
  wanted: JsonObject; // the document in the form
  reply = NOTHING; // about the document that was asked about last
  document: JsonObject; // the document that report describes
  report: Report | null = null; // the last report: the one of reply, or if reply is an error, of an earlier document
  chosen = 0; // the candidate with the shown memory, time and pictures
  detail: Detail | null = null; // detail of the chosen candidate; null until the planner has sent it
  replaced = 0; // counts replacements of the document by another one
  origin = { name: "", document: "" }; // the document that was opened last
  since: number | null = null; // when the page began to wait for an answer; null if it does not wait

  private past: JsonObject[] = []; // previous documents, for undo
  private merged = ""; // the key of edits that merge into one
  private asking = new AbortController();
  private detailing = new AbortController();
  private detailed: Promise<void> = Promise.resolve();
  private answered: Promise<void> | null = null;
  private found: Fault<JsonObject>[] = [];

  private constructor(
    private readonly core: Core<Planner>,
    readonly catalog: Catalog,
    document: JsonObject,
  ) {
    super();
    this.wanted = this.document = document;
  }

  /** open creates the model of a document. It throws unless the text is a JSON object. */
  static async open(core: Core<Planner>, text: string, name = ""): Promise<StrategyModel> {
    const document = parse(text);
    const model = new StrategyModel(core, await core.ask("catalog", [], new AbortController().signal), document);
    model.origin = { name, document: write(document) };
    await model.want(document);
    return model;
  }

  /** edit changes the wanted document and asks the planner. Consecutive edits with the same
   * key, such as the edits of a slider that is dragged, are one edit for undo. */
  edit(change: (d: JsonObject) => void, key = ""): Promise<void> {
    const document = structuredClone(this.wanted);
    change(document);
    if (!key || key !== this.merged) this.remember();
    this.merged = key;
    return this.want(document);
  }

  /** finish ends the edit of a slider. */
  finish(): void {
    this.merged = "";
  }

  /** undo reverts the last edit or load. */
  async undo(): Promise<void> {
    const document = this.past.pop();
    if (!document) return;
    this.replaced++;
    this.merged = "";
    await this.want(document);
  }

  /** undoable reports whether there is an edit to revert. */
  get undoable(): boolean {
    return this.past.length > 0;
  }

  /** load opens the text of a document. It throws unless the text is a JSON object. The
   * name is the title if the document is an example, else "". */
  async load(text: string, name = ""): Promise<void> {
    const document = parse(text);
    this.remember();
    this.merged = "";
    this.replaced++;
    this.report = this.detail = null;
    this.origin = { name, document: write(document) };
    await this.want(document);
  }

  /** choose selects the candidate to show memory, time and pictures of. */
  choose(candidate: number): void {
    this.detailing.abort();
    this.detailing = new AbortController();
    this.chosen = candidate;
    this.detail = this.report && candidate === this.report.best ? this.report : null;
    this.tell();
    const c = this.report?.candidates[candidate];
    if (c && !this.detail) this.detailed = this.ask(c, this.detailing.signal);
  }

  /** ask asks the planner for the detail of a candidate. */
  private async ask(c: Candidate, signal: AbortSignal): Promise<void> {
    const { report } = await this.core.ask("advise", [write(narrowed(this.document, c))], signal).catch(() => NOTHING);
    if (signal.aborted || !report) return;
    const { capacity } = c.memory;
    const stages = report.stages.map((s) => ({ ...s, memory: { ...s.memory, capacity, free: capacity === null ? null : limit(c.memory)! - s.memory.total } }));
    this.detail = { stages, pipeline: report.pipeline, collectives: report.collectives };
    this.tell();
  }

  /** draw asks the planner for a picture and returns its SVG. */
  draw(diagram: object, width: number, signal: AbortSignal): Promise<string> {
    return this.core.ask("diagram", [JSON.stringify({ meshfeed: 1, diagram }), width], signal);
  }

  /** text returns the wanted document. */
  get text(): string {
    return write(this.wanted);
  }

  /** faults lists the problems of the document, errors first. */
  get faults(): readonly Fault<JsonObject>[] {
    return this.found;
  }

  /** settled resolves when the planner has answered all questions about the document and the candidate. */
  async settled(): Promise<void> {
    await this.answered;
    await this.detailed;
  }

  private remember(): void {
    this.past.push(this.wanted);
    if (this.past.length > MAX_UNDO) this.past.shift();
  }

  /** want asks the planner about a document. If the planner computes, the question waits, and replaces one that waits
   * already. */
  private want(document: JsonObject): Promise<void> {
    this.wanted = document;
    const { asking, since } = this;
    if (since !== null) setTimeout(() => asking.abort(), Math.max(0, since + LATE - performance.now()));
    this.answered ??= this.work().finally(() => (this.answered = null));
    this.tell();
    return this.answered;
  }

  /** work asks about the wanted document until there is a reply about it. */
  private async work(): Promise<void> {
    for (let document: JsonObject | null = null; document !== this.wanted; ) {
      document = this.wanted;
      this.since = performance.now();
      this.asking = new AbortController();
      try {
        this.accept(document, await this.core.ask("advise", [write(document)], this.asking.signal));
      } catch (cause) {
        if (!(cause instanceof Dropped)) this.accept(document, failed(cause as Error));
      }
      this.since = null;
      this.tell();
    }
  }

  private accept(document: JsonObject, reply: Advised): void {
    const { report, error } = reply;
    this.reply = reply;
    if (report) {
      [this.document, this.report] = [document, report];
      this.choose(report.best ?? 0);
    }
    const problems: Problem[] = error ? [{ severity: "error", code: error.code, path: error.path, message: error.message, hint: error.hint, facts: {} }] : (report?.problems ?? []);
    this.found = problems.map((p): Fault<JsonObject> => ({ problems: [p], fixes: [] })).sort((a, b) => ORDER[a.problems[0].severity] - ORDER[b.problems[0].severity]);
  }

  private tell(): void {
    this.dispatchEvent(new Event("change"));
  }
}

/** parse reads a document. It throws unless the text is a JSON object with a section of a
 * strategy. */
function parse(text: string): JsonObject {
  const value = read(text);
  if (!(value instanceof Map)) throw new Error("a strategy document is a JSON object");
  if (!["model", "training", "cluster"].some((key) => value.has(key))) throw new Error("this is not a strategy document: it has no model, training or cluster");
  return value;
}

/** failed builds the reply of a planner that failed. */
function failed(cause: Error): Advised {
  const error = { code: "Internal", message: cause.message, hint: "this is a bug in meshfeed; please report it with the document", path: "" };
  return { report: null, layout: null, text: null, error };
}
