// Typing, dragging and pasting in the forms, and their messages.

import assert from "node:assert/strict";
import { test } from "node:test";
import { canonical, example, focused, inBrowser, load, open, type } from "./browser.mjs";
import { modules } from "./modules.mjs";

inBrowser("a device order is accepted, shown in runs, refused with a reason, and removed", { shared: true }, async (page) => {
  await open(page, example("02"));
  const form = page.locator("mesh-form");
  await form.locator("summary").first().click();
  const use = form.getByRole("button", { name: "use this order" });
  const order = form.getByLabel("order of the devices");
  for (const [wrong, why] of [["0 1 2", "expected 8 ids, or 8 [process, id] pairs, in mesh order, but found 3 numbers"], ["0 1 2 3 4 5 6 6", "device 6 is at positions 6 and 7, counted from 0"], ["all", "expected 8 ids, or 8 [process, id] pairs, in mesh order"]]) {
    await order.fill(wrong);
    await use.click();
    await form.getByText(why, { exact: true }).waitFor();
    assert.equal(await order.getAttribute("aria-invalid"), "true");
  }
  await order.fill("[[0, 1], [3, 2], [4, 5], [7, 6]]");
  await use.click();
  assert.match(await canonical(page), /"devices":\[\[0,0\],\[0,1\],\[1,3\],\[1,2\],\[2,4\],\[2,5\],\[3,7\],\[3,6\]\]/);
  assert.equal(await form.locator("summary").first().innerText(), "8 devices, in this order: p0: 0–1 · p1: 3, 2 · p2: 4–5 · p3: 7, 6");
  assert.match(await page.locator("out-panel pre").innerText(), /ids = \[0, 1, 3, 2, 4, 5, 7, 6\]/);
  assert.equal(await form.locator(".why").count(), 0);
  await form.getByRole("button", { name: "make row-major" }).click();
  assert.match(await canonical(page), /"mesh":\{"axes":\[\["data",4\],\["model",2\]\],"processes":4\}/);
  await order.fill("[[2, 0], [2, 1], [2, 2], [0, 3], [0, 4], [0, 5], [0, 6], [0, 7]]");
  await use.click();
  assert.equal(await form.getByLabel("devices per process").inputValue(), "");
  assert.equal(await form.getByLabel("processes").first().inputValue(), "2");
});

inBrowser("axes are moved by keyboard, which keeps the focus, and by dragging", { shared: true }, async (page) => {
  await open(page, example("05"));
  const names = () => page.locator("mesh-form li input.code").evaluateAll((inputs) => inputs.map((i) => i.value).join());
  await page.getByRole("button", { name: "move data inwards" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("layout-app").model.draft.axes[1].name === "data");
  assert.equal(await (await focused(page)).getAttribute("aria-label"), "move data inwards");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("layout-app").model.draft.axes[2].name === "data");
  assert.equal(await (await focused(page)).getAttribute("aria-label"), "move data outwards", "the innermost axis cannot move inwards");
  assert.equal(await names(), "fsdp,model,data");
  await page.locator("mesh-form li:nth-child(3) .grip").dragTo(page.locator("mesh-form li:nth-child(1)"));
  assert.equal(await names(), "data,fsdp,model");
  assert.match(await canonical(page), /"axes":\[\["data",2\],\["fsdp",8\],\["model",2\]\]/);
});

inBrowser("presets set the mesh, and unequal processes get fixes", { shared: true }, async (page) => {
  await open(page, example("02"));
  const presets = page.getByLabel("mesh presets");
  const counts = [];
  for (const value of await presets.locator("option").evaluateAll((all) => all.map((o) => o.value).filter(Boolean))) {
    await presets.selectOption(value);
    counts.push(await page.evaluate(() => document.querySelector("layout-app").model.draft.axes.reduce((n, a) => n * a.size, 1)));
  }
  assert.deepEqual(counts, [8, 8, 32, 64, 128, 256, 4096, 65536]);
  await presets.selectOption("2");
  await type(page.getByLabel("devices per process"), "4");
  const form = page.locator("mesh-form");
  assert.equal(await form.locator(".why").innerText(), "4 processes × 4 devices are 16 devices, but the axes make 32 devices: data 8 × model 4");
  await page.locator("problem-list").getByRole("button", { name: "8 processes" }).click();
  assert.match(await canonical(page), /"processes":8/);
  await load(page, example("02"));
  await type(page.getByLabel("processes").first(), "5");
  assert.equal(await form.locator(".why").innerText(), "5 processes cannot share the devices equally; the axes make 8 devices: data 4 × model 2");
  await page.locator("problem-list").getByRole("button", { name: "4 processes" }).click();
  assert.match(await canonical(page), /"processes":4/);
});

