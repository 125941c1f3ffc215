// Tests of the tab "Strategy": tabs, forms, sliders, the table of candidates, links, files and the way to the layout.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { example, focused, inBrowser, loadStrategy as load, open, openStrategy, serve, settled, single, patchWorkers, strategies, type } from "./browser.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const document_ = (model, training, cluster, more = {}) => JSON.stringify({ meshfeed: 1, model, training, cluster, ...more });
const LLAMA = document_({ preset: "llama3-8b" }, { batch: 64 }, { device: "h100-80", devices: 8 });
const GPT3 = document_({ preset: "gpt3-175b" }, { batch: 1536, schedule: "1f1b" }, { device: "a100-80", devices: 1024 }, { search: { axes: { tensor: 8, pipe: 16, fsdp: 1 } }, input: { rows_per_second: 40 } });
const LARGE = document_({ preset: "llama3-70b" }, { batch: 64 }, { device: "h100-80", devices: 8 });
const OWN = document_({ transformer: { layers: 4, hidden: 512, heads: 8, ffn: 2048, vocab: 1000, sequence: 256, experts: { count: 4, active: 2 } } }, { tokens: 65536, precision: { master: null } }, { devices: 4, memory_bytes: 16000000000 });
const RESNET = document_({ parameters: 25557032, inputs: { image: { shape: ["B", 224, 224, 3], dtype: "uint8" } } }, { batch: 256 }, { device: "v100-32", devices: 8 });
const CASES = { LLAMA, GPT3, LARGE, OWN, RESNET };

/** shown returns the document in the form and what the planner says about it. */
const shown = (page) => page.evaluate(() => {
  const { text, reply } = document.querySelector("strategy-app").model;
  return { text, reply };
});

/** documentOf returns the document in the form. */
const documentOf = async (page) => JSON.parse((await shown(page)).text);

const title = (page) => page.locator("answer-view h2").innerText();

