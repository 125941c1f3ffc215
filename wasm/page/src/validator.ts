// The entry of the npm package: the layout validator for Node.js and browsers.

import { type Described, Guest, type Question, type Schema } from "./guest.js";

export type { ArrayReport, Described, Failure, Pair, Problem, ProcessReport, Question, Report, Schema, SchemaField, Totals } from "./guest.js";

/** Validator checks layout documents. Its methods return when the answer is ready, and need no network. */
export interface Validator {
  /** describe checks a layout document of at most 8 MiB. A text that is not a layout
   * document has an error and no report. Every other document has a report with problems,
   * which say what is wrong and what to do. */
  describe(document: string | Uint8Array): Described;

  /** schema reads the fields of an Arrow or Parquet file from its last bytes and its size. If these bytes
   * are too few, need says how many it takes. */
  schema(tail: Uint8Array, size: number): Schema;

  /** samples returns the records at some positions of an epoch, at most 65,536. The order has its full name:
   * "sequential.1", "shuffle.1", "local.1:G:B" or "blocks.1:W:B:H". It throws an Error for another one. */
  samples(question: Question): number[];
}

/** load starts a validator. By default it reads meshfeed.wasm from the folder of this module. */
export async function load(module?: WebAssembly.Module | BufferSource): Promise<Validator> {
  const core = module ?? (await read(new URL("./meshfeed.wasm", import.meta.url)));
  return new Guest(core instanceof WebAssembly.Module ? core : await WebAssembly.compile(core));
}

/** read returns the bytes of a file or of an address. */
async function read(url: URL): Promise<BufferSource> {
  if (url.protocol === "file:") {
    const files = "node:fs/promises"; // not a literal, so that a bundler for browsers does not resolve it
    return (await import(files)).readFile(url);
  }
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} is not there: the server answered ${response.status}; publish meshfeed.wasm beside index.js`);
  return response.arrayBuffer();
}
