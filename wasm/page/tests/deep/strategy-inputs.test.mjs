// What comes into the tab "Strategy" from outside: links of the guide, dropped files, typed texts, and edits while the
// planner computes; and how assistive technology sees its controls.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { deflateRawSync } from "node:zlib";
import { example, here, inBrowser, openStrategy, settled, patchWorkers, strategies, type } from "../browser.mjs";

const LLAMA = '{"meshfeed":1,"model":{"preset":"llama3-8b"},"training":{"batch":64},"cluster":{"device":"h100-80","devices":8}}';

/** model returns some members of the tab's model. */
const model = (page) => page.evaluate(() => {
  const { text, reply, report } = document.querySelector("strategy-app").model;
  return { text, reply, report };
});

const notice = (page) => page.locator("strategy-app .notice span").innerText();

inBrowser("the links of all example strategies open the golden reports", async (page) => {
  await openStrategy(page);
  for (const { name, text } of strategies()) {
    const link = `#strategy.v1=${deflateRawSync(text).toString("base64url")}`;
    await page.evaluate((link) => (location.hash = link), link);
    await page.waitForFunction((text) => {
      const { model } = document.querySelector("strategy-app");
      return model.since === null && model.text === JSON.stringify(JSON.parse(text));
    }, text);
    await settled(page);
    const golden = (kind) => readFileSync(join(here, "../../../tests/strategies/testdata", `${name}.${kind}`), "utf8");
    const want = JSON.parse(golden("report.json"));
    const { reply } = await model(page);
    assert.deepEqual(reply.report, want, name);
    assert.equal(reply.text, golden("txt"), name);
    const best = want.best === null ? "No candidate fits" : want.candidates[want.best].mesh.map(([axis, size]) => `${axis} ${size.toLocaleString("en-US")}`).join(" × ") || "one device";
    assert.equal(await page.locator("answer-view h2").innerText(), best, name);
  }
});

/** drop drops a file on the page. */
const drop = async (page, name, content) => {
  await page.evaluate(([name, content]) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([typeof content === "string" ? content : new Uint8Array(content)], name));
    document.querySelector("page-tabs").dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, composed: true, cancelable: true }));
  }, [name, content]);
};

inBrowser("a dropped file opens in its tab, and a useless one leaves the strategy as it is", async (page) => {
  await openStrategy(page);
  const before = (await model(page)).text;
  const says = async (text) => {
    await page.locator("strategy-app .notice").filter({ hasText: text }).waitFor();
    assert.equal(await page.locator("strategy-app").isVisible(), true);
  };
  for (const [name, content, text] of [
    ["broken.json", '{"meshfeed":1,', "broken.json: "],
    ["list.json", "[1,2]", "list.json: a strategy document is a JSON object"],
    ["other.json", '{"a":1}', "other.json: this is not a strategy document: it has no model, training or cluster"],
    ["large.json", `{"model":"${"x".repeat(10 << 20)}"}`, "large.json is larger than 8 MiB, the limit for a strategy."],
  ]) {
    await drop(page, name, content);
    await says(text);
    assert.equal((await model(page)).text, before, name);
  }
  await drop(page, "llama.json", LLAMA.replace("64", "128"));
  await says("llama.json is open.");
  assert.equal(JSON.parse((await model(page)).text).training.batch, 128);

  await drop(page, "wrong.json", LLAMA.replace("llama3-8b", "llama3-9b"));
  await page.locator("answer-view h2").getByText("The question has an error").waitFor();
  assert.equal(await page.locator("answer-view .set").innerText(), '/model/preset: there is no model "llama3-9b"; did you mean "llama3-8b"?');
  assert.equal(await page.locator("candidate-table table").count(), 0, "there is no report of this document");
  await page.getByRole("button", { name: "Undo" }).click();
  await page.locator("candidate-table table").waitFor();

  await drop(page, "layout.json", example("03"));
  await page.locator("layout-app .sum").filter({ hasText: /^data 2 × model 8/ }).waitFor();
  await page.getByRole("tab", { name: "Strategy" }).click();
  await drop(page, "noise.parquet", [...Array(64).keys()]);
  await page.locator("layout-app .notice").filter({ hasText: "noise.parquet: " }).waitFor();
  assert.match(await page.locator("layout-app .sum").innerText(), /^data 2 × model 8/, "the layout is as before");
});

