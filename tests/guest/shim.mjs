// Runs the guest in Node with the few functions of WASI that it needs, as a
// page does. Reads one question per line from standard input, as JSON:
// {"ask":"describe"|"samples"|"schema"|"advise","input":base64,"size":n},
// {"ask":"diagram","input":base64,"args":[width]}, {"ask":"catalog"} or
// {"ask":"table","args":[array,what,from,count]}. Writes each reply as a line of
// base64.
import { readFileSync } from "node:fs";

const EBADF = 8;
let memory;
const view = () => new DataView(memory.buffer);
const wasi = {
  args_sizes_get: (count, bytes) => (view().setUint32(count, 0, true), view().setUint32(bytes, 0, true), 0),
  args_get: () => 0,
  environ_sizes_get: (count, bytes) => (view().setUint32(count, 0, true), view().setUint32(bytes, 0, true), 0),
  environ_get: () => 0,
  clock_time_get: (_id, _precision, out) => (view().setBigUint64(out, BigInt(Math.round(performance.now() * 1e6)), true), 0),
  random_get: (at, length) => (crypto.getRandomValues(new Uint8Array(memory.buffer, at, length)), 0),
  sched_yield: () => 0,
  poll_oneoff: () => 0,
  proc_exit: (code) => { throw new Error(`the guest ended with status ${code}`); },
  fd_write: (_fd, vectors, count, written) => {
    let bytes = 0;
    for (let i = 0; i < count; i++) {
      const at = view().getUint32(vectors + 8 * i, true), length = view().getUint32(vectors + 8 * i + 4, true);
      process.stderr.write(new Uint8Array(memory.buffer, at, length));
      bytes += length;
    }
    view().setUint32(written, bytes, true);
    return 0;
  },
};
// Every other function returns EBADF, because files do not exist here.
const imports = { wasi_snapshot_preview1: new Proxy(wasi, { get: (all, name) => all[name] ?? (() => EBADF) }) };

const { instance } = await WebAssembly.instantiate(readFileSync(process.argv[2]), imports);
const guest = instance.exports;
memory = guest.memory;
guest._initialize();

function ask(question) {
  const more = { schema: [question.size ?? 0], diagram: question.args.slice(0, 1) }[question.ask] ?? [];
  let reply;
  if (question.ask === "table") {
    reply = guest.mf_table(...question.args);
  } else if (question.ask === "catalog") {
    reply = guest.mf_catalog();
  } else {
    const input = Buffer.from(question.input ?? "", "base64");
    const at = guest.mf_input(input.length) >>> 0; // first, since it may replace memory.buffer
    new Uint8Array(memory.buffer, at, input.length).set(input);
    reply = guest[`mf_${question.ask}`](input.length, ...more);
  }
  const bits = BigInt.asUintN(64, reply);
  return Buffer.from(memory.buffer, Number(bits >> 32n), Number(bits & 0xffffffffn)).toString("base64");
}

for (const line of readFileSync(0, "utf8").split("\n")) {
  if (line) process.stdout.write(ask(JSON.parse(line)) + "\n");
}
