// Tests of the layout page in a browser: keyboard, edits, pasted text, files, links and pictures.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRequire } from "node:module";
import { canonical, example, examples, focused, inBrowser, layouts, load, open, serve, type } from "./browser.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const violations = (page) =>
  page.evaluate(async () => {
    const found = await axe.run({
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
      // A cell shows "3 p1", but its accessible name is "device 3, process 1, …", which this rule rejects.
      rules: { "label-content-name-mismatch": { enabled: false } },
    });
    return found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => `${n.target.join(" ")} ${n.any[0]?.message ?? ""}`).slice(0, 3).join(" | ")}`);
  });

for (const colorScheme of ["light", "dark"]) {
  inBrowser(`axe finds no violations, ${colorScheme}`, { colorScheme, bypassCSP: true }, async (page) => {
    await open(page);
    await page.addScriptTag({ content: axe });
    for (const number of colorScheme === "light" ? ["05", "07", "08"] : ["07"]) {
      await load(page, example(number));
      assert.deepEqual(await violations(page), [], `example ${number}`);
    }
  });
}

inBrowser("arrow keys select a device, highlight its block on all devices, and Enter pins the block", { shared: true }, async (page) => {
  await open(page, example("02"));
  await page.getByRole("button", { name: "label", exact: true }).click();
  const mesh = page.getByRole("grid", { name: "device mesh" });
  await mesh.locator('[tabindex="0"]').focus();
  for (const key of ["ArrowDown", "ArrowRight", "ArrowDown", "ArrowUp"]) await page.keyboard.press(key);
  assert.equal(await (await focused(page)).getAttribute("aria-label"), "device 3, process 1, rows 64–127, replica 2 of 2, 256 B");
  assert.equal(await page.locator(".cell.on").count(), 3, "two devices and one block");
  assert.match(await page.locator(".detail").innerText(), /^device 3, process 1/);
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  assert.equal(await page.locator(".cell.pin").count(), 3);
  assert.match(await page.locator(".detail").innerText(), /^Pinned: rows 64–127, on device 2, 3\.$/);
});

inBrowser("one click fixes each problem of the indivisible batch", { shared: true }, async (page) => {
  await open(page, example("07"));
  const errors = page.locator("problem-list li.error");
  const before = await errors.count();
  assert.ok(before > 0, "the example has errors");
  assert.deepEqual(await errors.first().locator(".fixes button").allInnerTexts(), ["batch 104", "batch 96", "leave dimension 0 whole"]);
  for (let left = before; left > 0; left = await errors.count()) {
    await errors.first().locator(".fixes button").first().click();
    await page.waitForFunction((n) => document.querySelector("layout-app").shadowRoot.querySelector("problem-list").shadowRoot.querySelectorAll("li.error").length < n, left);
  }
  assert.match(await page.locator(".sum").innerText(), /loads$/);
});

inBrowser("the link of a problem focuses its input, which shows the message", { shared: true }, async (page) => {
  await open(page, '{"meshfeed":1,"mesh":{"axes":[["data",4]]},"arrays":{"x":{"shape":["B",6],"dtype":"int8","spec":["data","dat"]}},"batch":{"size":8}}');
  await page.getByRole("button", { name: "unknown-axis at /arrays/x/spec/1" }).click();
  const input = await focused(page);
  const found = await input.evaluate((e) => ({ path: e.dataset.path, why: e.getRootNode().getElementById(e.getAttribute("aria-describedby")).textContent }));
  assert.deepEqual(found, { path: "/arrays/x/spec", why: `axis "dat" of array "x" is not in Mesh('data': 4)` });
});

inBrowser("typed values change the layout", { shared: true }, async (page) => {
  await open(page, example("02"));
  await page.getByLabel("size of axis data").fill("8");
  await page.getByLabel("global batch").fill("512");
  await page.getByLabel("global batch").press("Enter");
  await page.getByRole("group", { name: "axes that partition dimension 0 of label" }).getByRole("button", { name: "model" }).click();
  await page.getByLabel("spec").first().fill("P(None, 'data', model)");
  await page.getByLabel("spec").first().press("Enter");
  assert.match(await canonical(page), /"axes":\[\["data",8\],\["model",2\]\],"processes":4.*"spec":\[null,"data","model"\]\},"label":.*"spec":\[\["data","model"\]\].*"size":512/);
  await page.getByLabel("shape").first().fill("B, eight");
  await page.getByLabel("shape").first().press("Enter");
  assert.equal(await page.locator("array-form .why").innerText(), "eight has no size yet; write eight=2048 once");
});

// A pasted text, and what the canonical document then matches.
const PASTES = [
  ["mesh = jax.make_mesh((2, 4), ('x', 'y'))\nimage = NamedSharding(mesh, P(('x', 'y'), None))\nlabel: P('y')", /\[\["x",2\],\["y",4\]\].*"spec":\[\["x","y"\],null\].*"label".*"spec":\["y"\]/],
  ["NamedSharding(mesh=Mesh('a': 4, 'b': 2), spec=PartitionSpec('a', 'b'), memory_kind=unpinned_host)", /\[\["a",4\],\["b",2\]\].*"image".*"spec":\["a","b"\]/],
  ["{devices=[2,2]<=[4]}", /\[\["axis0",2\],\["axis1",2\]\].*"spec":\["axis0","axis1"\]/],
  ["{devices=[2,2,2]<=[2,4]T(1,0) last_tile_dim_replicate}", /\[\["axis0",2\],\["axis1",2\],\["axis2",2\]\].*"spec":\["axis1","axis2"\]/],
  ['sdy.mesh @mesh = <["data"=4, "model"=2]>\n#sdy.sharding<@mesh, [{"data"}, {}, {"model"}]>', /\[\["data",4\],\["model",2\]\].*"spec":\["data",null,"model"\]/],
  ['{"image": P(), "label": P("model")}', /"image":\{"shape":\["B",8,8\],"dtype":"float32"\},"label".*"spec":\["model"\]/],
  // JSON.parse would sort these names, because they look like integers.
  ['{"meshfeed": 1, "mesh": {"axes": [["a", 2]]}, "arrays": {"1": {"shape": ["B"], "dtype": "int8"}, "0": {"shape": ["B"], "dtype": "int8"}}, "batch": {"size": 2}}', /"1":.*"0":/],
];

// A pasted text, and a part of the reason for which it is refused.
const REFUSED = [
  ["hello", "The text contains no layout, mesh or sharding. Accepted: "],
  ["make_mesh((4, 2), ('x',))", "the mesh has 2 sizes and 1 names"],
  ['{"meshfeed": 1}', 'a layout document needs the key "mesh"'],
  ['{"meshfeed": 1', "expected ',' or '}', but the text ends"],
];

// A data file, the notice after it is opened, and the shape of the array of its field "image".
const FILES = [
  ["arrow.parquet", /^arrow\.parquet: 9 fields, 3 records\. Rows of different lengths: ragged, text; choose a length under "Arrays"\. Not loadable: price \(.*\), pair \(.*\), map \(.*\)$/, '"shape":["B",2,3]'],
  ["fixed.arrow", /^fixed\.arrow: 3 fields, 5 records\. Not loadable: tensor \(its tensors are stored permuted/, '"shape":["B",4,3]'],
];

inBrowser("pasted text changes the layout, or is refused with a reason", async (page) => {
  await open(page);
  for (const [pasted, want] of PASTES) {
    await load(page, example("02"));
    await page.getByRole("button", { name: "Paste…" }).click();
    await page.getByLabel("text to read").fill(pasted);
    await page.getByRole("button", { name: "Use it" }).click();
    assert.match(await canonical(page), want, pasted);
  }
  await page.getByRole("button", { name: "Paste…" }).click();
  for (const [refused, why] of REFUSED) {
    await page.getByLabel("text to read").fill(refused);
    await page.getByRole("button", { name: "Use it" }).click();
    await page.getByRole("alert").filter({ hasText: why }).waitFor();
  }
});

inBrowser("the saved page opens with the layout", async (page) => {
  // Unescaped, these characters end the script element or act as a pattern of String.replace.
  await open(page, example("06").replace('"tokens"', () => '"</script x><!-- $& "'));
  const want = await canonical(page);
  assert.match(want, /<\/script x><!--/);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save page" }).click()]);
  const saved = join(tmpdir(), `meshfeed-${process.pid}.html`);
  await download.saveAs(saved);
  await open(page, null, `file://${saved}`);
  assert.equal(await canonical(page), want);
});