inBrowser("while the planner computes, the page takes edits, and the last one wins", { immediate: true }, async (page) => {
  await patchWorkers(page, `const replacements = ({ mf_advise }, asked) => ({ mf_advise(n) {
    const text = asked(n);
    if (text.includes('"batch":1')) for (const end = Date.now() + 400; Date.now() < end; );
    while (text.includes('"batch":777')); // forever
    return mf_advise(n);
  } })`);
  await openStrategy(page);
  const found = await page.evaluate(async () => {
    const { model } = document.querySelector("strategy-app");
    const accepted = [];
    let last = model.reply;
    model.addEventListener("change", () => {
      if (model.reply !== last) accepted.push(model.document.get("training").get("batch"));
      last = model.reply;
    });
    for (const batch of [16, 17, 18, 19, 128]) void model.edit((d) => d.get("training").set("batch", batch));
    let frames = 0;
    while (model.since !== null) {
      await new Promise(requestAnimationFrame);
      frames++;
    }
    await model.settled();
    return { accepted, frames, rows: model.report.input.rows_per_step };
  });
  assert.deepEqual(found.accepted, [16, 128], "the edits between were not asked about");
  assert.equal(found.rows, 128);
  assert.ok(found.frames > 3, `the page was drawn ${found.frames} times`);

  // A planner that does not return is replaced, if there is a newer document.
  const batch = page.getByLabel("batch", { exact: true });
  await type(batch, "777");
  await page.locator('strategy-app .center[aria-busy="true"]').waitFor();
  assert.equal(await page.locator("needs-view dd").nth(1).innerText(), "128", "the last report stays");
  await type(batch, "256");
  await page.locator("needs-view dd").nth(1).filter({ hasText: "256" }).waitFor();
  assert.equal(await page.locator("strategy-app .center").getAttribute("aria-busy"), "false");
});

inBrowser("8 hosts of 8 devices are typed", async (page) => {
  await openStrategy(page);
  await type(page.getByLabel("devices", { exact: true }), "64");
  await type(page.getByLabel("devices per node"), "8");
  const { text, report } = await model(page);
  assert.deepEqual(JSON.parse(text).cluster, { device: "h100-80", devices: 64, per_node: 8 });
  assert.equal(report.devices, 64);
  assert.equal(report.input.processes, 8);
  await page.getByRole("button", { name: "Open this layout" }).click();
  await page.locator("layout-app .notice").waitFor();
  assert.match(await page.locator("layout-app .sum").innerText(), /^data 64 · 64 devices · 8 processes · loads$/);
});

const TEXTS = ["0", "-1", "1e9", "1.5", "", "abc", "9".repeat(40)];

