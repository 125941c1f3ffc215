// The data panel: shared rows and the records of a step. Also the stored theme.

import assert from "node:assert/strict";
import { test } from "node:test";
import { example, inBrowser, load, open, serve } from "./browser.mjs";
import { core, modules } from "./modules.mjs";

const { shared, repeated, Guest } = await modules("overlap", "guest");

/** readers builds reports of processes that read some rows. */
const readers = (...rows) => rows.map((r, process) => ({ process, rows: r }));

test("shared lists the other readers of a process's rows", () => {
  const all = readers([[0, 8]], [[4, 6], [7, 20]], [[0, 8]], [[8, 9]], [], [[0, 99]]);
  assert.deepEqual(shared(all[0], all), [{ process: 1, rows: [[4, 6], [7, 8]] }, { process: 2, rows: null }, { process: 5, rows: null }]);
  assert.deepEqual(shared(all[1], all), [{ process: 0, rows: [[4, 6], [7, 8]] }, { process: 2, rows: [[4, 6], [7, 8]] }, { process: 3, rows: [[8, 9]] }, { process: 5, rows: null }]);
  assert.deepEqual(shared(all[4], all), []);
});

test("repeated lists the rows that several processes read", () => {
  assert.deepEqual(repeated(readers([[0, 4]], [[4, 8]])), { rows: [], least: Infinity, most: 0 });
  assert.deepEqual(repeated(readers([[0, 4]], [[2, 8]], [[3, 4], [9, 12]], [[11, 12]])), { rows: [[2, 4], [11, 12]], least: 2, most: 3 });
  assert.deepEqual(repeated(readers([[0, 8]], [[0, 4]], [[4, 8]])), { rows: [[0, 8]], least: 2, most: 2 });
});

test("repeated agrees with counting row by row", () => {
  let seed = 1;
  const random = (n) => (seed = (seed * 48271) % 2147483647) % n;
  for (let round = 0; round < 300; round++) {
    const all = readers(...Array.from({ length: 1 + random(5) }, () => {
      const cuts = [...new Set(Array.from({ length: 2 * random(4) }, () => random(20)))].sort((a, b) => a - b);
      return Array.from({ length: cuts.length >> 1 }, (_, i) => [cuts[2 * i], cuts[2 * i + 1]]);
    }));
    const count = (row) => all.filter((p) => p.rows.some(([a, b]) => a <= row && row < b)).length;
    const counts = Array.from({ length: 20 }, (_, row) => count(row));
    const many = counts.filter((n) => n > 1);
    const { rows, least, most } = repeated(all);
    assert.deepEqual(counts.map((_, row) => rows.some(([a, b]) => a <= row && row < b)), counts.map((n) => n > 1));
    assert.deepEqual([least, most], many.length === 0 ? [Infinity, 0] : [Math.min(...many), Math.max(...many)]);
  }
});

/** table returns the texts of a region's table. */
const table = (page, name) => page.getByRole("region", { name, exact: true }).locator("tbody tr").evaluateAll((rows) => rows.map((r) => [...r.cells].map((c) => c.innerText.trim())));

const UNEVEN = '{"meshfeed":1,"mesh":{"axes":[["data",2],["model",2]],"devices":[[0,0],[1,1],[1,2],[1,3]]},"arrays":{"x":{"shape":["B",4],"dtype":"int8","spec":["data"]}},"batch":{"size":8}}';

inBrowser("other readers are listed with the shared rows, and a sentence sums up repeated reads", { shared: true }, async (page) => {
  await open(page, UNEVEN);
  const others = async () => (await table(page, "what every process reads")).map((row) => row.at(-1));
  assert.deepEqual(await others(), ["p1", "p0 (0–3)"]);
  await page.getByText("Rows 0–3 are read by 2 processes; all together read 1.5× the batch.").waitFor();
  await load(page, example("04"));
  assert.deepEqual(await others(), ["p1", "p0", "p3", "p2"]);
  await page.getByText("Every row is read by 2 processes; all together read 1× the batch.").waitFor();
  await load(page, example("08"));
  assert.deepEqual([...new Set(await others())], ["no other"]);
  await page.getByText("No row is read twice.").waitFor();
  await load(page, example("08").replace('[["data", "fsdp"], "model"]', '["model"]'));
  assert.deepEqual([...new Set(await others())], ["p1, p2, p3, p4 and 8,187 more", "p0, p2, p3, p4 and 8,187 more", "p0, p1, p3, p4 and 8,187 more", "p0, p1, p2, p4 and 8,187 more", "p0, p1, p2, p3 and 8,187 more"]);
});