inBrowser("a link contains the layout, and a damaged link is reported", { online: true, permissions: ["clipboard-read", "clipboard-write"] }, async (page, t) => {
  const address = await serve(t);
  await open(page, example("06"), address);
  const want = await canonical(page);
  await page.getByRole("button", { name: "Share link" }).click();
  await page.locator(".notice").waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(link, /#v1=[\w-]+$/);
  await page.goto("about:blank");
  await open(page, null, link);
  assert.equal(await canonical(page), want);
  await page.goto("about:blank");
  await open(page, null, `${link.slice(0, -9)}`);
  assert.equal(await page.locator(".notice span").innerText(), "the link is damaged: its layout cannot be decoded");
});

inBrowser("an opened layout is shown, and an invalid one is refused with a reason", async (page) => {
  await open(page);
  const input = page.locator('input[type="file"]');
  await input.setInputFiles({ name: "a.json", mimeType: "application/json", buffer: Buffer.from(example("09")) });
  await page.locator(".notice").waitFor();
  assert.equal(await page.locator(".notice span").innerText(), "a.json is open.");
  await input.setInputFiles({ name: "b.json", mimeType: "application/json", buffer: Buffer.from('{"meshfeed":1,"mesh":{"axes":[["a",0]]}}') });
  await page.waitForFunction(() => document.querySelector("layout-app").notice.startsWith("b.json: "));
});

inBrowser("the fields of an opened data file become arrays", async (page) => {
  const input = page.locator('input[type="file"]');
  for (const [file, notice, shape] of FILES) {
    await open(page, example("02"));
    await input.setInputFiles(join(layouts, "../../internal/arrowmeta/testdata", file));
    await page.locator(".notice").waitFor();
    assert.match(await page.locator(".notice span").innerText(), notice);
    assert.ok((await canonical(page)).includes(`"image":{${shape},"dtype":"float32","spec":["data",null,"model"]}`), file);
  }
});

inBrowser("a field with rows of different lengths is padded, and the programs pad and open that file", async (page) => {
  await open(page, example("02"));
  await page.locator('input[type="file"]').setInputFiles(join(layouts, "../../internal/arrowmeta/testdata/arrow.parquet"));
  const length = page.getByLabel("pad ragged to");
  await type(length, "zero");
  await page.getByText("expected a whole number from 1, such as 64 or 10k").waitFor();
  await type(length, "2k");
  assert.equal(await length.count(), 0);
  assert.equal(await page.getByLabel("pad text to").inputValue(), "");
  assert.match(await canonical(page), /"ragged":\{"shape":\["B",2000\],"dtype":"int64","spec":\["data"\]\},"ragged_length":\{"shape":\["B"\],"dtype":"int32","spec":\["data"\]\}/);
  await type(page.getByRole("group", { name: "array ragged", exact: true }).getByLabel("shape", { exact: true }), "B, 16");
  assert.match(await canonical(page), /"fields":\{.*"ragged_length":\{"shape":\[\],"dtype":"int32"\},"ragged":\{"shape":\[16\],"dtype":"int64"\}/);
  const code = page.locator("out-panel pre");
  assert.match(await code.innerText(), /dataset = mf\.open\("arrow\.parquet"\)\ndataset = dataset\.pad\("ragged", length=16\) /);
  await page.getByRole("tab", { name: "Go", exact: true }).click();
  assert.match(await code.innerText(), /arrowio\.Open\("arrow\.parquet"\)[^]*view\.Pad\(opened, "ragged", view\.Padding\{Length: 16\}\)/);
});

inBrowser("pictures are saved as SVG and PNG", { shared: true }, async (page) => {
  await open(page, example("02"));
  for (const [kind, start] of [["svg", "<svg xmlns"], ["png", "\x89PNG"]]) {
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByLabel("save the picture").selectOption(kind)]);
    assert.equal(download.suggestedFilename(), `image.${kind}`);
    const file = join(tmpdir(), `meshfeed-${process.pid}.${kind}`);
    await download.saveAs(file);
    const bytes = readFileSync(file, "latin1");
    assert.equal(bytes.slice(0, start.length), start);
    assert.ok(bytes.length > 2000, `${bytes.length} bytes`);
  }
});