/** violations lists what axe finds on the page. */
const violations = (page) =>
  page.evaluate(async () => {
    const found = await axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] });
    return found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => `${n.target.join(" ")} ${n.any[0]?.message ?? ""}`).slice(0, 3).join(" | ")}`);
  });

inBrowser("the planner starts when its tab is opened, and keys move between the tabs", async (page) => {
  await open(page, example("02"));
  assert.equal(await page.locator("strategy-app").count(), 0);
  await page.getByRole("tab", { name: "Layout" }).press("ArrowRight");
  await page.locator("strategy-app").waitFor();
  const strategy = page.getByRole("tab", { name: "Strategy" });
  assert.equal(await strategy.getAttribute("aria-selected"), "true");
  assert.equal(await (await focused(page)).innerText(), "Strategy");
  assert.ok(page.url().endsWith("#strategy"));
  await page.getByRole("tabpanel", { name: "Strategy" }).waitFor();
  assert.equal(await page.getByRole("tabpanel", { name: "Layout" }).count(), 0, "the other panel is hidden");
  await strategy.press("End");
  await strategy.press("ArrowRight");
  assert.equal(await page.locator("layout-app").isVisible(), true);
  assert.ok(!page.url().includes("#"));
  assert.match(await page.locator("layout-app .sum").innerText(), /^data 4 × model 2 /, "the layout is as before");
});

inBrowser("every tab has its own undo", async (page) => {
  await open(page, example("02"));
  await type(page.getByLabel("global batch"), "512");
  await page.getByRole("tab", { name: "Strategy" }).click();
  await page.locator("strategy-app").waitFor();
  await type(page.getByLabel("devices", { exact: true }), "16");
  await page.getByRole("tab", { name: "Strategy" }).focus();
  await page.keyboard.press("Control+z");
  await settled(page);
  assert.equal((await documentOf(page)).cluster.devices, 8);
  await page.getByRole("tab", { name: "Layout" }).click();
  assert.equal(await page.getByLabel("global batch").inputValue(), "512");
});

inBrowser("the page shows the planner's report", { shared: true }, async (page) => {
  await openStrategy(page, LLAMA);
  const { report, text } = (await shown(page)).reply;
  const best = report.candidates[report.best];
  const mesh = best.mesh.map(([name, size]) => `${name} ${size}`).join(" × ");
  assert.equal(await title(page), mesh);
  assert.equal(await page.locator("candidate-table .best .mesh").innerText(), mesh);
  assert.equal(await page.locator("candidate-table .best .why").innerText(), best.reasons.join("; "));
  assert.equal(await page.locator("strategy-panel pre").innerText().then((s) => s.trimEnd()), text.trimEnd());
  assert.match(await page.locator("cost-view .say").first().innerText(), new RegExp(`${(best.memory.total / 1e9).toFixed(1)} GB\\s+of 84\\.9 GB`));
  const needs = await page.locator("needs-view dd").allInnerTexts();
  assert.equal(needs[1], "64", "rows per step");
  await page.locator("notes-view summary").filter({ hasText: "Assumptions" }).click();
  assert.equal(await page.locator("notes-view details").nth(1).locator("li").count(), report.assumptions.length);
  assert.equal(await page.locator("notes-view details").last().locator("li").count(), report.pruned.length);
});

// The planner needs less than 100 ms for 65,536 devices. The bound is 20 times that.
inBrowser("a slider changes the report at once, and its drag is one edit", { shared: true }, async (page) => {
  await openStrategy(page, document_({ preset: "llama3-70b" }, { batch: 2048 }, { device: "h100-80", devices: 64 }));
  const slider = page.getByRole("slider", { name: "devices slider" });
  await slider.focus();
  for (const key of ["PageUp", "ArrowRight", "End"]) await page.keyboard.press(key);
  await settled(page);
  assert.equal((await documentOf(page)).cluster.devices, 65536);
  assert.equal(await slider.getAttribute("aria-valuetext"), "65,536");
  assert.equal((await shown(page)).reply.report.devices, 65536);
  const ms = await page.evaluate(async () => {
    const { model } = document.querySelector("strategy-app");
    const times = [];
    for (const devices of [32768, 65536]) {
      const start = performance.now();
      await model.edit((d) => d.get("cluster").set("devices", devices));
      times.push(performance.now() - start);
    }
    return times;
  });
  assert.ok(ms.every((t) => t < 2000), `${ms} ms`);
  // A drag sends many values; the last one is shown, and one undo reverts all of them.
  await page.evaluate(async () => {
    const { model } = document.querySelector("strategy-app");
    const slider = document.querySelector("strategy-app").shadowRoot.querySelector("training-fields").shadowRoot.querySelector("input[type=range]");
    for (let i = 1; i <= 14; i++) {
      slider.value = i;
      slider.dispatchEvent(new Event("input"));
    }
    slider.dispatchEvent(new Event("change"));
    await model.settled();
  });
  assert.equal((await documentOf(page)).training.batch, 16384);
  await page.getByRole("button", { name: "Undo" }).click();
  assert.equal((await documentOf(page)).training.batch, 2048);
});

inBrowser("the sliders of batch and sequence change the document", { shared: true }, async (page) => {
  await openStrategy(page, LLAMA);
  await page.getByRole("slider", { name: "batch slider" }).press("ArrowRight");
  await page.getByRole("slider", { name: "sequence slider" }).press("ArrowLeft");
  await settled(page);
  assert.deepEqual(await documentOf(page), { meshfeed: 1, model: { preset: "llama3-8b", transformer: { sequence: 4096 } }, training: { batch: 128 }, cluster: { device: "h100-80", devices: 8 } });
  assert.equal((await shown(page)).reply.report.input.rows_per_step, 128);
  await type(page.getByLabel("sequence", { exact: true }), "");
  assert.deepEqual((await documentOf(page)).model, { preset: "llama3-8b" }, "the preset's sequence counts again");
});

inBrowser("another transformer begins with the sizes of the known one", { shared: true }, async (page) => {
  await openStrategy(page, LLAMA);
  const parameters = async () => (await shown(page)).reply.report.model.parameters;
  for (const name of ["llama3-8b", "gpt2-xl", "mixtral-8x7b"]) {
    const model = page.getByRole("combobox", { name: "model" });
    await model.selectOption(`preset ${name}`);
    const want = await parameters();
    await model.selectOption("transformer");
    assert.equal(await parameters(), want, name);
  }
  await type(page.getByLabel("layers", { exact: true }), "2");
  assert.equal((await documentOf(page)).model.transformer.layers, 2);
  await page.getByRole("combobox", { name: "model" }).selectOption("parameters");
  await type(page.getByLabel("parameters", { exact: true }), "25,557,032");
  assert.deepEqual((await documentOf(page)).model, { parameters: 25557032 });
});

inBrowser("every input changes its value in the document", { shared: true }, async (page) => {
  await openStrategy(page, OWN);
  await page.evaluate(() => {
    for (const form of document.querySelector("strategy-app").shadowRoot.querySelectorAll("model-fields, training-fields, cluster-fields")) for (const d of form.shadowRoot.querySelectorAll("details")) d.open = true;
  });
  await page.getByLabel("precision").selectOption("gradients");
  await page.getByLabel("optimizer").selectOption("lion");
  await page.getByLabel("recomputation").selectOption("full");
  await page.getByLabel("schedule").selectOption("interleaved");
  await type(page.getByLabel("chunks per stage"), "4");
  await type(page.getByLabel("efficiency"), "0.3, 0.5");
  await type(page.getByLabel("share of link bandwidth"), "0.5, 1");
  await page.getByLabel("tied embeddings").click();
  await type(page.getByLabel("capacity"), "1.25");
  await type(page.getByLabel("memory", { exact: true }), "80 GB");
  await type(page.getByLabel("network, one way"), "12.5G");
  await type(page.getByLabel("sizes of tensor"), "1, 2");
  await type(page.getByLabel("free memory"), "0.2");
  await type(page.getByLabel("rows per second"), "1000");
  await page.getByLabel("batch counts").selectOption("examples");
  const { reply } = await shown(page);
  assert.equal(reply.error, null);
  assert.deepEqual(await documentOf(page), {
    meshfeed: 1,
    model: { transformer: { layers: 4, hidden: 512, heads: 8, ffn: 2048, vocab: 1000, sequence: 256, experts: { count: 4, active: 2, capacity: 1.25 }, tied: true } },
    training: { precision: { gradients: "float32" }, optimizer: "lion", recomputation: "full", schedule: "interleaved", chunks: 4, efficiency: [0.3, 0.5], link_efficiency: [0.5, 1], batch: 256 },
    cluster: { devices: 4, memory_bytes: 80000000000, network_bytes_per_second: 12500000000 },
    search: { axes: { tensor: [1, 2] }, margin: 0.2 },
    input: { rows_per_second: 1000 },
  });
  for (const [label, back] of [["sizes of tensor", ""], ["free memory", ""], ["rows per second", ""]]) await type(page.getByLabel(label), back);
  const { search, input } = await documentOf(page);
  assert.deepEqual([search, input], [undefined, undefined], "sections that became empty are left out");
});

inBrowser("candidates are sorted and chosen, and the costs of the chosen one are shown", { shared: true }, async (page) => {
  await openStrategy(page, LLAMA);
  const { candidates } = (await shown(page)).reply.report;
  const meshes = () => page.locator("candidate-table .mesh").allInnerTexts();
  const text = (c) => c.mesh.map(([n, s]) => `${n} ${s}`).join(" × ");
  assert.equal((await meshes()).length, 8);
  await page.getByRole("button", { name: `Show all ${candidates.length}` }).click();
  assert.deepEqual(await meshes(), candidates.map(text));
  await page.getByRole("button", { name: "Memory", exact: true }).click();
  const sorted = candidates.toSorted((a, b) => a.memory.total - b.memory.total);
  assert.deepEqual(await meshes(), sorted.map(text));
  assert.equal(await page.getByRole("columnheader", { name: "Memory" }).getAttribute("aria-sort"), "ascending");
  await page.getByRole("button", { name: "Memory", exact: true }).click();
  assert.deepEqual((await meshes())[0], text(candidates.toSorted((a, b) => b.memory.total - a.memory.total)[0]));
  const last = page.locator("candidate-table .mesh").last();
  await last.click();
  assert.equal(await last.getAttribute("aria-pressed"), "true");
  assert.match(await page.locator("cost-view h2").innerText(), new RegExp(`of the chosen candidate: ${await last.innerText()}$`));
  assert.match(await title(page), new RegExp(`^${text(candidates[0])}$`), "the answer is still the best one");
});

/** picture returns the label of the picture that is shown, with all its texts and the ends of what is drawn. */
const picture = (page) => page.evaluate(() => {
  const svg = document.querySelector("strategy-app").shadowRoot.querySelector("picture-view").shadowRoot.querySelector("svg");
  return { name: svg.ariaLabel, role: svg.getAttribute("role"), about: svg.querySelector("desc").textContent, texts: [...svg.querySelectorAll("text")].map((t) => t.textContent) };
});

/** draws waits for a picture with a label that begins with a text. */
const draws = (page, name) => page.waitForFunction((name) => document.querySelector("strategy-app").shadowRoot.querySelector("picture-view")?.shadowRoot.querySelector("svg")?.ariaLabel.startsWith(name), name);

inBrowser("the pictures show the best candidate, and then the chosen one", { shared: true }, async (page) => {
  await openStrategy(page, document_({ preset: "llama3-8b" }, { batch: 64 }, { device: "h100-80", devices: 8 }, { search: { axes: { pipe: [1, 2] } } }));
  const { candidates } = (await shown(page)).reply.report;
  await draws(page, "Memory of the fullest device");
  const tabs = page.locator("picture-view").getByRole("tab");
  assert.deepEqual(await tabs.allInnerTexts(), ["Memory", "Collectives", "Matmul"], "there is no pipeline");
  const bars = (await picture(page)).texts.filter((t) => /^(▸ )?\d+\. /.test(t));
  assert.equal(bars[0], "▸ 1. data 8");
  assert.equal(bars.length, 12);

  await tabs.filter({ hasText: "Memory" }).press("ArrowRight");
  await draws(page, "reduce-scatter of 4 devices (ring)");
  const { role, about, texts } = await picture(page);
  assert.equal(role, "img");
  assert.match(about, /Every device has an array before, and its part of the sum of all arrays after\./);
  assert.ok(texts.includes("step 3"));
  await page.getByLabel("operation").selectOption("all-gather over data 8");
  await draws(page, "all-gather of 4 devices");

  await tabs.filter({ hasText: "Matmul" }).click();
  await draws(page, "(65536, 4096) × (4096, 14336) on Mesh('data': 8)");

  const chosen = candidates.findIndex((c) => c.mesh.some(([name]) => name === "pipe"));
  await page.getByRole("button", { name: `Show all ${candidates.length}` }).click();
  await page.locator("candidate-table .mesh").nth(chosen).click();
  await tabs.filter({ hasText: "Schedule" }).click();
  await draws(page, `Pipeline 1f1b: 2 stages, ${candidates[chosen].micro_batches} micro-batches`);
  assert.equal(await page.locator("cost-view .stages .stackbar").count(), 2, "the chosen candidate has these stages");
  assert.match(await page.locator("notes-view summary").first().innerText(), /^Communication of the chosen candidate/);
  assert.ok((await page.locator("notes-view tbody td:nth-child(2)").allInnerTexts()).includes("pipe"));
});

inBrowser("a candidate that does not fit has its communication and its limits", { shared: true }, async (page) => {
  await openStrategy(page, LARGE);
  const tabs = page.locator("picture-view").getByRole("tab");
  await tabs.filter({ hasText: "Collectives" }).click();
  const op = await page.evaluate(() => document.querySelector("strategy-app").model.detail.collectives[0].op);
  await draws(page, `${op} of `);
  const { candidates } = (await shown(page)).reply.report;
  const chosen = candidates.findIndex((c) => c.mesh.some(([name]) => name === "pipe"));
  await page.getByRole("button", { name: /^Show all/ }).click();
  await page.locator("candidate-table .mesh").nth(chosen).click();
  const { detail, c } = await page.evaluate(() => {
    const { detail, report, chosen } = document.querySelector("strategy-app").model;
    return { detail, c: report.candidates[chosen] };
  });
  assert.equal(Math.max(...detail.stages.map((s) => s.memory.total)), c.memory.total);
  for (const { memory } of detail.stages) assert.equal(memory.total + memory.free, c.memory.total + c.memory.free, "what a candidate may take");
});

inBrowser("the pictures of 65,536 devices are drawn at once, and have the colors of the theme", async (page) => {
  await openStrategy(page, document_({ preset: "gpt3-175b" }, { batch: 524288 }, { device: "h100-80", devices: 65536 }, { search: { axes: { pipe: 16, tensor: 8, fsdp: 1 } } }));
  await draws(page, "Pipeline interleaved: 16 stages");
  assert.equal(await page.locator("cost-view .stages > span").first().innerText(), "stage 0, embedding 6 layers", "they are not adjacent");
  assert.match(await page.locator("candidate-table .best .span").innerText(), /^\d\d\.\d s – \d\d\.\d s$/, "one unit in a range");
  const color = () => page.evaluate(() => getComputedStyle(document.querySelector("strategy-app").shadowRoot.querySelector("picture-view").shadowRoot.querySelector("text")).fill);
  const light = await color();
  await page.getByLabel("colors", { exact: true }).selectOption("dark");
  assert.notEqual(await color(), light);
  const ms = await page.evaluate(async () => {
    const { model } = document.querySelector("strategy-app");
    const start = performance.now();
    await model.draw({ pipeline: { schedule: "1f1b", stages: 16, micro_batches: 256 } }, 700, new AbortController().signal);
    return performance.now() - start;
  });
  assert.ok(ms < 2000, `${ms} ms`);
  const size = await page.evaluate(() => document.querySelector("strategy-app").shadowRoot.querySelector("picture-view").shadowRoot.querySelectorAll("svg *").length);
  assert.ok(size < 2000, `${size} elements`);
});

inBrowser("the schedule has the durations of the planner, and leaves out what is too narrow", { shared: true }, async (page) => {
  await openStrategy(page, GPT3);
  await draws(page, "Pipeline 1f1b: 16 stages, 192 micro-batches");
  const { texts } = await picture(page);
  const { forward } = (await shown(page)).reply.report.pipeline;
  assert.ok(forward.at(-1) > forward[0], "the last stage has the head");
  assert.match(texts.join(" "), /The stages are idle for 11\.\d % of the time: .* ticks\. Stage 15, the slowest, is idle for 6\.9 %\./, "equal stages would all be idle for 7.2 %");
  assert.match(texts.join(" "), /⋯ The middle, \d+ % of the time, is left out\./);
  assert.match(await page.locator("picture-view .note").innerText(), /without communication\. In a step of [\d.]+ s, the slowest stage is idle for \d+ %\.$/);
});

inBrowser("a pipeline has a bar for every stage, and a slow input is reported", { shared: true }, async (page) => {
  await openStrategy(page, GPT3);
  assert.equal(await page.locator("cost-view .stages .stackbar").count(), 16);
  assert.match(await page.locator("needs-view .verdict.no").innerText(), /The input is too slow\. 40 rows per second are 0\.\d\d times what is needed\./);
  await page.getByRole("button", { name: /^input-slow at/ }).click();
  assert.equal(await (await focused(page)).getAttribute("data-path"), "/input/rows_per_second");
});

inBrowser("if nothing fits, the page says what is missing", { shared: true }, async (page) => {
  await openStrategy(page, LARGE);
  assert.equal(await title(page), "No candidate fits");
  assert.match(await page.locator("answer-view .set").innerText(), /needs \d+ GB, but a device has 84\.9 GB/);
  assert.match(await page.locator("strategy-app .sum").innerText(), /nothing fits$/);
  assert.ok((await page.locator("candidate-table .tag").allInnerTexts()).every((t) => t === "does not fit"));
});

inBrowser("a model without arrays of a batch has a best candidate, but no layout", { shared: true }, async (page) => {
  await openStrategy(page, document_({ tree: { w: { shape: [4096, 4096], dtype: "bfloat16" } } }, { batch: 64 }, { device: "h100-80", devices: 8 }));
  assert.equal(await page.locator("needs-view p").innerText(), "The arrays of a batch are not known.");
  assert.equal(await page.getByRole("button", { name: "Open this layout" }).isDisabled(), true);
  await load(page, LARGE);
  assert.equal(await page.locator("needs-view p").innerText(), "There is no best candidate.");
});

inBrowser("an error names its input, which the link focuses", { shared: true }, async (page) => {
  await openStrategy(page, document_({ transformer: { layers: 4, hidden: 512, heads: 8, kv_heads: 3, ffn: 2048, vocab: 1000, sequence: 256 } }, { batch: 8 }, { device: "h100-80", devices: 8 }));
  assert.equal(await title(page), "The question has an error");
  await page.getByRole("button", { name: "InvalidArgument at /model/transformer/kv_heads" }).click();
  const input = await focused(page);
  const found = await input.evaluate((e) => ({ path: e.dataset.path, invalid: e.ariaInvalid, why: e.getRootNode().getElementById(e.getAttribute("aria-describedby")).textContent }));
  assert.equal(found.path, "/model/transformer/kv_heads");
  assert.equal(found.invalid, "true");
  assert.match(found.why, /3/);
  await type(page.getByLabel("kv heads"), "4");
  assert.equal((await shown(page)).reply.error, null);
  await type(page.getByLabel("devices", { exact: true }), "many");
  assert.equal(await page.locator("cluster-fields .why").innerText(), "expected a whole number from 1, such as 64 or 10k");
  await page.getByRole("slider", { name: "devices slider" }).press("Home");
  assert.equal(await page.locator("cluster-fields .why").count(), 0);
  assert.equal(await page.getByLabel("devices", { exact: true }).inputValue(), "1");
});

inBrowser("the best layout opens in the other tab, where it loads", async (page) => {
  for (const [name, text] of Object.entries({ LLAMA, GPT3, RESNET })) {
    await openStrategy(page, text);
    const { layout } = (await shown(page)).reply;
    await page.getByRole("button", { name: "Open this layout" }).click();
    await page.locator("layout-app .notice").waitFor();
    assert.equal(await page.evaluate(() => document.querySelector("layout-app").model.reply.document), layout, name);
    assert.match(await page.locator("layout-app .sum").innerText(), /loads$/, name);
    assert.equal(await page.getByRole("tab", { name: "Layout" }).getAttribute("aria-selected"), "true");
  }
});

inBrowser("a link contains the strategy, and a damaged link is reported", { online: true, permissions: ["clipboard-read", "clipboard-write"] }, async (page, t) => {
  const address = await serve(t);
  const asked = [];
  page.on("request", (r) => asked.push(new URL(r.url()).pathname));
  await open(page, null, address);
  assert.ok(!asked.includes("/strategy.wasm"), "the planner is not fetched for the other tab");
  await page.getByRole("tab", { name: "Strategy" }).click();
  await page.locator("strategy-app").waitFor();
  assert.ok(asked.includes("/strategy.wasm"));
  await load(page, GPT3);
  await page.getByRole("button", { name: "Share link" }).click();
  await page.locator("strategy-app .notice").waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(link, /#strategy\.v1=[\w-]+$/);
  await page.goto("about:blank");
  await page.goto(link);
  await page.locator("strategy-app").waitFor();
  assert.equal((await shown(page)).text, GPT3);
  await page.goto("about:blank");
  await page.goto(link.slice(0, -9));
  assert.equal(await page.locator("strategy-app .notice span").innerText(), "the link is damaged: its strategy cannot be decoded");
  // In an open page, a link of either tab opens its tab.
  await page.evaluate((link) => (location.href = link), link);
  await page.waitForFunction((text) => document.querySelector("strategy-app").model.text === text, GPT3);
  await page.evaluate(() => (location.hash = "#"));
  await page.locator("layout-app .sum").waitFor();
});

inBrowser("the saved page opens with the strategy", async (page) => {
  await openStrategy(page, OWN.replace('"tokens"', '"batch"').replace("65536", "256"));
  const want = (await shown(page)).text;
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save page" }).click()]);
  assert.equal(download.suggestedFilename(), "strategy.html");
  const saved = join(tmpdir(), `meshfeed-strategy-${process.pid}.html`);
  await download.saveAs(saved);
  await page.goto(`file://${saved}`);
  await page.locator("strategy-app").waitFor();
  assert.equal((await shown(page)).text, want);
  assert.equal(await page.locator("strategy-app").isVisible(), true);
});

