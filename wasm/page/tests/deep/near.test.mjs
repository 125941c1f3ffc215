// Tests of a grid of more than 1,024 cells, which is painted on a canvas: its zoom, outlines, colors and texts.
// The last test is about the text in a cell of an array.

import assert from "node:assert/strict";
import { test } from "node:test";
import { example, inBrowser, open } from "../browser.mjs";
import { modules } from "../modules.mjs";

const REPLICATED = '{"meshfeed":1,"mesh":{"axes":[["data",64],["model",32]],"processes":512},"arrays":{"x":{"shape":["B"],"dtype":"int8","spec":["data"]}},"batch":{"size":64}}';
const FOUR_PROCESSES = '{"meshfeed":1,"mesh":{"axes":[["data",128],["model",64]],"processes":4},"arrays":{"x":{"shape":["B",64],"dtype":"int8","spec":["data","model"]}},"batch":{"size":128}}';

/** begin opens the page and adds window.pixels, which copies a canvas and returns the copy's context. Reading
 * the page's own canvas repeatedly would log a console warning, which fails the test. */
const begin = async (page, document) => {
  await open(page, document);
  await page.evaluate(() => {
    window.pixels = (canvas) => {
      const context = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
      context.drawImage(canvas, 0, 0);
      return context;
    };
  });
};

const meshOf = (page) => page.getByRole("application", { name: /^device mesh/ });

/** seen returns the zoom, the position and the visible area of the mesh, and the number of its marked cell. */
const seen = (page) =>
  meshOf(page).evaluate(async (e) => {
    const grid = e.getRootNode().host;
    await grid.updateComplete;
    const { zoom, x, y, area } = grid.view;
    return { zoom, x, y, area, cursor: grid.cursor };
  });

/** marked reports whether the marked cell is inside the picture. */
const marked = (page) =>
  meshOf(page).evaluate((e) => {
    const [mark, box] = [e.querySelector(".mark"), e].map((x) => x.getBoundingClientRect());
    return mark.left >= box.left - 2 && mark.right <= box.right + 2 && mark.top >= box.top - 2 && mark.bottom <= box.bottom + 2;
  });

/** outlines checks that a dark line separates two neighbors in a row exactly if their processes differ. It
 * counts the pairs with a line and without one, and lists the first five wrong pairs. */
const outlines = (page) =>
  meshOf(page).evaluate((e) => {
    const { grid, view } = e.getRootNode().host;
    const context = window.pixels(e.querySelector("canvas"));
    const { left, right, top, bottom } = view.area;
    const dark = (r, c) => {
      const [x, y] = [Math.round((c - view.x) * view.w), Math.round((r + 0.25 - view.y) * view.h)];
      const [red, green, blue, alpha] = context.getImageData(x - 1, y, 2, 1).data;
      return alpha > 128 && red + green + blue < 150;
    };
    const out = { with: 0, without: 0, wrong: [] };
    for (let r = top + 1; r < bottom - 1; r++) {
      for (let c = left + 1; c < right; c++) {
        const between = grid.process[r * grid.cols + c - 1] !== grid.process[r * grid.cols + c];
        out[between ? "with" : "without"]++;
        if (dark(r, c) !== between) out.wrong.push(`${r},${c}`);
      }
    }
    return { ...out, wrong: out.wrong.slice(0, 5) };
  });

inBrowser("the keyboard zooms around the marked cell, which stays visible", { shared: true }, async (page) => {
  await begin(page, example("08"));
  const mesh = meshOf(page);
  await mesh.focus();
  await page.keyboard.press("Control+End");
  const far = await seen(page);
  assert.deepEqual([far.zoom, far.cursor], [1, 65535]);
  for (let zoom = 2; zoom <= 16; zoom *= 2) {
    await page.keyboard.press("+");
    assert.equal((await seen(page)).zoom, zoom);
    assert.equal(await marked(page), true, `zoom ${zoom}`);
  }
  const before = (await seen(page)).area;
  await page.keyboard.press("Control+Home");
  assert.deepEqual({ ...(await seen(page)).area, cursor: (await seen(page)).cursor }, { top: 0, left: 0, bottom: before.bottom - before.top, right: before.right - before.left, cursor: 0 });
  for (let i = 0; i < 40; i++) await page.keyboard.press("ArrowRight");
  assert.equal(await marked(page), true);
  assert.ok((await seen(page)).area.left > 0, "the view follows the mark");
  for (let i = 0; i < 20; i++) await page.keyboard.press("=");
  const near = await seen(page);
  assert.equal(await page.getByRole("group", { name: "zoom of the device mesh" }).getByRole("button", { name: "zoom in" }).isDisabled(), true);
  assert.ok(near.area.right - near.area.left < 16, "a cell is large enough to read");
  await page.keyboard.press("-");
  assert.equal((await seen(page)).zoom, near.zoom / 2);
  await page.keyboard.press("0");
  assert.deepEqual((await seen(page)).area, { top: 0, left: 0, bottom: 256, right: 256 });
  assert.equal((await seen(page)).cursor, 40);
});

