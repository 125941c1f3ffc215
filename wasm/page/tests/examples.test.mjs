// The accessibility trees of all examples. Every example is drawn, without console output.

import assert from "node:assert/strict";
import { examples, golden, inBrowser, load, open } from "./browser.mjs";

const PARTS = ["picture", "data", "problems", "figures", "export"];

inBrowser("the accessibility tree of every example is as in its snapshot", async (page) => {
  await open(page);
  for (const { name, text } of examples()) {
    await load(page, text);
    await page.waitForFunction(() => Object.keys(document.querySelector("layout-app").model.ways).length === 4);
    const said = [];
    for (const part of PARTS) said.push(await page.locator(`section[aria-label="${part}"]`).ariaSnapshot());
    golden(`${name}.yml`, said.join("\n"));
    const small = await page.locator("shard-grid").evaluateAll((grids) =>
      grids.filter((g) => {
        const box = g.shadowRoot.querySelector("svg, canvas").getBoundingClientRect();
        return box.width < 60 || box.height < 12;
      }).length);
    assert.equal(small, 0, `${name}: a picture is too small`);
  }
});

inBrowser("the accessibility tree of the forms is as in its snapshot", async (page) => {
  await open(page, examples()[1].text);
  golden("form.yml", await page.locator(".inputs").ariaSnapshot());
});