inBrowser("a file opens in the tab that it belongs to", async (page) => {
  await open(page);
  const file = (name, text) => ({ name, mimeType: "application/json", buffer: Buffer.from(text) });
  await page.locator('layout-app input[type="file"]').setInputFiles(file("gpt3.json", GPT3));
  await page.locator("strategy-app .notice").waitFor();
  assert.equal(await page.locator("strategy-app .notice span").innerText(), "gpt3.json is open.");
  assert.equal((await shown(page)).text, GPT3);
  await page.locator('strategy-app input[type="file"]').setInputFiles(file("layout.json", example("03")));
  await page.locator("layout-app .notice").waitFor();
  assert.match(await page.locator("layout-app .sum").innerText(), /^data 2 × model 8/);
});

inBrowser("if the planner fails, the page reports an error and answers the next edit", { immediate: true }, async (page) => {
  await patchWorkers(page, `const replacements = ({ mf_advise }, asked) => ({ mf_advise(n) {
    if (asked(n).includes('"lion"')) throw new WebAssembly.RuntimeError("unreachable");
    return mf_advise(n);
  } })`);
  await openStrategy(page, LLAMA);
  await page.getByLabel("optimizer").selectOption("lion");
  await page.locator("strategy-app problem-list").getByText("unreachable").waitFor();
  await page.locator("strategy-app problem-list").getByText("this is a bug in meshfeed; please report it with the document").waitFor();
  await page.getByLabel("optimizer").selectOption("adamw");
  await page.locator("candidate-table").waitFor();
});

