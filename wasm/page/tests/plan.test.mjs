// Planning a run from an empty layout: processes, mesh, arrays and batch, with the page's messages.

import assert from "node:assert/strict";
import { test } from "node:test";
import { canonical, example, inBrowser, load, open, type } from "./browser.mjs";
import { modules } from "./modules.mjs";

const problems = (page) => page.locator('section[aria-label="problems"]');
const sum = (page) => page.locator(".sum").innerText();

inBrowser("a run on 8 hosts × 8 devices is planned from an empty layout", async (page) => {
  await open(page);
  await page.getByText("Plan how the batches of a training job are split over its hosts and devices").waitFor();
  await page.getByText("Example: Replicas in a process", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Start empty" }).click();

  // First the processes: 8 hosts with 8 devices each. The mesh still has one device, which the page reports.
  await type(page.getByLabel("processes", { exact: true }), "8");
  await type(page.getByLabel("devices per process"), "8");
  const form = page.locator("mesh-form");
  assert.equal(await form.locator(".why").innerText(), "8 processes × 8 devices are 64 devices, but the axes make 1 device: data 1");
  assert.match(await sum(page), /1 error$/);

  // The mesh: fsdp over the hosts, model within them. The second axis takes the rest of the 64 devices.
  await type(page.getByLabel("name of axis 1"), "fsdp");
  await type(page.getByLabel("size of axis fsdp"), "8");
  await page.getByRole("button", { name: "+ axis" }).click();
  await type(page.getByLabel("name of axis 2"), "model");
  assert.equal(await page.getByLabel("size of axis model").inputValue(), "8");
  assert.equal(await form.locator(".why").count(), 0);

  // The page offers an array. The test renames it to tokens.
  await problems(page).getByText("there is no array to deliver").waitFor();
  await problems(page).getByRole("button", { name: "add an array" }).click();
  await type(page.getByLabel("name of array 1"), "tokens");
  await page.getByLabel("type of tokens").selectOption("int32");
  await type(page.getByLabel("shape", { exact: true }), "B, 2048");
  await type(page.getByLabel("global batch"), "500");

  // 500 rows do not divide by 8, the size of fsdp: one problem, fixed by one click.
  assert.equal(await problems(page).locator("li.error").count(), 1);
  await problems(page).getByRole("button", { name: "batch 504" }).click();
  assert.match(await sum(page), /^fsdp 8 × model 8 · 64 devices · 8 processes · loads$/);

  // A weight that is partitioned over both axes.
  await page.getByRole("button", { name: "+ array" }).click();
  const weight = page.getByRole("group", { name: "array x1" });
  await type(weight.getByLabel("shape", { exact: true }), "4096, 4096");
  const dims = page.getByRole("group", { name: "axes that partition dimension 1 of x1" });
  await dims.getByRole("button", { name: "model" }).click();
  assert.match(await sum(page), /loads$/);

  assert.match(await page.locator(".detail").innerText(), /^Point at a block/);
  await page.getByRole("grid", { name: "device mesh" }).locator('[data-cell="9"]').focus();
  assert.equal(await page.locator(".detail").innerText(), "device 9, process 1, rows 512–1,023 × 512–1,023, 1 MiB");
  const code = await page.locator("out-panel pre").innerText();
  assert.match(code, /mf\.make_mesh\(\{"fsdp": 8, "model": 8\}\)/);
  assert.match(code, /"tokens": P\("fsdp"\)/);
  assert.match(code, /batch_size=504/);
});

const { disagreement, parse, EMPTY } = await modules("hosts", "draft");

test("every fix makes processes, devices and axes agree", () => {
  let seed = 7;
  const random = (n) => (seed = (seed * 48271) % 2147483647) % n;
  let fixed = 0;
  for (let round = 0; round < 3000; round++) {
    const draft = parse(EMPTY);
    draft.axes = Array.from({ length: random(4) }, (_, i) => ({ name: `a${i}`, size: 1 + random(8) }));
    draft.processes = 1 + random(20);
    draft.perProcess = random(3) === 0 ? null : 1 + random(9);
    const found = disagreement(draft);
    if (!found) continue;
    const labels = found.fixes.map((f) => f.label);
    assert.equal(new Set(labels).size, labels.length, `${JSON.stringify(draft)}: ${labels}`);
    for (const fix of found.fixes) {
      const after = structuredClone(draft);
      fix.apply(after);
      assert.equal(disagreement(after), null, `${JSON.stringify(draft)}: ${fix.label}`);
      fixed++;
    }
  }
  assert.ok(fixed > 3000, `${fixed} fixes`);
});

inBrowser("the typed processes and devices stay when the axes change", { shared: true }, async (page) => {
  await open(page, example("02"));
  await page.getByLabel("mesh presets").selectOption({ label: "8 hosts × 8: data 8 × model 8" });
  await type(page.getByLabel("size of axis model"), "4");
  const why = page.locator("mesh-form .why");
  const fixes = page.locator("problem-list .fixes");
  assert.equal(await why.innerText(), "8 processes × 8 devices are 64 devices, but the axes make 32 devices: data 8 × model 4");
  assert.deepEqual(await fixes.getByRole("button").allInnerTexts(), ["data 8 × model 8", "data 16", "model 8", "another axis: fsdp 2", "4 processes", "4 devices per process"]);
  await fixes.getByRole("button", { name: "4 devices per process" }).click();
  assert.equal(await why.count(), 0);
  assert.match(await sum(page), /32 devices · 8 processes · loads$/);
});

inBrowser("a new axis gets the chosen position", { shared: true }, async (page) => {
  await open(page, example("02"));
  const names = () => page.locator("mesh-form li input.code").evaluateAll((inputs) => inputs.map((i) => i.value).join());
  const place = page.getByLabel("position of the new axis");
  await page.getByRole("button", { name: "+ axis" }).click();
  assert.equal(await names(), "data,model,fsdp");
  await place.selectOption("outermost");
  await page.getByRole("button", { name: "+ axis" }).click();
  assert.equal(await names(), "seq,data,model,fsdp");
  await place.selectOption("between data and model");
  await page.getByRole("button", { name: "+ axis" }).click();
  assert.equal(await names(), "seq,data,expert,model,fsdp");
  assert.equal(await place.inputValue(), "innermost", "the next axis is innermost by default");
});

inBrowser("the default number of axes that run down fits the mesh, and a choice stays", { shared: true }, async (page) => {
  await open(page, example("02"));
  const split = page.getByLabel("axes that run down and across");
  const shape = () => page.evaluate(() => document.querySelector("layout-app").shadowRoot.querySelector("shard-view").shadowRoot.querySelectorAll("shard-grid")[1].grid).then(({ rows, cols }) => `${rows}×${cols}`);
  assert.equal(await shape(), "4×2");
  await page.getByLabel("mesh presets").selectOption({ label: "512 hosts × 8: data 64 × fsdp 16 × model 4" });
  assert.equal(await shape(), "64×64", "as square as the axes allow");
  await load(page, '{"meshfeed":1,"mesh":{"axes":[["data",4],["model",16]],"processes":4},"arrays":{"x":{"shape":["B",64],"dtype":"int8","spec":["data","model"]}},"batch":{"size":64}}');
  assert.equal(await shape(), "4×16");
  await type(page.getByLabel("size of axis data"), "2");
  await type(page.getByLabel("size of axis model"), "32");
  assert.equal(await shape(), "8×8", "a strip is folded");
  const sizes = await page.getByRole("grid", { name: "device mesh" }).locator(".cell").evaluateAll((cells) => cells.map((c) => c.textContent.replaceAll(/\s+/g, " ").trim()));
  assert.equal(sizes[9], "9 p0", "the cell shows the process");
  await type(page.getByLabel("size of axis data"), "16");
  await type(page.getByLabel("size of axis model"), "4");
  assert.equal(await shape(), "16×4");
  await split.selectOption("0");
  assert.equal(await shape(), "1×64");
  await type(page.getByLabel("size of axis data"), "8");
  assert.equal(await shape(), "1×32", "a choice stays while the axes keep their order");
  await page.getByRole("button", { name: "move data inwards" }).click();
  assert.equal(await shape(), "4×8", "another order of the axes resets the choice");
});

inBrowser("one wrong number is one problem with all its paths", { shared: true }, async (page) => {
  await open(page, example("07"));
  const errors = problems(page).locator("li.error");
  assert.equal(await errors.count(), 1);
  assert.match(await sum(page), /1 error$/);
  assert.deepEqual(await errors.locator(".path").allInnerTexts(), ["indivisible at /arrays/image/shape/0", "/arrays/label/shape/0", "/batch"]);
  assert.deepEqual(await errors.locator(".fixes button").allInnerTexts(), ["batch 104", "batch 96", "leave dimension 0 whole"]);
  await errors.getByRole("button", { name: "leave dimension 0 whole" }).click();
  assert.match(await canonical(page), /"image":\{"shape":\["B",32,32,3\],"dtype":"uint8"(,"spec":\[null\])?\},"label":\{"shape":\["B"\],"dtype":"int32"(,"spec":\[null\])?\}/);
  await load(page, example("02"));
  await type(page.getByLabel("size of axis data"), "3");
  await type(page.getByLabel("processes", { exact: true }), "3");
  const said = await page.locator("array-form .why").allInnerTexts();
  assert.equal(said.length, 2, "every input has a message of its own");
  assert.match(said[1], /array "label"/);
});

inBrowser("two batch sizes explain B0 and B1, and one click changes the shapes", { shared: true }, async (page) => {
  await open(page, example("02"));
  await type(page.getByLabel("global batch"), "4, 64");
  assert.equal(await page.locator("batch-form .note").innerText(), "B0 = 4, B1 = 64: 256 rows. Shapes begin with B0, B1.");
  await problems(page).getByRole("button", { name: "begin the shapes with B0, B1" }).click();
  assert.match(await canonical(page), /"image":\{"shape":\["B0","B1",8,8\],"dtype":"float32","spec":\["data",null,null,"model"\]\},"label":\{"shape":\["B0","B1"\],"dtype":"int32","spec":\["data"\]\}/);
  assert.match(await sum(page), /loads$/);
  await type(page.getByLabel("global batch"), "256");
  await problems(page).getByRole("button", { name: "begin the shapes with B", exact: true }).click();
  assert.match(await sum(page), /loads$/);
});

inBrowser("the figures show the budgets", { shared: true }, async (page) => {
  await open(page, example("02"));
  const cards = page.locator("totals-view .card");
  assert.equal((await cards.nth(2).innerText()).replaceAll("\n", " | "), "8.25 KiB | on the fullest device, for one batch | budget 16 GiB");
  await type(page.getByLabel("device budget"), "4 KiB");
  assert.equal((await cards.nth(2).innerText()).replaceAll("\n", " | "), "8.25 KiB | on the fullest device, for one batch | over the budget of 4 KiB");
});

for (const [way, options] of [["the keyboard", {}], ["a finger", { hasTouch: true, viewport: { width: 390, height: 800 } }]]) {
  inBrowser(`a term is explained beside its label, by ${way}`, options, async (page) => {
    await open(page, example("02"));
    for (const summary of await page.locator("section > details > summary").all()) if (await summary.isVisible()) await summary.click();
    for (const term of ["axes", "spec", "shape", "remainder", "order", "extras", "loading"]) {
      const button = page.getByRole("button", { name: `what ${term} means` }).first();
      if (options.hasTouch) await button.tap();
      else {
        await button.focus();
        await page.keyboard.press("Enter");
      }
      const line = page.locator("term-help p:popover-open");
      await line.waitFor();
      const box = await line.boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= page.viewportSize().width && box.y >= 0 && box.y + box.height <= page.viewportSize().height, `${term}: ${JSON.stringify(box)}`);
      assert.ok((await line.innerText()).length > 40);
      await page.keyboard.press("Escape");
      assert.equal(await line.count(), 0);
    }
  });
}

for (const width of [390, 768]) {
  inBrowser(`in a window ${width} wide the forms are above the picture, and a problem opens its form`, { viewport: { width, height: 800 } }, async (page) => {
    await open(page, example("07"));
    const top = async (name) => (await page.locator(`section[aria-label="${name}"]`).boundingBox()).y;
    const order = await Promise.all(["mesh", "arrays", "batch and loader", "problems", "picture"].map(top));
    assert.deepEqual(order, [...order].sort((a, b) => a - b));
    assert.ok(order[3] < 700, `the problems begin at ${order[3]}`);
    assert.equal(await page.getByLabel("shape", { exact: true }).first().isVisible(), false);
    await problems(page).getByRole("button", { name: "/arrays/label/shape/0" }).click();
    const shape = page.getByLabel("shape", { exact: true }).nth(1);
    assert.equal(await shape.evaluate((e) => e === e.getRootNode().activeElement), true);
    await page.locator("summary").filter({ hasText: "Mesh" }).click();
    await type(page.getByLabel("size of axis data"), "4");
    assert.match(await page.locator("summary").filter({ hasText: "Mesh" }).innerText(), /data 4 × model 2/);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
  });
}