inBrowser("buttons, wheel, dragging and pinching change the view", { shared: true }, async (page) => {
  await begin(page, example("08"));
  const buttons = page.getByRole("group", { name: "zoom of the device mesh" });
  await buttons.getByRole("button", { name: "zoom in" }).click();
  await buttons.getByRole("button", { name: "zoom in" }).click();
  assert.equal((await seen(page)).zoom, 4);
  await buttons.getByRole("button", { name: "show all" }).click();
  assert.equal((await seen(page)).zoom, 1);

  const box = await meshOf(page).boundingBox();
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  const wheel = async (zoom) => {
    await page.mouse.move(x, y);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -100);
    await page.keyboard.up("Control");
    await page.waitForFunction((zoom) => document.querySelector("layout-app").shadowRoot.querySelector("shard-view").shadowRoot.querySelectorAll("shard-grid")[1].view.zoom > zoom, zoom);
    return seen(page);
  };
  const near = await wheel(1);
  assert.equal(near.zoom, 2);
  assert.ok(Math.abs(near.x - 64) < 1.5 && Math.abs(near.y - 64) < 1.5, `the cell under the pointer moved: ${near.x}, ${near.y}`);
  assert.equal(await marked(page), true, "the mark moves into the view");

  await page.mouse.down();
  await page.mouse.move(x - 60, y + 40, { steps: 4 });
  await page.mouse.up();
  const moved = await seen(page);
  const cell = box.width / 128;
  assert.ok(Math.abs(moved.x - near.x - 60 / cell) < 1 && Math.abs(moved.y - near.y + 40 / cell) < 1, `${moved.x - near.x}, ${moved.y - near.y}`);
  const nearer = await wheel(2);
  assert.ok(Math.abs(nearer.x - moved.x - 32) < 1 && Math.abs(nearer.y - moved.y - 32) < 1, `${nearer.x - moved.x}, ${nearer.y - moved.y}`);
  for (let i = 0; i < 8; i++) {
    await page.mouse.move(x + 100, y + 100);
    await page.mouse.down();
    await page.mouse.move(x - 150, y - 150, { steps: 2 });
    await page.mouse.up();
  }
  assert.deepEqual((await seen(page)).area, { top: 192, left: 192, bottom: 256, right: 256 }, "the view stays inside the grid");
  const pinned = () => page.evaluate(() => document.querySelector("layout-app").model.look.pinned);
  assert.equal(await pinned(), null, "dragging pins no block");
  await page.mouse.click(x, y);
  assert.notEqual(await pinned(), null, "a click pins a block");
  await page.mouse.down();
  await page.mouse.move(x, box.y - 40);
  await page.mouse.up();
  await page.mouse.move(x + 20, y + 20);
  assert.match(await page.locator(".detail").innerText(), /^device /, "a press that ends outside of the picture is not a drag");
  assert.equal((await seen(page)).zoom, nearer.zoom);

  await meshOf(page).evaluate((e) => {
    const { left, top } = e.getBoundingClientRect();
    const at = (type, pointerId, x, y) => e.dispatchEvent(new PointerEvent(type, { pointerId, buttons: 1, clientX: left + x, clientY: top + y, bubbles: true }));
    at("pointerdown", 11, 100, 100);
    at("pointerdown", 12, 200, 100);
    at("pointermove", 12, 300, 100);
    at("pointerup", 11, 100, 100);
    at("pointerup", 12, 300, 100);
  });
  assert.equal((await seen(page)).zoom, 8);
});

inBrowser("processes are outlined unless the outlines would hide the colors", { shared: true }, async (page) => {
  await begin(page, FOUR_PROCESSES);
  const far = await outlines(page);
  assert.deepEqual(far.wrong, []);
  await begin(page, example("08"));
  const dark = await meshOf(page).evaluate((e) => {
    const { data } = window.pixels(e.querySelector("canvas")).getImageData(0, 0, 300, 300);
    return data.filter((_, at) => at % 4 === 0 && data[at] + data[at + 1] + data[at + 2] < 150).length;
  });
  assert.equal(dark, 0, "8,192 outlines would hide the colors");
  await meshOf(page).focus();
  for (let i = 0; i < 4; i++) await page.keyboard.press("+");
  const near = await outlines(page);
  assert.deepEqual(near.wrong, []);
  assert.ok(near.with > 0 && near.without > 0, JSON.stringify(near));
});

