// Answers strategy documents with the planner's WebAssembly module, one per line of the
// standard input. Each answer is the number of bytes of the reply. The first line is the
// version of Node.js.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { WASI } from "node:wasi";

const wasi = new WASI({ version: "preview1" });
const module = new WebAssembly.Module(readFileSync(process.argv[2]));
const instance = new WebAssembly.Instance(module, wasi.getImportObject());
wasi.initialize(instance);
const e = instance.exports;
globalThis.kept = [wasi, instance]; // from the garbage collector, which does not see that the module uses wasi

console.log(process.version);
for await (const line of createInterface({ input: process.stdin })) {
  const bytes = new TextEncoder().encode(line);
  new Uint8Array(e.memory.buffer, e.mf_input(bytes.length), bytes.length).set(bytes);
  const size = BigInt.asUintN(64, e.mf_advise(bytes.length)) & 0xffffffffn;
  console.log(String(size));
}