const SMALL = (more) => `{"meshfeed":1,"mesh":{"axes":[["data",2]],"processes":2},"arrays":{"x":{"shape":["B"],"dtype":"int8","spec":["data"]}},"batch":{"size":8${more.batch ?? ""}},"dataset":{"records":${more.records}${more.order ?? ""}}}`;

inBrowser("the records of a step are listed, also across epochs", { shared: true }, async (page) => {
  await open(page, SMALL({ records: 19 }));
  const records = async () => (await table(page, "which records")).map((row) => row.at(-1));
  const view = page.locator("samples-view");
  const press = (name) => view.getByRole("button", { name }).click();
  assert.deepEqual(await records(), ["0, 1, 2, 3", "4, 5, 6, 7"]);
  assert.equal(await view.getByRole("button", { name: "step before" }).isDisabled(), true);
  await press("step after");
  assert.deepEqual(await records(), ["8, 9, 10, 11", "12, 13, 14, 15"]);
  await view.getByText("3 records are left out of this epoch: 16, 17, 18", { exact: true }).waitFor();
  await press("step after");
  assert.equal(await view.getByLabel("epoch").first().inputValue(), "1");
  assert.deepEqual(await records(), ["0, 1, 2, 3", "4, 5, 6, 7"]);
  await press("step before");
  assert.equal(await view.getByLabel("step").first().inputValue(), "1");
  assert.equal(await view.getByLabel("epoch").first().inputValue(), "0");

  await load(page, SMALL({ records: 19, batch: ',"remainder":"pad"' }));
  await view.getByLabel("step").first().fill("2");
  await view.getByLabel("step").first().press("Enter");
  assert.deepEqual(await records(), ["16, 17, 18, 1 row of padding", "4 rows of padding"]);

  await load(page, SMALL({ records: 7 }));
  await view.getByText("There is no step in an epoch.").waitFor();
  await load(page, SMALL({ records: 90, order: ',"order":"local"' }));
  await view.locator(".why").filter({ hasText: 'there is no order "local"' }).waitFor();
  await load(page, UNEVEN);
  await view.getByText("Enter the number of records of the dataset to see the records of each process.").waitFor();
});

inBrowser("each shuffled epoch lists every record once, in an order of its own", { shared: true }, async (page) => {
  await open(page, SMALL({ records: 40, order: ',"order":"shuffle.1","seed":5' }));
  const epochs = [];
  for (let epoch = 0; epoch < 2; epoch++) {
    const seen = [];
    for (let step = 0; step < 5; step++) {
      for (const row of await table(page, "which records")) seen.push(...row.at(-1).split(", ").map(Number));
      await page.locator("samples-view").getByRole("button", { name: "step after" }).click();
    }
    assert.deepEqual([...seen].sort((a, b) => a - b), Array.from({ length: 40 }, (_, i) => i));
    epochs.push(seen.join());
  }
  assert.notEqual(epochs[0], epochs[1]);
  const whole = core(Guest).samples({ order: "shuffle.1", seed: 5, records: 40, epoch: 0, position: 0, count: 40 });
  assert.equal(epochs[0], whole.join());
});

inBrowser("the theme is stored, and is not part of a link", { online: true, permissions: ["clipboard-read", "clipboard-write"] }, async (page, t) => {
  const address = await serve(t);
  await open(page, null, address);
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme ?? "auto");
  await page.getByLabel("colors", { exact: true }).selectOption("dark");
  await page.getByRole("button", { name: "Share link" }).click();
  await page.locator(".notice").waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  await page.getByLabel("colors", { exact: true }).selectOption("light");
  await page.goto("about:blank");
  await open(page, null, link);
  assert.equal(await theme(), "light");
});

inBrowser("without local storage, a theme lasts until the page is closed", async (page) => {
  await page.addInitScript(() => Object.defineProperty(window, "localStorage", { get: () => { throw new DOMException("no", "SecurityError"); } }));
  await open(page);
  await page.getByLabel("colors", { exact: true }).selectOption("dark");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await page.reload();
  await page.locator("layout-app").waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), undefined);
});