inBrowser("the error about a name is shown at its input", { shared: true }, async (page) => {
  await open(page, example("02"));
  const said = (form) => page.locator(`${form} .why`).allInnerTexts();
  const axis = page.getByLabel("name of axis 2");
  await type(axis, "data");
  assert.deepEqual(await said("mesh-form"), ["Another axis has the name data."]);
  assert.equal(await axis.getAttribute("aria-invalid"), "true");
  await type(axis, "");
  assert.deepEqual(await said("mesh-form"), ["An axis needs a name."]);
  await type(axis, `it's "a" <b>/~1 größe 😀`);
  assert.deepEqual(await said("mesh-form"), []);
  assert.equal(await page.getByLabel("spec").first().inputValue(), `P('data', None, "it's \\"a\\" <b>/~1 größe 😀")`);
  await type(page.getByLabel("spec").first(), await page.getByLabel("spec").first().inputValue());
  assert.ok((await canonical(page)).includes(`"spec":["data",null,${JSON.stringify(`it's "a" <b>/~1 größe 😀`)}]`));

  const array = page.getByLabel("name of array 2");
  await type(array, "image");
  assert.deepEqual(await said("array-form"), ["Another array has the name image."]);
  await type(array, "");
  assert.deepEqual(await said("array-form"), ["an array has no name"]);
  assert.equal(await array.getAttribute("aria-invalid"), "true");
  await type(array, "a/b~c <i>'\"");
  assert.deepEqual(await said("array-form"), []);
  await page.getByLabel("remainder").selectOption("pad");
  await type(array, "valid");
  assert.deepEqual(await said("array-form"), ['array "valid" has the name of the mask']);
});

inBrowser("a named size changes in all shapes", { shared: true }, async (page) => {
  await open(page, example("10"));
  const shape = (i) => page.locator("array-form").getByLabel("shape").nth(i);
  await type(shape(0), "B, S=8192");
  await type(shape(1), "B, S");
  assert.equal(await shape(1).inputValue(), "B, S=8192");
  await type(shape(1), "B, S = 1024");
  assert.equal(await shape(0).inputValue(), "B, S=1024");
  assert.match(await canonical(page), /"tokens":\{"shape":\["B",1024\].*"segments":\{"shape":\["B",1024\].*"positions":\{"shape":\["B",4096\]/);
  await type(shape(2), "B, T");
  assert.equal(await page.locator("array-form .why").innerText(), "T has no size yet; write T=2048 once");
  await type(page.getByLabel("spec").first(), "P(None, 'data')");
  await type(shape(1), "B, S=1000");
  await page.getByRole("button", { name: "size 1,008" }).click();
  assert.equal(await shape(0).inputValue(), "B, S=1008");
  assert.equal(await shape(1).inputValue(), "B, S=1008");
});

inBrowser("an invalid number is refused at its input", { shared: true }, async (page) => {
  await open(page, example("02"));
  for (const [label, value, why] of [
    ["global batch", "many", "expected a whole number from 1, such as 64 or 10k"],
    ["dataset records", "-1", "expected a whole number from 0, such as 64 or 10k"],
    ["seed", "1.5", "expected a whole number, such as 64 or 10k"],
    ["prefetch", "", "expected a whole number from 0, such as 64 or 10k"],
    ["device budget", "16 apples", "expected a size with its unit, such as 16 GiB"],
    ["device budget", "16", "16 has no unit; write 16 GiB, 16 MiB or 16 B"],
    ["host budget", "0 GiB", "expected a size of at least 1 B; leave the input empty for no bound"],
    ["processes", "0", "expected a whole number from 1, such as 64 or 10k; still 4"],
    ["devices per process", "two", "expected a whole number from 1, such as 64 or 10k; still 2"],
    ["size of axis data", "1.5", "expected a whole number from 1, such as 64 or 10k; data is still 4"],
    ["size of axis data", "2097152", 'axis "data" of size 2097152 makes the mesh larger than 1048576 devices'],
    ["a step takes", "250", "expected a time with its unit, such as 250 ms or 1.2 s"],
    ["epoch", "-1", 'there is no epoch "-1"; expected a whole number from 0 to 9,007,199,254,740,991'],
    ["step", "7", 'there is no step "7"; expected a whole number from 0 to 6'],
  ]) {
    const input = page.getByLabel(label, { exact: true });
    const before = await input.inputValue();
    await type(input, value);
    assert.equal(await page.locator(".why").innerText(), why, label);
    if (!["epoch", "step"].includes(label)) assert.equal(await input.getAttribute("aria-invalid"), "true");
    await type(input, before);
    assert.equal(await page.locator(".why").count(), 0, label);
  }
  await page.getByRole("combobox", { name: "order", exact: true }).selectOption("shuffle.1");
  await type(page.getByLabel("seed"), "-3");
  assert.match(await canonical(page), /"order":"shuffle.1","seed":-3/);
});

inBrowser("Ctrl-Z undoes an edit, but not inside an input", async (page) => {
  await open(page, example("07"));
  const before = await canonical(page);
  await page.locator("problem-list li.error .fixes button").first().click();
  assert.notEqual(await canonical(page), before);
  await page.locator("shard-view").getByRole("button").first().focus();
  await page.keyboard.press("Control+z");
  assert.equal(await canonical(page), before);
  await type(page.getByLabel("global batch"), "104");
  await page.keyboard.press("Control+z");
  assert.match(await canonical(page), /"size":104/);
});

inBrowser("Undo goes back to the layout before the opened one", { shared: true }, async (page) => {
  await open(page);
  const first = await canonical(page);
  const undo = page.getByRole("button", { name: "Undo" });
  assert.equal(await undo.isDisabled(), true);
  await load(page, example("09"));
  await undo.click();
  assert.equal(await canonical(page), first);
  assert.equal(await undo.isDisabled(), true);
});

const { parseShape, specText, parseSpec } = await modules("spec-text");

test("shapes are parsed, or refused with what is expected", () => {
  const sizes = new Map([["S", 2048]]);
  const read = (text) => parseShape(text, sizes).map((d) => (d.name ? `${d.name}=${d.size}` : d.size)).join(" ");
  for (const [text, want] of Object.entries({
    "B, 8, 8": "B 8 8", "(B, 8192)": "B 8192", "[B0, B1, 3]": "B0 B1 3", "8x8": "8 8", "B × 8 x 8": "B 8 8", "8_192": "8192", "": "", "B, S": "B S=2048", "B,T = 7": "B T=7", "B, größe=3": "B größe=3", "x=4 8": "x=4 8",
  })) assert.equal(read(text), want, text);
  for (const [text, why] of Object.entries({
    "B, eight!": '"eight!" is not a size; expected whole numbers, or B for the batch: B, 8, 8',
    "B, -1": '"-1" is not a size; expected whole numbers, or B for the batch: B, 8, 8',
    "B, 1.5": '"1.5" is not a size; expected whole numbers, or B for the batch: B, 8, 8',
    "B, =4": '"=4" is not a size; expected whole numbers, or B for the batch: B, 8, 8',
    "B=256, 8": "B is a batch dimension with the size of the global batch; write B alone",
    "B, T": "T has no size yet; write T=2048 once",
    "9007199254740993": "9007199254740993 is larger than 2^53",
  })) assert.throws(() => read(text), { message: why }, text);
});

test("specText and parseSpec are inverse", () => {
  for (const spec of [[], [["a"], []], [["a", "b"], ["it's"]], [['"']], [["it's \"x\""]], [["a\\b"], ["a,b (c)"]], [["None"]]]) assert.deepEqual(parseSpec(specText(spec)), spec, specText(spec));
});

inBrowser("a number may have a decimal suffix", { shared: true }, async (page) => {
  await open(page, example("02"));
  for (const [text, records] of [["10M", 10_000_000], ["1.5k", 1500], ["2 G", 2_000_000_000], ["10_000", 10_000], ["1e7", 10_000_000], ["0.29M", 290_000]]) {
    await type(page.getByLabel("dataset records"), text);
    assert.match(await canonical(page), new RegExp(`"dataset":\\{"records":${records}[,}]`), text);
  }
});

inBrowser("names of hosts and the time of a step appear in the table of reads, and in Slurm's file", { shared: true }, async (page) => {
  await open(page, example("02"));
  await page.locator("mesh-form summary").last().click();
  const hosts = page.getByLabel("names of the hosts", { exact: true });
  await type(hosts, "node[01-03]");
  await page.getByText("expected 4 names, such as node[01-04], but these are 3").waitFor();
  await type(hosts, "node[08-10],other");
  await type(page.getByLabel("a step takes"), "250 ms");
  const table = page.getByRole("region", { name: "what every process reads" });
  assert.deepEqual(await table.locator("td:first-child").allInnerTexts(), ["0 node08", "1 node09", "2 node10", "3 other"]);
  assert.deepEqual(await table.locator("tr:nth-child(1) td.n").allInnerTexts(), ["2", "16.2 KiB", "66.6 kB/s"]);
  await page.getByText("Over an epoch every process reads rows of all files, so every host needs all of them").waitFor();
  await page.getByRole("tab", { name: "Slurm" }).click();
  assert.match(await page.locator("out-panel pre").innerText(), /--nodes=4\n#SBATCH --nodelist=node08,node09,node10,other\n.*\n#SBATCH --gpus-per-node=2\n/);
  await page.getByLabel("mesh presets").selectOption({ label: "8 hosts × 8: data 8 × model 8" });
  assert.doesNotMatch(await page.locator("out-panel pre").innerText(), /nodelist/);
});