for (const [width, colorScheme] of [[1280, "light"], [390, "dark"]]) {
  inBrowser(`axe finds no violations, and the tab fits into ${width} pixels, ${colorScheme}`, { colorScheme, bypassCSP: true, viewport: { width, height: 900 } }, async (page) => {
    await openStrategy(page);
    await page.addScriptTag({ content: axe });
    for (const [name, text] of Object.entries({ ...CASES, ...Object.fromEntries(strategies().map((s) => [s.name, s.text])) })) {
      await load(page, text);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width, name);
      if (CASES[name]) assert.deepEqual(await violations(page), [], name);
    }
  });
}

/** tools adds functions to the open page that search through shadow roots. */
const tools = (page) =>
  page.evaluate(() => {
    window.all = (root = document) => [...root.querySelectorAll("*")].flatMap((e) => [e, ...(e.shadowRoot ? window.all(e.shadowRoot) : [])]);
    window.shown = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && e.getClientRects().length > 0;
    window.called = (e) => `${e.localName} ${e.getAttribute("aria-label") || e.labels?.[0]?.textContent.trim() || e.textContent.trim().slice(0, 40)}`;
  });

inBrowser("at 200 % no control is clipped or outside its panel", { viewport: { width: 640, height: 450 }, deviceScaleFactor: 2 }, async (page) => {
  await openStrategy(page);
  await tools(page);
  for (const [name, text] of Object.entries(CASES)) {
    await load(page, text);
    const wrong = await page.evaluate(() => {
      for (const d of window.all().filter((e) => e.matches("details"))) d.open = true;
      const scrolls = (e) => e && (e.matches(".scroll, pre, .visually-hidden") || scrolls(e.parentElement ?? e.getRootNode().host));
      const edge = (e) => (!e ? innerWidth : e.matches(".panel") ? e.getBoundingClientRect().right : edge(e.parentElement ?? e.getRootNode().host));
      return window.all().filter((e) => e.matches("button, input, select, summary, p, h1, h2, h3, label, td, th") && window.shown(e) && !scrolls(e)).filter((e) => {
        const { left, right } = e.getBoundingClientRect();
        return left < -0.5 || right > edge(e) + 0.5 || (e.matches("button, p, h1, h2, label") && e.scrollWidth > e.clientWidth + 1);
      }).map(window.called);
    });
    assert.deepEqual(wrong, [], name);
  }
});

