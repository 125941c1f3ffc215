// All parts of the page show the same layout, after any sequence of edits and answers.

import assert from "node:assert/strict";
import { example, examples, inBrowser, open, patchWorkers } from "../browser.mjs";

const INVALID = '{"meshfeed":1,"mesh":{"axes":[["data",0]]}}';

/** shown returns the text of each part. */
const shown = (page) =>
  page.evaluate(async () => {
    const app = document.querySelector("layout-app");
    await app.updateComplete;
    const words = (part) => app.shadowRoot.querySelector(part)?.shadowRoot.textContent.replaceAll(/\s+/g, " ").trim();
    const picture = app.shadowRoot.querySelector("shard-view").shadowRoot;
    const grids = [...picture.querySelectorAll("shard-grid")].map((g) => `${g.grid.rows}×${g.grid.cols} ${g.grid.block.subarray(0, 64).join()}`);
    const sum = app.shadowRoot.querySelector(".sum").textContent.trim();
    const table = (words("reads-view") ?? "").split("Ways of loading")[0];
    return { sum, facts: picture.querySelector(".facts")?.textContent.replaceAll(/\s+/g, " "), grids, table, figures: words("totals-view"), problems: words("problem-list") };
  });

/** see changes the look, after which every part renders again. */
const see = (page, look) => page.evaluate((look) => document.querySelector("layout-app").model.see(look), look);

/** load opens a document and returns the page's error message. */
const load = (page, document) => page.evaluate((d) => document.querySelector("layout-app").model.load(d).then((error) => error?.message ?? null), document);

inBrowser("a refused document changes nothing on the page", async (page) => {
  await open(page, example("08"));
  const before = await shown(page);
  assert.match(before.table, /^What every process reads per step .*80–31 1 MiB/);
  assert.match(await load(page, INVALID), /expected a size/);
  await see(page, {});
  assert.deepEqual(await shown(page), before);

  await open(page, example("02"));
  await see(page, { array: "label" });
  const label = await shown(page);
  await see(page, { array: "image" });
  await load(page, INVALID);
  await see(page, { array: "label" });
  assert.deepEqual(await shown(page), label);
});

inBrowser("questions about another document do not change what is shown", async (page) => {
  await patchWorkers(page, 'const replacements = () => ({ mf_schema() { throw new WebAssembly.RuntimeError("unreachable"); } })');
  await open(page, example("08"));
  const before = await shown(page);
  // the page asks for the costs of other ways of loading later
  await page.waitForFunction(() => Object.keys(document.querySelector("layout-app").model.ways).length === 4);
  const ask = (name, question) => page.evaluate(([name, question]) => document.querySelector("layout-app").model.core.ask(name, question, new AbortController().signal).catch((cause) => cause.message), [name, question]);
  await ask("describe", [example("07")]);
  const turn = async () => {
    await page.getByRole("button", { name: "processes after" }).click();
    await page.getByRole("button", { name: "processes before" }).click();
  };
  await turn();
  assert.deepEqual(await shown(page), before);
  assert.match(await ask("schema", [[], 8]), /unreachable/, "the next question goes to a new instance");
  await turn();
  assert.deepEqual(await shown(page), before);
});

/** trap makes the core fail at the first tables of 65,536 devices. */
const trap = (page, times) =>
  patchWorkers(page, `let times = ${times};
    const replacements = ({ mf_table }) => ({ mf_table(array, what, from, count) {
      if (count > 60000 && times-- > 0) throw new WebAssembly.RuntimeError("unreachable");
      return mf_table(array, what, from, count);
    } })`);

for (const times of [1, Infinity]) {
  inBrowser(`if the core fails at a picture ${times} times, no part of the page shows another layout`, async (page) => {
    await trap(page, times);
    await open(page, example("07"));
    const before = await shown(page);
    if (times > 1) {
      assert.match(await load(page, example("08")), /unreachable/);
      assert.deepEqual(await shown(page), before, "a layout that cannot be drawn is not opened");
    }
    await page.evaluate(() => document.querySelector("layout-app").model.edit((d) => {
      d.axes = [{ name: "data", size: 256 }, { name: "model", size: 256 }];
      d.batch.size = [256];
    }));
    await page.locator("shard-view").hover();
    const now = await shown(page);
    assert.match(now.sum, /65,536 devices .* 1 error$/);
    assert.match(now.problems, /unreachable/);
    assert.equal(now.table, "");
    assert.doesNotMatch(JSON.stringify(now), /300 KiB/, "no part shows the previous layout");
    if (times > 1) return;
    await page.evaluate(() => document.querySelector("layout-app").model.edit((d) => void (d.batch.size = [512])));
    const again = await shown(page);
    assert.match(again.sum, /loads$/);
    assert.match(again.facts, /512 × 32/);
  });
}

