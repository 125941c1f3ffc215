// Guest, which calls the core, without a browser. It replaces an instance that trapped or has grown too large.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inBrowser, open } from "./browser.mjs";
import { modules } from "./modules.mjs";

const { Guest } = await modules("guest");

/** core builds a module with the exports of the core. mf_describe returns, as a digit, the number of earlier
 * calls of this instance. mf_schema traps, with a message on standard error if one is given. mf_table grows
 * the memory; its first argument is the number of pages. */
function core() {
  const size = (n) => (n < 128 ? [n] : [(n & 127) | 128, n >> 7]);
  const list = (parts) => [...size(parts.length), ...parts.flat()];
  const section = (id, parts) => [id, ...size(list(parts).length), ...list(parts)];
  const name = (text) => [...size(text.length), ...Buffer.from(text)];
  const code = (...bytes) => [...size(bytes.length + 2), 0, ...bytes, 0x0b];
  const I32 = 0x7f, I64 = 0x7e, F64 = 0x7c;
  const kind = (from, to) => [0x60, ...size(from.length), ...from, ...size(to.length), ...to];
  const exported = {
    _initialize: [kind([], []), code()],
    mf_input: [kind([I32], [I32]), code(0x41, 56)],
    // address 16 + times << 32 | 1, then times++
    mf_describe: [kind([I32], [I64]), code(0x23, 0, 0xa7, 0x41, 16, 0x6a, 0xad, 0x42, 32, 0x86, 0x42, 1, 0x84, 0x23, 0, 0x42, 1, 0x7c, 0x24, 0)],
    mf_table: [kind([I32, I32, I32, I32], [I64]), code(0x20, 0, 0x40, 0, 0x1a, 0x42, 0)],
    mf_schema: [kind([I32, F64], [I64]), code(0x41, 2, 0x41, 32, 0x41, 1, 0x41, 48, 0x10, 0, 0x1a, 0x00)], // fd_write(2, 32, 1, 48), unreachable
  };
  const all = Object.entries(exported);
  const words = "fatal error: no more\nand why";
  const write = all.length; // its kind is the last
  return new WebAssembly.Module(
    new Uint8Array([
      ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
      ...section(1, [...all.map(([, [kind]]) => kind), kind([I32, I32, I32, I32], [I32])]),
      ...section(2, [[...name("wasi_snapshot_preview1"), ...name("fd_write"), 0, write]]),
      ...section(3, all.map((_, i) => [i])),
      ...section(5, [[0, 1]]),
      ...section(6, [[I64, 1, 0x42, 0, 0x0b]]),
      ...section(7, [[...name("memory"), 2, 0], ...all.map(([export_], i) => [...name(export_), 0, i + 1])]),
      ...section(10, all.map(([, [, body]]) => body)),
      ...section(11, [
        [0, 0x41, 16, 0x0b, ...name("0123456789")],
        [0, 0x41, 32, 0x0b, ...name(`${String.fromCharCode(64, 0, 0, 0, words.length, 0, 0, 0)}`)],
        [0, 0x41, 0xc0, 0, 0x0b, ...name(words)],
      ]),
    ]),
  );
}

const PAGE = 64 << 10; // bytes
const MOST = 128 << 20; // bytes that an instance may have

/** grow adds pages to the memory of the current instance. */
const grow = (guest, of, pages) => guest.table(of, pages, 0, 1);

test("an instance without failures is used again", () => {
  const guest = new Guest(core());
  assert.deepEqual([guest.describe("x"), guest.describe("x"), guest.describe("x")], [0, 1, 2]);
});

test("an instance that trapped is replaced, and its message is reported", () => {
  const guest = new Guest(core());
  assert.equal(guest.describe("x"), 0);
  for (let i = 0; i < 2; i++) {
    assert.throws(() => guest.schema(new Uint8Array(0), 0), { message: "the layout core failed: fatal error: no more" });
    assert.deepEqual([guest.describe("x"), guest.describe("x")], [0, 1], "a new instance");
  }
});

test("an instance with more than 128 MiB is replaced", () => {
  const guest = new Guest(core());
  grow(guest, guest.describe("x"), MOST / PAGE - 1);
  assert.equal(guest.describe("x"), 1, "128 MiB are allowed");
  grow(guest, 1, 1);
  assert.equal(guest.describe("x"), 0, "a larger instance is replaced");
});

inBrowser("a process with too many row ranges is listed as such", async (page) => {
  const arrays = { x: { shape: ["B0", "B1"], dtype: "int8", spec: [null, "d"] } };
  await open(page, JSON.stringify({ meshfeed: 1, mesh: { axes: [["d", 4]], processes: 4 }, arrays, batch: { size: [131072, 4] }, dataset: { records: 524288 } }));
  const rows = ["0, 4, 8, … (131,072 ranges)", "1, 5, 9, … (131,072 ranges)", "too many to list", "too many to list"];
  assert.deepEqual(await page.locator("reads-view td.rows").allTextContents(), rows);
  const samples = page.locator("samples-view tbody tr");
  assert.deepEqual(await samples.locator("td:nth-child(2)").allTextContents(), rows);
  assert.deepEqual(await samples.locator("td:nth-child(3)").allTextContents(), [
    "0, 4, 8, 12, 16, 20, … 131,066 more",
    "1, 5, 9, 13, 17, 21, … 131,066 more",
    "too many to list",
    "too many to list",
  ]);
  const stripe = page.locator("reads-view .bar").nth(1).locator("i");
  assert.equal(await stripe.count(), 64);
  const { left, width, opacity } = await stripe.last().evaluate((i) => i.style);
  assert.ok(Math.abs(parseFloat(left) + parseFloat(width) - 100) < 0.001, `the last stripe ends at ${left} + ${width}`);
  assert.ok(Math.abs(opacity - 0.25) < 0.001, `its opacity is ${opacity}, not a quarter`);
});