inBrowser("the Tab key visits every control once and shows the focus", async (page) => {
  await openStrategy(page, GPT3);
  await tools(page);
  const stops = await page.evaluate(() => {
    window.stops = window.all().filter((e) => e.tabIndex >= 0 && !e.disabled && window.shown(e) && e.matches("button, input, select, summary, [tabindex]"));
    window.visited = [];
    return window.stops.length;
  });
  const silent = [];
  for (let i = 0; i < stops + 10; i++) {
    await page.keyboard.press("Tab");
    const stop = await page.evaluate(() => {
      let e = document.activeElement;
      while (e?.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
      if (!e || e === document.body) return null;
      window.visited.push(e);
      const style = getComputedStyle(e);
      const { top, bottom } = e.getBoundingClientRect();
      return { name: window.called(e), seen: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 && bottom > 0 && top < innerHeight };
    });
    if (!stop) break;
    if (!stop.seen) silent.push(stop.name);
  }
  assert.deepEqual(silent, []);
  assert.deepEqual(await page.evaluate(() => ({
    missed: window.stops.filter((e) => !window.visited.includes(e)).map(window.called),
    twice: window.visited.filter((e, i) => window.visited.indexOf(e) !== i).map(window.called),
  })), { missed: [], twice: [] });
});

inBrowser("with forced colors the parts of bars differ, and a print has no inputs", { forcedColors: "active", viewport: { width: 718, height: 1000 } }, async (page) => {
  await openStrategy(page, GPT3);
  await tools(page);
  const colors = await page.evaluate(() => window.all().filter((e) => e.matches(".stackbar.tall i:not(.idle)")).map((e) => getComputedStyle(e).backgroundColor));
  assert.ok(colors.length > 6 && new Set(colors).size > 4, colors.join());
  await page.emulateMedia({ media: "print", forcedColors: "none" });
  const paper = await page.evaluate(() => ({
    inputs: window.all().filter((e) => e.matches("input, select, .tools button") && window.shown(e)).map(window.called),
    outside: window.all().filter((e) => window.shown(e) && e.getBoundingClientRect().right > innerWidth + 1 && !e.closest("pre")).map(window.called).slice(0, 4),
    parts: ["answer", "costs", "candidates", "input", "notes"].filter((p) => !window.shown(document.querySelector("strategy-app").shadowRoot.querySelector(`section[aria-label="${p}"]`))),
  }));
  assert.deepEqual(paper, { inputs: [], outside: [], parts: [] });
});

// SHOTS=FOLDER writes screenshots of the tab, to be looked at.
if (process.env.SHOTS) {
  inBrowser("screenshots of the strategy", async (page) => {
    for (const [width, colorScheme] of [[1440, "light"], [1440, "dark"], [768, "light"], [390, "dark"]]) {
      await page.setViewportSize({ width, height: 1000 });
      await page.emulateMedia({ colorScheme });
      await openStrategy(page, GPT3);
      writeFileSync(join(process.env.SHOTS, `strategy-${width}-${colorScheme}.png`), await page.screenshot({ fullPage: true }));
    }
  });
}