inBrowser("arrow keys move through 65,536 devices", { shared: true }, async (page) => {
  await open(page, example("08"));
  const mesh = page.getByRole("application", { name: /^device mesh/ });
  await mesh.focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  assert.match(await page.locator(".detail").innerText(), /^device 257, process 32, rows /);
  await page.getByLabel("global batch").fill("524288");
  await page.getByLabel("global batch").press("Enter");
  assert.match(await canonical(page), /"size":524288/);
});

for (const width of [390, 900]) {
  inBrowser(`the page fits into a window ${width} wide`, { viewport: { width, height: 800 } }, async (page) => {
    await open(page);
    for (const { name, text } of examples()) {
      await load(page, text);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width, name);
    }
  });
}

// SHOTS=FOLDER writes screenshots of the page, to be looked at.
if (process.env.SHOTS) {
  inBrowser("screenshots", async (page) => {
    for (const [width, colorScheme] of [[1440, "light"], [1440, "dark"], [900, "light"], [390, "dark"]]) {
      await page.setViewportSize({ width, height: 1000 });
      await page.emulateMedia({ colorScheme });
      await open(page, example("04"));
      writeFileSync(join(process.env.SHOTS, `${width}-${colorScheme}.png`), await page.screenshot({ fullPage: true }));
    }
  });
}