inBrowser("the text of the focused cell is the text of the layout shown", { shared: true }, async (page) => {
  await open(page, example("02"));
  await page.getByRole("grid", { name: "device mesh" }).locator('[data-cell="7"]').focus();
  const said = page.locator(".detail");
  assert.equal(await said.innerText(), "device 7, process 3, rows 192–255 × 0–7 × 4–7, 8 KiB");
  await page.evaluate(() => document.querySelector("layout-app").model.edit((d) => void (d.batch.size = [1024])));
  assert.equal(await said.innerText(), "device 7, process 3, rows 768–1,023 × 0–7 × 4–7, 32 KiB");
  await page.evaluate(() => document.querySelector("layout-app").model.edit((d) => d.axes.splice(1, 1, { name: "model", size: 1 })));
  assert.match(await said.innerText(), /^Point at a block /, "the device no longer exists");
});

inBrowser("an example looks the same after any other example", async (page) => {
  const alone = new Map();
  for (const { name, text } of examples()) {
    await open(page, text);
    alone.set(name, await shown(page));
  }
  for (const step of [1, 9]) {
    for (let i = 0; i < 10; i++) {
      const { name, text } = examples()[(i * step) % 10];
      await load(page, text);
      assert.deepEqual(await shown(page), alone.get(name), `${name}, every ${step}`);
    }
  }
});

/** changes records the meshes that are shown; last returns the latest one after the second. */
const changes = (page) =>
  page.evaluate(() => {
    const { model } = document.querySelector("layout-app");
    const mesh = () => model.draft.axes.map((a) => a.size).join("×");
    const shown = [mesh()];
    window.meshes = [];
    model.addEventListener("change", () => {
      if (mesh() !== shown.at(-1)) shown.push(mesh());
      window.meshes = shown.slice(1);
    });
  });
const last = (page) => page.waitForFunction(() => window.meshes.length > 1 && window.meshes.at(-1)).then((mesh) => mesh.jsonValue());

/** hold makes the first call of a method wait for window.release(). */
const hold = (page, type, method) =>
  page.evaluate(([type, method]) => {
    const { prototype } = window[type];
    const usual = prototype[method];
    const held = new Promise((release) => (window.release = release));
    prototype[method] = async function (...args) {
      prototype[method] = usual;
      await held;
      return usual.apply(this, args);
    };
  }, [type, method]);

inBrowser("of two opened files the last one is shown, also if the first takes longer to read", async (page) => {
  await open(page);
  await changes(page);
  await hold(page, "File", "text");
  const input = page.locator('input[type="file"]');
  for (const name of ["10", "03"]) await input.setInputFiles({ name: `${name}.json`, mimeType: "application/json", buffer: Buffer.from(example(name)) });
  await page.evaluate(() => window.release());
  assert.equal(await last(page), "2×8");
});

inBrowser("of two links the last one is shown, and Back shows the one before", async (page) => {
  await open(page);
  const links = await page.evaluate(async (documents) => {
    const pack = async (d) => {
      const packed = await new Response(new Blob([d]).stream().pipeThrough(new CompressionStream("deflate-raw"))).arrayBuffer();
      return `#v1=${btoa(String.fromCharCode(...new Uint8Array(packed))).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")}`;
    };
    return Promise.all(documents.map(pack));
  }, [example("10"), example("03")]);
  await changes(page);
  await hold(page, "ReadableStreamDefaultReader", "read");
  for (const link of links) await page.evaluate((link) => new Promise((gone) => (addEventListener("hashchange", gone, { once: true }), (location.hash = link))), link);
  await page.evaluate(() => window.release());
  assert.equal(await last(page), "2×8");
  await page.goBack();
  await page.waitForFunction(() => window.meshes.at(-1) === "16×4");
  await page.goForward();
  await page.waitForFunction(() => window.meshes.at(-1) === "2×8");
  assert.match((await shown(page)).sum, /^data 2 × model 8 · 16 devices/);
});