inBrowser("every text in every input is used or refused with a reason, and the last report stays", { shared: true }, async (page) => {
  await openStrategy(page, LLAMA);
  const OWN = '{"meshfeed":1,"model":{"transformer":{"layers":4,"hidden":512,"heads":8,"ffn":2048,"vocab":1000,"sequence":256,"experts":{"count":4,"active":2}}},"training":{"batch":64,"schedule":"interleaved"},"cluster":{"devices":4,"memory_bytes":80000000000}}';
  const ANY = '{"meshfeed":1,"model":{"parameters":1000000},"training":{"batch":64},"cluster":{"device":"h100-80","devices":8}}';
  const known = []; // paths that were tried
  for (const [text, least] of [[OWN, 200], [ANY, 20]]) {
    const { tried, wrong } = await page.evaluate(async ([text, texts, known]) => {
      const app = document.querySelector("strategy-app");
      const { model } = app;
      const forms = [...app.shadowRoot.querySelectorAll("model-fields, training-fields, cluster-fields")];
      const shown = async () => {
        await model.settled();
        for (const form of forms) await form.updateComplete;
      };
      const inputs = () => forms.flatMap((f) => [...f.shadowRoot.querySelectorAll("input[data-path]:not([type=checkbox])")]);
      await model.load(text);
      await shown();
      const wrong = [];
      const tried = [];
      for (const path of inputs().map((i) => i.dataset.path).filter((path) => !known.includes(path))) {
        tried.push(path);
        for (const value of texts) {
          const input = inputs().find((i) => i.dataset.path === path);
          input.value = value;
          input.dispatchEvent(new Event("change"));
          await shown();
          const say = (what) => wrong.push(`${path} ${JSON.stringify(value)}: ${what}`);
          const now = inputs().find((i) => i.dataset.path === path);
          if (!model.report) say("the last report is gone");
          if (now?.ariaInvalid === "true") {
            const why = now.getRootNode().getElementById(now.getAttribute("aria-describedby"))?.textContent ?? "";
            if (why.length < 15 || /undefined|NaN(?!")|\[object/.test(why)) say(`the reason is ${JSON.stringify(why)}`);
          } else if (model.reply.error) {
            const { message, path: at } = model.reply.error;
            if (!at || !message.startsWith(at)) say(`the error names no input: ${message}`);
          } else if (model.reply.report.evaluated < 1 && model.reply.report.problems.length === 0) say("nothing is evaluated, without a reason");
          while (model.text !== text && model.undoable) await model.undo();
          await shown();
        }
      }
      return { tried, wrong };
    }, [text, TEXTS, known]);
    assert.deepEqual(wrong, []);
    assert.ok(tried.length * TEXTS.length >= least, `${tried}`);
    known.push(...tried);
  }
});

inBrowser("a refused text has a reason that names what is expected", { shared: true }, async (page) => {
  await openStrategy(page, LLAMA);
  await page.getByRole("combobox", { name: "model" }).selectOption("transformer");
  await page.evaluate(() => {
    for (const form of document.querySelector("strategy-app").shadowRoot.querySelectorAll("model-fields, training-fields, cluster-fields")) for (const d of form.shadowRoot.querySelectorAll("details")) d.open = true;
  });
  const { text } = await model(page);
  for (const [label, value, want] of [
    ["layers", "", "expected a whole number from 1, such as 64 or 10k"],
    ["layers", "1.5", "expected a whole number from 1, such as 64 or 10k"],
    ["memory", "-1", "expected a number from 1 to 9 P"],
    ["memory", "abc", "expected a number with a prefix, such as 80 G or 3.35 T"],
    ["efficiency", "0.5, abc", "expected a number with at most three decimals, such as 0.125"],
    ["free memory", "0.1234", "expected a number with at most three decimals, such as 0.125"],
  ]) {
    await type(page.getByLabel(label, { exact: true }), value);
    assert.equal(await page.getByRole("alert").innerText(), want, `${label} ${value}`);
    assert.equal((await model(page)).text, text, "the document is as before");
    await page.getByLabel(label, { exact: true }).fill(label === "layers" ? "32" : "");
    await page.getByLabel(label, { exact: true }).press("Enter");
    assert.equal(await page.getByRole("alert").count(), 0);
  }
  for (const [value, bytes] of [["1e10", 1e10], ["80 GiB", 80 * 2 ** 30], ["1,000 M", 1e9]]) {
    await type(page.getByLabel("memory", { exact: true }), value);
    assert.equal(JSON.parse((await model(page)).text).cluster.memory_bytes, bytes, value);
  }
});

inBrowser("controls have names and values, tables have headers, and changes are announced", { shared: true }, async (page) => {
  await openStrategy(page, LLAMA);
  for (const [name, text] of [["batch slider", "64"], ["sequence slider", "8,192"], ["devices slider", "8"]]) {
    assert.equal(await page.getByRole("slider", { name }).getAttribute("aria-valuetext"), text, name);
  }
  const table = page.getByRole("group", { name: "table of candidates" });
  assert.deepEqual(await table.getByRole("columnheader").allInnerTexts(), ["Mesh, by rank", "Memory", "Step", "Tokens/s", "MFU"]);
  assert.match(await table.getByRole("rowheader").first().innerText(), /^data 8\s*best/);
  assert.deepEqual(await table.locator("th").evaluateAll((all) => [...new Set(all.map((th) => th.scope))]), ["col", "row"]);
  const communication = page.getByRole("group", { name: "table of communication" });
  assert.equal(await communication.getByRole("columnheader").count(), 7);
  assert.equal(await communication.getByRole("rowheader").first().innerText(), "reduce-scatter of gradients");
  assert.deepEqual(await page.locator("cost-view").getByRole("rowheader").first().innerText(), "weights");

  const status = page.locator("strategy-app .sum").getByRole("status");
  assert.equal(await status.innerText(), "fits: data 8");
  await type(page.getByLabel("devices", { exact: true }), "1");
  assert.equal(await status.innerText(), "nothing fits");
  await type(page.getByLabel("devices", { exact: true }), "many");
  assert.equal(await page.getByRole("alert").innerText(), "expected a whole number from 1, such as 64 or 10k");

  // Every list of tabs has one tab stop, and every tab names its panel.
  const wrong = await page.evaluate(() => {
    const all = (root = document) => [...root.querySelectorAll("*")].flatMap((e) => [e, ...(e.shadowRoot ? all(e.shadowRoot) : [])]);
    return all().filter((e) => e.getAttribute("role") === "tablist").flatMap((list) => {
      const tabs = [...list.querySelectorAll('[role="tab"]')];
      const selected = tabs.filter((t) => t.ariaSelected === "true");
      const panel = list.getRootNode().getElementById(selected[0]?.getAttribute("aria-controls"));
      const right = list.ariaLabel && selected.length === 1 && tabs.filter((t) => t.tabIndex === 0).length === 1 && selected[0].tabIndex === 0
        && panel?.getAttribute("role") === "tabpanel" && panel.getAttribute("aria-labelledby") === selected[0].id;
      return right ? [] : [`${list.ariaLabel}: ${tabs.map((t) => t.textContent.trim())}`];
    });
  });
  assert.deepEqual(wrong, []);
  for (const [list, first, last] of [["pictures", "Memory", "Matmul"], ["export", "Text table", "Go"]]) {
    const tabs = page.locator("strategy-app").getByRole("tablist", { name: list });
    await tabs.getByRole("tab", { name: first }).press("End");
    assert.equal(await tabs.getByRole("tab", { name: last }).getAttribute("aria-selected"), "true");
    await tabs.getByRole("tab", { name: last }).press("ArrowRight");
    assert.equal(await tabs.getByRole("tab", { name: first }).getAttribute("aria-selected"), "true", "the arrow goes around");
  }
});
