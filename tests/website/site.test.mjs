// The built site in a browser without a network: accessibility, phones, dark pictures, search.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { inBrowser } from "../../wasm/page/tests/browser.mjs";

const site = new URL("../../site/", import.meta.url);
const tools = createRequire(new URL("../../wasm/page/package.json", import.meta.url));
const axe = readFileSync(tools.resolve("axe-core/axe.min.js"), "utf8");

const pages = [
  "index.html",
  "choose.html",
  "guides/quick_reference.html",
  "guides/layouts.html",
  "guides/strategy.html",
  "benchmarks.html",
  "reference/python.html",
  "reference/python/loading.html",
  "reference/c/meshfeed.html",
  "reference/go/core-loader.html",
  "reference/documents.html",
];

// The theme's search button shows "Search Ctrl + K", and screen readers read "Search".
const rules = { "label-content-name-mismatch": { enabled: false } };

// A scheme changes colors only, so the second one is checked by the rules that read them.
const ofColors = ["color-contrast", "link-in-text-block"];

// The theme writes what it does to the console. From a folder, the search cannot fetch the pages that it quotes.
const expected = /\[PST\]|CORS policy|ERR_FAILED|Failed to fetch/;

/** onSite runs a test with a page of the site. */
const onSite = (name, options, run) => inBrowser(name, { expected, ...options }, run);

for (const colorScheme of ["light", "dark"]) {
  onSite(`axe finds nothing, ${colorScheme}`, { colorScheme }, async (page) => {
    const runOnly = colorScheme === "dark" ? ofColors : undefined;
    const options = { rules, runOnly, preload: false, resultTypes: ["violations"] };
    for (const name of pages) {
      await page.goto(new URL(name, site).href);
      await page.evaluate(axe);
      const { violations } = await page.evaluate((options) => globalThis.axe.run(document, options), options);
      const found = violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" ")}`);
      assert.deepEqual(found, [], name);
    }
  });
}

for (const width of [390, 768]) {
  onSite(`no page is wider than a screen of ${width} pixels`, { viewport: { width, height: 844 } }, async (page) => {
    for (const name of pages) {
      await page.goto(new URL(name, site).href);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.equal(wide, width, name);
    }
  });
}

onSite("a picture keeps its size on a phone", { viewport: { width: 390, height: 844 } }, async (page) => {
  for (const [name, picture] of [["guides/layouts.html", ".cell_output svg"], ["architecture.html", ".picture img"]]) {
    await page.goto(new URL(name, site).href);
    const [shown, drawn] = await page
      .locator(picture)
      .first()
      .evaluate((element) => [element.getBoundingClientRect().width, element.naturalWidth ?? element.viewBox.baseVal.width]);
    assert.equal(Math.round(shown), drawn, name);
  }
});

onSite("a picture follows the reader's choice of a scheme", { colorScheme: "light" }, async (page) => {
  await page.goto(new URL("guides/layouts.html", site).href);
  const background = () => page.evaluate(() => getComputedStyle(document.querySelector("svg .mf-bg")).fill);
  const light = await background();
  await page.evaluate(() => (document.documentElement.dataset.theme = "dark"));
  assert.notEqual(await background(), light);
});

onSite("the search finds a word and a name", {}, async (page) => {
  for (const [word, place] of [["preemption", "guides/distributed.html"], ["verify_replicas", "reference/python/loading.html"]]) {
    await page.goto(new URL(`search.html?q=${word}`, site).href);
    await page.locator(`#search-results a[href*="${place}"]`).first().waitFor();
  }
});

onSite("the search shows what explains before what records", {}, async (page) => {
  for (const [words, place] of [
    ["bottleneck", "guides/tuning.html"],
    ["multiple gpus", "index.html"],
    ["pytorch", "guides/coming_from.html"],
    ["c library", "reference/c-library.html"],
    ["gomlx", "guides/gomlx.html"],
    ["resume", "guide.html"],
  ]) {
    await page.goto(new URL(`search.html?q=${encodeURIComponent(words)}`, site).href);
    await page.locator("#search-results .search-summary").filter({ hasText: "found" }).waitFor();
    const found = await page.locator("#search-results li > a").evaluateAll((links) => links.slice(0, 5).map((a) => a.getAttribute("href")));
    assert.ok(found.some((link) => link.startsWith(place)), `${words}: ${found}`);
  }
});

onSite("a page that does not exist leads to the start page", {}, async (page) => {
  await page.goto(new URL("404.html", site).href);
  const roots = await page.evaluate(() => ["/a.html", "/x/a.html", "/x/guides/a.html", "/x/reference/c/a", "/x/"].map(root));
  assert.deepEqual(roots, ["/", "/x/", "/x/", "/x/", "/x/"]);
  await page.getByText("start page").click();
  assert.match(page.url(), /\/site\/index\.html$/);
});

onSite("a link in a guide opens the layout page with its layout", {}, async (page) => {
  await page.goto(new URL("guides/layouts.html", site).href);
  await page.locator('a[href*="layout.html#v1="]').nth(1).click();
  await page.locator("layout-app").waitFor();
  assert.match(page.url(), /\/site\/layout\.html#v1=/);
});