inBrowser("an enlarged cell shows its device, its process and a hatch", { shared: true }, async (page) => {
  await begin(page, REPLICATED);
  const written = async () => {
    const words = await page.evaluate(() => {
      const texts = [];
      const { prototype } = CanvasRenderingContext2D;
      const usual = prototype.fillText;
      prototype.fillText = function (words, ...at) {
        texts.push(words);
        return usual.call(this, words, ...at);
      };
      const [, grid] = document.querySelector("layout-app").shadowRoot.querySelector("shard-view").shadowRoot.querySelectorAll("shard-grid");
      grid.paint();
      prototype.fillText = usual;
      return texts;
    });
    return words;
  };
  assert.deepEqual(await written(), []);
  await meshOf(page).focus();
  for (let i = 0; i < 8; i++) await page.keyboard.press("+");
  const words = await written();
  const { area } = await seen(page);
  const cells = [];
  for (let r = area.top; r < area.bottom; r++) for (let c = area.left; c < area.right; c++) cells.push(r * 32 + c);
  assert.deepEqual(words, cells.flatMap((n) => [`${n}`, `p${Math.floor(n / 4)}`]));
  const colors = await meshOf(page).evaluate((e) => {
    const { view } = e.getRootNode().host;
    const context = window.pixels(e.querySelector("canvas"));
    return [0, 1].map((c) => {
      const { data } = context.getImageData((c - view.x) * view.w + 4, (0 - view.y) * view.h + 4, view.w - 8, 6);
      return new Set(Array.from({ length: data.length / 4 }, (_, i) => data.slice(4 * i, 4 * i + 3).join())).size;
    });
  });
  assert.equal(colors[0], 1, "the first replica is not hatched");
  assert.ok(colors[1] > 1, "the second replica is hatched");
});

inBrowser("a painted cell has a text, and highlights its block in both grids", { shared: true }, async (page) => {
  await begin(page, REPLICATED);
  await meshOf(page).focus();
  const detail = page.locator(".detail");
  assert.equal(await detail.getAttribute("aria-live"), "polite");
  assert.equal(await detail.innerText(), "device 0, process 0, rows 0, replica 1 of 32, 1 B");
  for (const key of ["ArrowDown", "End", "ArrowLeft"]) await page.keyboard.press(key);
  assert.equal(await detail.innerText(), "device 62, process 15, rows 1, replica 31 of 32, 1 B");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  assert.match(await detail.innerText(), /^Pinned: rows 1, on device 32, 33, .* and 20 more\.$/);
  const alphas = await meshOf(page).evaluate((e) => {
    const { view } = e.getRootNode().host;
    const context = window.pixels(e.querySelector("canvas"));
    return [0, 1, 4].map((r) => context.getImageData(0.5 * view.w, (r + 0.3) * view.h, 1, 1).data[3]);
  });
  assert.deepEqual(alphas, [70, 255, 70]);
});

inBrowser("the outlines change color with the theme", async (page) => {
  await begin(page, FOUR_PROCESSES);
  const line = () =>
    meshOf(page).evaluate(async (e) => {
      const { grid, view } = e.getRootNode().host;
      await e.getRootNode().host.updateComplete;
      const r = Array.from({ length: grid.rows }, (_, r) => r).find((r) => r > 0 && grid.process[(r - 1) * grid.cols] !== grid.process[r * grid.cols]);
      return [...window.pixels(e.querySelector("canvas")).getImageData(Math.round(5.5 * view.w), Math.round(r * view.h), 1, 1).data];
    });
  const brightness = async () => (await line()).slice(0, 3).reduce((a, b) => a + b);
  const light = await brightness();
  await page.getByLabel("colors", { exact: true }).selectOption("dark");
  const dark = await brightness();
  assert.ok(dark > light + 150, `${light}, ${dark}`);
  await page.getByLabel("colors", { exact: true }).selectOption("light");
  assert.equal(await brightness(), light);
});

const { Blocks, DEFAULT_LOOK, arrayGrid } = await modules("blocks", "look", "cut");

test("a cell of the array names the least and the largest process", () => {
  const text = (...process) => {
    const zeros = new Int32Array(process.length);
    const blocks = new Blocks({ shape: [8], shard: [8], counts: [1], bytes: 1, block: zeros, process: Int32Array.from(process), id: zeros, replica: zeros });
    return arrayGrid(blocks, DEFAULT_LOOK, "x").text(0).sub;
  };
  assert.equal(text(2, 2), "p2");
  assert.equal(text(3, 0, 3), "p0 p3");
  assert.equal(text(...Array.from({ length: 600 }, (_, i) => Math.floor(i / 8))), "p0…p74");
});
