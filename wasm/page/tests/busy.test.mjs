// While the core computes, the page stays usable: it takes input, shows the previous layout, drops outdated
// answers, and recovers from a failing core.

import assert from "node:assert/strict";
import { examples, inBrowser, open, serve, settled, spoil } from "./browser.mjs";

const text = (number) => examples().find((x) => x.name.startsWith(number)).text;

/** A core that hangs on a layout with an array "forever". */
const FOREVER = `const spoil = ({ mf_describe }, asked) => ({ mf_describe(n) {
  while (asked(n).includes('"forever"'));
  return mf_describe(n);
} })`;

/** type enters a text into an input without waiting for an answer. */
async function type(input, value) {
  await input.fill(value);
  await input.press("Enter");
}

const sum = (page) => page.locator(".sum").innerText();
const sound = (page) => page.locator(".sum").filter({ hasText: "loads" }).waitFor();

for (const hosted of [false, true]) {
  inBrowser(`the page takes input while the core computes, ${hosted ? "from a server" : "from a file"}`, { impatient: true, online: hosted }, async (page, t) => {
    await spoil(page, FOREVER);
    await open(page, text("02"), hosted ? await serve(t) : undefined);
    await type(page.getByLabel("name of array 1"), "forever");
    await page.getByRole("status").getByText("Working out the layout of 8 devices").waitFor();

    // The forms show the typed text. All other parts show the previous layout and are marked as old.
    assert.equal(await page.getByLabel("name of array 1").inputValue(), "forever");
    assert.deepEqual(await page.locator("shard-view .tabs button").allInnerTexts(), ["image", "label"]);
    assert.equal(await page.locator(".center").getAttribute("aria-busy"), "true");
    await type(page.getByLabel("global batch"), "512");
    await page.getByRole("tab", { name: "JSON" }).click();
    assert.match(await page.locator("out-panel pre").innerText(), /"size": 256/);
    await page.getByRole("grid", { name: "device mesh" }).locator('[data-cell="7"]').focus();
    assert.equal(await page.locator(".said").innerText(), "device 7, process 3, rows 192–255 × 0–7 × 4–7, 8 KiB");

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

inBrowser("what takes too long is stopped, or taken back", { impatient: true }, async (page) => {
  await spoil(page, FOREVER);
  await open(page, text("02"));
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
  assert.equal(await page.getByLabel("global batch").inputValue(), "256", "of what was stopped there is nothing to take back");
});

inBrowser("a file that is refused leaves an edit that is not answered yet in force", { impatient: true }, async (page) => {
  await open(page, text("02"));
  await page.evaluate(async () => {
    const { model } = document.querySelector("layout-app");
    void model.edit((d) => void (d.batch.size = [512]));
    const error = await model.load('{"meshfeed":1}');
    if (!error) throw new Error("it was not refused");
  });
  await settled(page);
  assert.equal(await page.evaluate(() => document.querySelector("layout-app").model.draft.batch.size[0]), 512);
});

inBrowser("of many edits the last one stays, and every layout shown is whole", { impatient: true }, async (page) => {
  await open(page, text("02"));
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

inBrowser("a worker that dies is an error of that layout alone", { impatient: true }, async (page) => {
  await spoil(page, `let dying = false;
    const post = self.postMessage;
    self.postMessage = (answer) => (dying ? setTimeout(() => { throw new RangeError("out of memory"); }) : post.call(self, answer));
    const spoil = ({ mf_describe }, asked) => ({ mf_describe(n) {
      dying = asked(n).includes('"crash"');
      return mf_describe(n);
    } })`);
  await open(page, text("02"));
  await type(page.getByLabel("name of array 1"), "crash");
  await page.locator("problem-list").getByText("out of memory").waitFor();
  await page.locator("problem-list").getByText("this is a bug in meshfeed; please report it with the layout").waitFor();
  await type(page.getByLabel("name of array 1"), "image");
  await sound(page);
});

inBrowser("where workers are forbidden the page says so", { impatient: true }, async (page) => {
  await page.addInitScript(() => {
    window.Worker = class {
      constructor() {
        throw new DOMException("no workers here", "SecurityError");
      }
    };
  });
  await page.goto(`file://${new URL("../dist/layout.html", import.meta.url).pathname}`);
  await page.getByText("The page could not start: no workers here").waitFor();
});
