// While the core computes, the page stays usable: it takes input, shows the previous layout, drops outdated
// answers, and recovers from a failing core.

import assert from "node:assert/strict";
import { example, inBrowser, open, serve, settled, patchWorkers, type } from "../browser.mjs";

/** A core that hangs on a layout with an array "forever". */
const FOREVER = `const replacements = ({ mf_describe }, asked) => ({ mf_describe(n) {
  while (asked(n).includes('"forever"'));
  return mf_describe(n);
} })`;

const sum = (page) => page.locator(".sum").innerText();
const loads = (page) => page.locator(".sum").filter({ hasText: "loads" }).waitFor();

for (const hosted of [false, true]) {
  inBrowser(`the page takes input while the core computes, ${hosted ? "from a server" : "from a file"}`, { immediate: true, online: hosted }, async (page, t) => {
    await patchWorkers(page, FOREVER);
    await open(page, example("02"), hosted ? await serve(t) : undefined);
    await type(page.getByLabel("name of array 1"), "forever");
    await page.getByRole("status").getByText("Working out the layout of 8 devices").waitFor();

    // The forms show the typed text. All other parts show the previous layout and are marked as old.
    assert.equal(await page.getByLabel("name of array 1").inputValue(), "forever");
    assert.deepEqual(await page.locator("shard-view .tabs button").allInnerTexts(), ["image", "label"]);
    assert.equal(await page.locator(".center").getAttribute("aria-busy"), "true");
    await type(page.getByLabel("global batch"), "512");
    await page.getByRole("tab", { name: "JSON" }).press("Enter"); // so that the pointer stays outside of the picture
    assert.match(await page.locator("out-panel pre").innerText(), /"size": 256/);
    await page.getByRole("grid", { name: "device mesh" }).locator('[data-cell="7"]').focus();
    assert.equal(await page.locator(".detail").innerText(), "device 7, process 3, rows 192–255 × 0–7 × 4–7, 8 KiB");

    // The look that was requested meanwhile is shown with the answer.
    await page.locator("shard-view").getByRole("button", { name: "label" }).click();
    await type(page.getByLabel("name of array 1"), "fine");
    await page.locator("shard-view .tabs").getByText("fine").waitFor();
    await page.getByRole("status").getByText("Working out").waitFor({ state: "detached" });
    await settled(page);
    assert.equal(await page.locator('shard-view .tabs [aria-pressed="true"]').innerText(), "label");
    assert.match(await page.locator("out-panel pre").innerText(), /"size": 512/);
    assert.equal(await page.locator(".center").getAttribute("aria-busy"), "false");
  });
}

inBrowser("Stop and Undo end a question that takes too long", { immediate: true }, async (page) => {
  await patchWorkers(page, FOREVER);
  await open(page, example("02"));
  await type(page.getByLabel("global batch"), "512");
  await settled(page);
  for (const end of ["Stop", "Undo"]) {
    await type(page.getByLabel("name of array 2"), "forever");
    await type(page.getByLabel("global batch"), "1024");
    await page.getByRole("status").getByText("Working out").waitFor();
    if (end === "Stop") await page.getByRole("button", { name: "Stop" }).click();
    else for (const _ of "12") await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("status").getByText("Working out").waitFor({ state: "detached" });
    await settled(page);
    assert.equal(await page.getByLabel("name of array 2").inputValue(), "label", end);
    assert.equal(await page.getByLabel("global batch").inputValue(), "512", end);
    assert.match(await sum(page), /loads$/);
  }
  await page.getByRole("button", { name: "Undo" }).click();
  await settled(page);
  assert.equal(await page.getByLabel("global batch").inputValue(), "256", "a stopped edit is not in the undo history");
});

inBrowser("a refused file does not drop an open edit", { immediate: true }, async (page) => {
  await open(page, example("02"));
  await page.evaluate(async () => {
    const { model } = document.querySelector("layout-app");
    void model.edit((d) => void (d.batch.size = [512]));
    const error = await model.load('{"meshfeed":1}');
    if (!error) throw new Error("the document was not refused");
  });
  await settled(page);
  assert.equal(await page.evaluate(() => document.querySelector("layout-app").model.draft.batch.size[0]), 512);
});

inBrowser("after many edits the last one is shown, and never parts of two layouts", { immediate: true }, async (page) => {
  await open(page, example("02"));
  const seen = await page.evaluate(async () => {
    const { model } = document.querySelector("layout-app");
    const seen = [];
    const wrong = [];
    model.addEventListener("change", () => {
      const { draft, reply, blocks, look } = model;
      const size = draft.batch.size[0];
      seen.push(size);
      if (!reply.document.includes(`"size":${size}`)) wrong.push(`${size}: ${reply.document}`);
      if (blocks.shape[0] !== size || model.records.rows.at(-1).rows !== `${(3 * size) / 4}–${size - 1}` || look.array !== "image") wrong.push(`${size}: ${blocks.shape}, ${model.records.rows.at(-1).rows}`);
    });
    for (let i = 1; i <= 60; i++) {
      void model.edit((d) => void (d.batch.size = [8 * i]));
      if (i % 7 === 0) await model.settled();
      if (i % 3 === 0) void model.see({ step: i % 5 });
    }
    await model.settled();
    return { last: seen.at(-1), step: model.look.step, wrong };
  });
  assert.deepEqual(seen, { last: 480, step: 0, wrong: [] });
});

inBrowser("if a worker fails, the page reports an error and accepts the next edit", { immediate: true }, async (page) => {
  await patchWorkers(page, `let dying = false;
    const post = self.postMessage;
    self.postMessage = (answer) => (dying ? setTimeout(() => { throw new RangeError("out of memory"); }) : post.call(self, answer));
    const replacements = ({ mf_describe }, asked) => ({ mf_describe(n) {
      dying = asked(n).includes('"crash"');
      return mf_describe(n);
    } })`);
  await open(page, example("02"));
  await type(page.getByLabel("name of array 1"), "crash");
  await page.locator("problem-list").getByText("out of memory").waitFor();
  await page.locator("problem-list").getByText("this is a bug in meshfeed; please report it with the layout").waitFor();
  await type(page.getByLabel("name of array 1"), "image");
  await loads(page);
});

inBrowser("the page reports that workers are forbidden", { immediate: true }, async (page) => {
  await page.addInitScript(() => {
    window.Worker = class {
      constructor() {
        throw new DOMException("no workers here", "SecurityError");
      }
    };
  });
  await page.goto(`file://${new URL("../../dist/layout.html", import.meta.url).pathname}`);
  await page.getByText("The page could not start: no workers here").waitFor();
});
