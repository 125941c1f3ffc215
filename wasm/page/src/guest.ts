// Calls the layout core: the Go code that plans every run, compiled to WebAssembly.

import { Instance, type Reactor, split } from "./instance.js";

/** Pair is a range: start and stop. */
export type Pair = [number, number];

export interface ArrayReport {
  global_shape: number[];
  shard_shape: number[] | null;
}

/** ProcessReport is what one process reads and moves. A number that the core cannot compute is null. */
export interface ProcessReport {
  process: number;
  devices: number;
  rows: Pair[] | null;
  bytes_per_step: number | null;
  host_bytes: number | null;
  interconnect_bytes: number | null;
  network_bytes: number | null;
  same_rows_as: number[] | null;
}

/** Totals are the sums over all processes. A number that the core cannot compute is null. */
export interface Totals {
  batch_bytes: number | null;
  read_bytes: number | null;
  device_bytes: number | null;
  host_bytes: number | null;
  interconnect_bytes: number | null;
  network_bytes: number | null;
  steps_per_epoch: number | null;
  remainder_records: number | null;
}

export interface Problem {
  severity: "error" | "warning" | "info";
  code: string;
  path: string;
  message: string;
  hint: string;
  facts: Record<string, number>;
}

export interface Report {
  arrays: Record<string, ArrayReport>;
  processes: ProcessReport[] | null;
  totals: Totals;
  problems: Problem[];
}

export interface Failure {
  code: string;
  message: string;
  hint: string;
  path: string;
}

/** failureText formats an error with its hint. */
export function failureText({ message, hint }: Failure): string {
  return [message, hint].filter(Boolean).join("; ");
}

export interface Described {
  document: string | null;
  arrays: { name: string }[]; // the arrays of the document, then its mask and extra arrays
  report: Report | null;
  text: string | null; // a drawing of the layout in characters
  error: Failure | null;
}

export interface SchemaField {
  name: string;
  type: string;
  shape: (number | null)[] | null; // shape of a row, with null for a length that only the data show
  dtype: string | null;
  loadable: boolean;
  why: string; // the reason if the field is not loadable
}

export interface Schema {
  fields: SchemaField[];
  rows: number | null;
  need: number; // if the given bytes were too few: how many of the last bytes are needed; else 0
  error: Failure | null;
}

/** Question selects count positions of an epoch, beginning with position. */
export interface Question {
  order: string;
  seed: number;
  records: number;
  epoch: number;
  position: number;
  count: number;
}

/** Exports are the functions of the guest. Package reply in wasm/internal documents the replies. */
interface Exports extends Reactor {
  mf_describe(n: number): bigint;
  mf_table(array: number, what: number, from: number, count: number): bigint;
  mf_samples(n: number): bigint;
  mf_schema(n: number, size: number): bigint;
}

/** An instance with more bytes of memory than this is replaced, because WebAssembly memory never shrinks. */
const MAX_MEMORY = 128 << 20;

/** A table is read in parts of at most this many numbers. */
const MAX_NUMBERS = 1 << 22;

/** Guest calls the layout core. */
export class Guest extends Instance<Exports> {
  private last: Described | null = null; // the document that the instance holds tables of

  constructor(module: WebAssembly.Module) {
    super(module, "layout core");
  }

  protected override restart(): void {
    super.restart();
    this.last = null;
  }

  /** describe checks a layout document and computes its report. */
  describe(document: string | Uint8Array): Described {
    const bytes = typeof document === "string" ? new TextEncoder().encode(document) : document;
    if (this.memory > MAX_MEMORY) this.restart();
    this.last = null;
    this.last = this.ask((e) => this.parse<Described>(e.mf_describe(this.put(bytes))));
    return this.last;
  }

  /** table returns the devices of an array. Each has 4 + 2 * rank numbers: process, id, replica and bytes,
   * then start and stop of its shard in every dimension. */
  table(of: Described, array: number, rank: number, devices: number): Float64Array {
    const width = 4 + 2 * rank;
    const out = new Float64Array(devices * width);
    const most = Math.floor(MAX_NUMBERS / width);
    for (let from = 0; from < devices; from += most) {
      this.askOf(of, (e) => {
        const [at, size] = split(e.mf_table(array, 0, from, Math.min(most, devices - from)));
        out.set(new Float64Array(e.memory.buffer, at, size / 8), from * width);
      });
    }
    return out;
  }

  /** processes returns the rows and the bytes of count processes, beginning with number from. For each
   * process the core writes seven numbers, and then its row ranges. */
  processes(of: Described, from: number, count: number): ProcessReport[] {
    const numbers = this.askOf(of, (e) => {
      const [at, size] = split(e.mf_table(0, 1, from, count));
      return new Float64Array(e.memory.buffer.slice(at, at + size));
    });
    const known = (n: number): number | null => (n < 0 ? null : n); // the core writes -1 for an unknown number
    const out: ProcessReport[] = [];
    for (let at = 0; at < numbers.length; ) {
      const [process, devices, read, host, moved, network, ranges] = [...numbers.subarray(at, at + 7)] as [number, number, number, number, number, number, number];
      const rows = Array.from({ length: Math.max(ranges, 0) }, (_, i): Pair => [numbers[at + 7 + 2 * i]!, numbers[at + 8 + 2 * i]!]);
      out.push({
        process,
        devices,
        rows: ranges < 0 ? null : rows,
        bytes_per_step: known(read),
        host_bytes: known(host),
        interconnect_bytes: known(moved),
        network_bytes: known(network),
        same_rows_as: null,
      });
      at += 7 + 2 * rows.length;
    }
    return out;
  }

  /** samples returns the record at each position of the question, up to the end of the epoch. It throws if
   * the question is invalid. */
  samples(question: Question): number[] {
    const bytes = new TextEncoder().encode(JSON.stringify(question));
    const { records, error } = this.ask((e) => this.parse<{ records: number[]; error: Failure | null }>(e.mf_samples(this.put(bytes))));
    if (error) throw new Error(error.message);
    return records;
  }

  /** schema reads the fields of a file from its last bytes. */
  schema(tail: Uint8Array, size: number): Schema {
    return this.ask((e) => this.parse<Schema>(e.mf_schema(this.put(tail), size)));
  }

  /** askOf calls the core about a described document. An instance holds the tables of only the last
   * described document. If that is another one, or the instance is new, askOf describes this one first. */
  private askOf<T>(of: Described, question: (e: Exports) => T): T {
    if (this.last !== of) {
      this.describe(of.document!);
      this.last = of;
    }
    return this.ask(question);
  }
}
