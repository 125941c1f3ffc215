// Accessibility: enlarged text, print, keyboard, forced colors, color blindness, reduced motion.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { example, examples, inBrowser, load, open } from "../browser.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** tools adds functions to the open page that search through shadow roots. */
const tools = (page) =>
  page.evaluate(() => {
    window.all = (root = document) => [...root.querySelectorAll("*")].flatMap((e) => [e, ...(e.shadowRoot ? window.all(e.shadowRoot) : [])]);
    window.shown = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && e.getClientRects().length > 0;
    window.above = (e) => e.parentElement ?? e.getRootNode().host ?? null;
    window.called = (e) => `${e.localName} ${e.getAttribute("aria-label") || e.title || e.labels?.[0]?.textContent.trim() || e.textContent.trim().slice(0, 40)}`;
    window.focused = () => {
      let e = document.activeElement;
      while (e?.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
      return e;
    };
  });

for (const [width, deviceScaleFactor] of [[1280, 1], [640, 2]]) {
  inBrowser(`at ${100 * deviceScaleFactor} % no control is clipped, covered or outside its panel`, { viewport: { width, height: 900 / deviceScaleFactor }, deviceScaleFactor }, async (page) => {
    await open(page);
    await tools(page);
    for (const { name, text } of examples()) {
      await load(page, text);
      const wrong = await page.evaluate(() => {
        const controls = window.all().filter((e) => e.matches("button, input, select, textarea, summary, a[href], p, h1, h2, label, td, th, text") && window.shown(e));
        const said = [];
        const box = new Map(controls.map((e) => [e, e.getBoundingClientRect()]));
        const scrolls = (e) => e && (e.matches(".scroll, pre") || scrolls(window.above(e)));
        const floats = (e) => e && (e.matches(".zoom, .visually-hidden") || floats(window.above(e)));
        const edge = (e) => (!e ? innerWidth : e.matches(".panel") ? e.getBoundingClientRect().right : edge(window.above(e)));
        for (const e of controls) {
          const { left, right, width, height } = box.get(e);
          if (scrolls(e) || floats(e) || width * height === 0) continue;
          if (left < -0.5 || right > edge(e) + 0.5) said.push(`${window.called(e)} lies at ${left}–${right}`);
          if (e.matches("button, p, h1, h2, label") && e.scrollWidth > e.clientWidth + 1) said.push(`${window.called(e)} is clipped: ${e.scrollWidth} > ${e.clientWidth}`);
        }
        const inputs = controls.filter((e) => e.matches("button, input, select, textarea") && !floats(e) && !scrolls(e));
        for (const [i, a] of inputs.entries()) {
          for (const b of inputs.slice(i + 1)) {
            const [p, q] = [box.get(a), box.get(b)];
            const over = Math.min(p.right, q.right) - Math.max(p.left, q.left) > 0.5 && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 0.5;
            if (over) said.push(`${window.called(a)} covers ${window.called(b)}`);
          }
        }
        return { said, width: document.documentElement.scrollWidth };
      });
      assert.deepEqual(wrong, { said: [], width }, name);
    }
  });
}

for (const colorScheme of ["light", "dark"]) {
  inBrowser(`a print has all parts, and nothing is cut off, ${colorScheme}`, { colorScheme, viewport: { width: 718, height: 1000 } }, async (page) => {
    await open(page);
    await tools(page);
    await page.getByLabel("colors", { exact: true }).selectOption(colorScheme);
    await page.emulateMedia({ media: "print", colorScheme });
    for (const { name, text } of examples()) {
      await load(page, text);
      await page.evaluate(() => document.querySelector("layout-app").model.see({ tab: "text" }));
      const paper = await page.evaluate(() => {
        const cut = window.all().filter((e) => {
          if (!window.shown(e) || e.closest(".visually-hidden, svg, .axes")) return false;
          const style = getComputedStyle(e);
          if (e.matches("pre") && (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1)) return true;
          return [style.overflowX, style.overflowY].some((o) => o !== "visible") && (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1);
        });
        const outside = window.all().filter((e) => window.shown(e) && !e.closest("defs, .visually-hidden") && e.getBoundingClientRect().right > innerWidth + 1);
        const parts = ["figures", "problems", "picture", "data", "export"].filter((p) => {
          const e = document.querySelector("layout-app").shadowRoot.querySelector(`section[aria-label="${p}"]`);
          return !e || !window.shown(e);
        });
        const ways = window.all().filter((e) => e.matches(".ways tbody tr") && [...e.querySelectorAll("button")].every(window.shown)).length;
        return {
          cut: cut.map(window.called),
          outside: outside.map(window.called).slice(0, 4),
          missing: parts,
          ways,
          inputs: window.all().filter((e) => e.matches("input, textarea, .fixes button") && window.shown(e) && e.type !== "range").map(window.called),
          paper: getComputedStyle(document.body).backgroundColor,
          ink: getComputedStyle(document.body).color,
        };
      });
      const ways = name.startsWith("07") ? paper.ways : 4;
      assert.deepEqual(paper, { cut: [], outside: [], missing: [], ways, inputs: [], paper: "rgb(255, 255, 255)", ink: "rgb(22, 32, 43)" }, name);
    }
  });
}

inBrowser("with forced colors, blocks have texts and pressed buttons differ", { forcedColors: "active" }, async (page) => {
  await open(page, example("05"));
  await tools(page);
  const found = await page.evaluate(() => {
    const fill = (e) => getComputedStyle(e).backgroundColor;
    const one = (selector) => window.all().find((e) => e.matches(selector) && window.shown(e));
    return {
      words: window.all().filter((e) => e.matches(".cell") && !e.querySelector("text")?.textContent).length,
      hatched: window.all().filter((e) => e.matches(".hatch") && getComputedStyle(e).fill.startsWith("url")).length,
      same: window.all().filter((e) => e.matches(".cell rect.fill") && getComputedStyle(e).stroke === "none").length,
      tabs: fill(one('.tabs [aria-pressed="true"]')) !== fill(one('.tabs [aria-pressed="false"]')),
      chips: fill(one('array-form *, [aria-label^="axes that partition"] [aria-pressed="true"]')) !== fill(one('[aria-label^="axes that partition"] [aria-pressed="false"]')),
      out: fill(one('[role="tab"][aria-selected="true"]')) !== fill(one('[role="tab"][aria-selected="false"]')),
      bars: fill(one(".bar i")) !== fill(one(".bar")),
    };
  });
  assert.deepEqual(found, { words: 0, hatched: 16, same: 0, tabs: true, chips: true, out: true, bars: true });
});

inBrowser("with reduced motion nothing is animated", { reducedMotion: "reduce" }, async (page) => {
  await open(page, example("02"));
  await tools(page);
  const times = () => page.evaluate(() => [...new Set(window.all().flatMap((e) => [getComputedStyle(e).transitionDuration, getComputedStyle(e).animationDuration]))].sort());
  assert.deepEqual(await times(), ["0s"]);
  await page.emulateMedia({ reducedMotion: "no-preference" });
  assert.deepEqual(await times(), ["0.12s", "0s"]);
});

for (const number of ["07", "08", "09"]) {
  inBrowser(`the Tab key visits every control once and shows the focus: ${number}`, { shared: true }, async (page) => {
    await open(page, example(number));
    await tools(page);
    await page.evaluate(() => {
      window.stops = window.all().filter((e) => e.tabIndex >= 0 && !e.disabled && window.shown(e) && (e.matches("button, input, select, textarea, a[href], [tabindex]")));
      window.visited = [];
    });
    const most = (await page.evaluate(() => window.stops.length)) + 10;
    const silent = [];
    for (let i = 0; i < most; i++) {
      await page.keyboard.press("Tab");
      const stop = await page.evaluate(() => {
        const e = window.focused();
        if (!e || e === document.body) return null;
        window.visited.push(e);
        const style = getComputedStyle(e);
        const ring = e.querySelector(".ring");
        const outlined = (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || (ring && getComputedStyle(ring).stroke !== "none");
        const { top, bottom } = e.getBoundingClientRect();
        return { name: window.called(e), outlined: Boolean(outlined), inSight: bottom > 0 && top < innerHeight };
      });
      if (!stop) break;
      if (!stop.outlined || !stop.inSight) silent.push(stop);
    }
    assert.deepEqual(silent, []);
    const walk = await page.evaluate(() => ({
      missed: window.stops.filter((e) => !window.visited.includes(e) && window.shown(e)).map(window.called),
      twice: window.visited.filter((e, i) => window.visited.indexOf(e) !== i).map(window.called),
    }));
    assert.deepEqual(walk, { missed: [], twice: [] });
    const pictures = await page.evaluate(() => window.visited.filter((e) => e.closest('[role="application"], [role="grid"]')).length);
    assert.equal(pictures, number === "07" ? 0 : 2, "Tab reaches both pictures");
  });
}

inBrowser("in the dark theme all examples have enough contrast", { colorScheme: "dark", bypassCSP: true }, async (page) => {
  await open(page);
  await page.addScriptTag({ content: axe });
  for (const { name, text } of examples()) {
    await load(page, text);
    const found = await page.evaluate(async () => (await axe.run({ runOnly: ["color-contrast"] })).violations.flatMap((v) => v.nodes.map((n) => `${n.target.join(" ")} ${n.any[0]?.message}`)));
    assert.deepEqual(found.slice(0, 3), [], name);
  }
});

// Viénot, Brettel and Mollon's dichromats in the parameters of Machado, Oliveira and Fernandes (2009),
// at full strength, on linear sRGB.
const EYES = {
  usual: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

/** oklab converts a color to a space in which distances match perceived differences. */
function oklab(rgb, eyes) {
  const linear = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  const [r, g, b] = eyes.map((row) => Math.min(1, Math.max(0, row.reduce((sum, m, i) => sum + m * linear[i], 0))));
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s, 1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s, 0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s];
}

// Blocks along the two partitioned dimensions, and the least distance of neighbors. 0.02 is just visible.
const CUTS = [[2, 1, 0.3], [4, 1, 0.12], [8, 1, 0.045], [16, 1, 0.018], [2, 2, 0.15], [4, 2, 0.08], [8, 2, 0.025], [4, 4, 0.055], [8, 4, 0.025], [2, 8, 0.024]];

inBrowser("neighboring blocks differ in color, also with color blindness", { shared: true }, async (page) => {
  await open(page);
  for (const [rows, cols, least] of CUTS) {
    const axes = JSON.stringify([["a", rows], ["b", cols]]);
    await load(page, `{"meshfeed":1,"mesh":{"axes":${axes}},"arrays":{"x":{"shape":["B",${cols}],"dtype":"int8","spec":["a","b"]}},"batch":{"size":${rows}}}`);
    const colors = await page.evaluate(() => {
      const { blocks } = document.querySelector("layout-app").model;
      return Array.from({ length: blocks.total }, (_, b) => blocks.color(b).rgb);
    });
    for (const [vision, matrix] of Object.entries(EYES)) {
      const seen = colors.map((c) => oklab(c, matrix));
      const apart = (a, b) => Math.hypot(...seen[a].map((x, i) => x - seen[b][i]));
      for (let b = 0; b < rows * cols; b++) {
        const neighbors = [b % cols < cols - 1 ? b + 1 : -1, b + cols < rows * cols ? b + cols : -1].filter((n) => n >= 0);
        for (const n of neighbors) assert.ok(apart(b, n) >= least, `${rows} × ${cols} blocks, ${vision}: ${b} and ${n} are ${apart(b, n).toFixed(3)} apart`);
      }
    }
  }
});
