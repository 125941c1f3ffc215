// The browser of the tests: the system's Chromium, started once for the test files of a process. A new context takes half a second of
// processor time, and loading the page as much, so tests use a page again where that changes nothing of what they check.
//
//   MESHFEED_CHROMIUM  its path, if it is not one of the usual paths
//   MESHFEED_STRICT    1: a missing browser fails the tests instead of skipping them

import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const here = dirname(fileURLToPath(import.meta.url));
export const dist = process.env.MESHFEED_PAGE ?? join(here, "../dist");
export const single = `file://${join(dist, "layout.html")}`;
export const layouts = join(here, "../../../docs/layouts");
const strategyFolder = join(here, "../../../docs/strategies");

const usual = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const path = process.env.MESHFEED_CHROMIUM ?? usual.find((p) => existsSync(p));
const strict = process.env.MESHFEED_STRICT === "1";

let browser;
let common = null; // the page of tests without options of their own
after(() => browser?.close());

/** documents lists the documents of a folder: name and text. */
function documents(folder) {
  return readdirSync(folder)
    .filter((f) => f.endsWith(".json"))
    .sort()
    .map((f) => ({ name: f.slice(0, -5), text: readFileSync(join(folder, f), "utf8") }));
}

/** examples lists the example layouts. */
export const examples = () => documents(layouts);

/** strategies lists the example strategies. */
export const strategies = () => documents(strategyFolder);

/** example returns the text of the example with a number, such as "02". */
export const example = (number) => examples().find((x) => x.name.startsWith(number)).text;

/** inBrowser runs a test with an empty page that has no network. Console output, and every request other than
 * for the page itself, fails the test, except for what the option expected matches. With the option immediate, actions do not wait for the answers of the cores.
 * Tests with the option shared begin with open or openStrategy, which keep what the test before has loaded. Any other option is one of a context,
 * which the test then has for itself. */
export function inBrowser(name, options, run) {
  if (typeof options === "function") [options, run] = [{}, options];
  const skip = !path && !strict ? "NOT TESTED: there is no Chromium; install one, or name it by MESHFEED_CHROMIUM" : false;
  test(name, { skip, timeout: 300_000 }, async (t) => {
    const { expected, immediate = false, shared = false, ...context } = options;
    const alone = Object.keys(context).length > 0;
    const own = alone ? await newPage(context) : (common ??= await newPage({}));
    let again = false; // whether the next test may use the page
    try {
      if (!(shared && own.page.shared)) await clear(own);
      await own.page.mouse.move(0, 0);
      Object.assign(own.page, { immediate, shared });
      await run(own.page, t);
      const unexpected = own.messages.filter((m) => !expected?.test(m));
      assert.deepEqual(unexpected, [], "the page wrote to the console, or sent a request");
      again = !alone && !own.page.patched;
    } finally {
      if (!again) await own.page.context().close();
      if (!again && !alone) common = null;
    }
  });
}

/** clear makes a page empty, and forgets what earlier tests stored and wrote to the console. */
async function clear({ page, messages }) {
  await page.evaluate(() => location.protocol === "file:" && localStorage.clear());
  await page.goto("about:blank");
  messages.length = 0;
}

/** newPage returns an empty page in a context of its own, and the list of what it writes to the console. */
async function newPage({ online, ...options }) {
  browser ??= await chromium.launch({ executablePath: path, args: ["--no-sandbox"] });
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, offline: !online, ...options });
  const messages = [];
  context.on("console", (m) => messages.push(`${m.type()}: ${m.text()}`));
  context.on("weberror", (e) => messages.push(`error: ${e.error().stack}`));
  context.on("request", (r) => /^(file|data|blob):/.test(r.url()) || online || messages.push(`request: ${r.url()}`));
  const page = await context.newPage();
  const addInitScript = page.addInitScript.bind(page);
  page.addInitScript = (...args) => {
    page.patched = true; // for good
    return addInitScript(...args);
  };
  waitAfterActions(page);
  return { page, messages };
}

/** waitAfterActions makes every action of a page wait until the page shows the answers of its cores, unless the page is immediate. */
function waitAfterActions(page) {
  const after = (object, name) => {
    const usual = object[name].bind(object);
    object[name] = async (...args) => {
      const result = await usual(...args);
      if (!page.immediate) await settled(page).catch(() => {}); // where the action leaves the page
      return result;
    };
  };
  for (const name of ["press", "up"]) after(page.keyboard, name);
  for (const name of ["click", "up", "move", "wheel"]) after(page.mouse, name);
  const prototype = Object.getPrototypeOf(page.locator("body"));
  if (prototype.waits) return;
  prototype.waits = true;
  for (const name of ["click", "fill", "press", "tap", "selectOption", "setInputFiles", "focus", "dragTo", "hover"]) {
    const usual = prototype[name];
    prototype[name] = async function (...args) {
      const result = await usual.apply(this, args);
      if (!this.page().immediate) await settled(this.page()).catch(() => {});
      return result;
    };
  }
}

/** settled waits until all tabs of the page show the answers of their cores. */
export const settled = (page) =>
  page.evaluate(async () => {
    for (const app of document.querySelectorAll("layout-app, strategy-app")) {
      await app.model.settled();
      await app.updateComplete;
    }
  });

/** openStrategy shows the tab "Strategy", optionally with a document. If a shared page shows the tab, it gets a new
 * element and a new model of the document, which ask the same worker. */
export async function openStrategy(page, text, url = single) {
  if (page.shared && (await page.locator("strategy-app").count()) > 0) return renewStrategy(page, text);
  await page.goto(`${url}#strategy`);
  await page.locator("strategy-app").waitFor();
  if (text) await loadStrategy(page, text);
}

/** loadStrategy opens a document in the tab "Strategy". */
export const loadStrategy = (page, text) =>
  page.evaluate(async (text) => {
    const app = document.querySelector("strategy-app");
    await app.model.load(text);
    await app.updateComplete;
  }, text);

const renewStrategy = (page, text) =>
  page.evaluate(async (text) => {
    const old = document.querySelector("strategy-app");
    const app = new old.constructor();
    [app.model, app.source, app.slot] = [await old.model.constructor.open(old.model.core, text), old.source, old.slot];
    old.replaceWith(app);
    await app.updateComplete;
  }, text);

/** patchWorkers prepends a program to the program of the page's workers. The program has a
 * function replacements(exports, asked), which returns other functions for some exports of
 * the core. asked(n) is the text of a question of n bytes. */
export async function patchWorkers(page, program) {
  await page.addInitScript((program) => {
    const usual = URL.createObjectURL;
    const front = `${program};
      const Usual = WebAssembly.Instance;
      WebAssembly.Instance = function (...args) {
        const { exports } = new Usual(...args);
        let at = 0;
        const mf_input = (n) => (at = exports.mf_input(n));
        const asked = (n) => new TextDecoder().decode(new Uint8Array(exports.memory.buffer, at, n));
        return { exports: { ...exports, mf_input, ...replacements(exports, asked) } };
      };\n`;
    URL.createObjectURL = (blob) => usual.call(URL, blob.type === "text/javascript" ? new Blob([front, blob], { type: blob.type }) : blob);
  }, program);
}

/** type enters a text into an input and leaves the input. */
export async function type(input, value) {
  await input.fill(value);
  await input.press("Enter");
}

/** canonical returns the canonical document of the layout that is shown. */
export const canonical = (page) => page.evaluate(() => document.querySelector("layout-app").model.reply.document);

/** focused returns the focused element. */
export const focused = (page) =>
  page.evaluateHandle(() => {
    let e = document.activeElement;
    while (e.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
    return e;
  });

/** open shows the page, optionally with a layout. If a shared page shows a layout, it gets a new element and a new model
 * of the given one, which ask the same workers. */
export async function open(page, text, url = single) {
  if (page.shared && text && (await page.locator("layout-app").count()) > 0) return renewLayout(page, text);
  await page.goto(url);
  await page.locator("layout-app").waitFor();
  if (text) await load(page, text);
}

const renewLayout = (page, text) =>
  page.evaluate(async (text) => {
    const old = document.querySelector("layout-app");
    const { core, aside, constructor } = old.model;
    const app = new old.constructor();
    [app.model, app.source, app.slot] = [await constructor.open(core, aside, text), old.source, old.slot];
    old.replaceWith(app);
    await app.updateComplete;
  }, text);

/** load opens a layout in an open page. */
export async function load(page, text) {
  const error = await page.evaluate(async (text) => {
    const app = document.querySelector("layout-app");
    const error = await app.model.load(text);
    await app.updateComplete;
    return error;
  }, text);
  assert.equal(error, null);
}

/** serve starts a server of the hosted folder and returns its address. The server ends with the test. */
export async function serve(t) {
  const types = { html: "text/html", js: "text/javascript", wasm: "application/wasm" };
  const server = createServer((request, response) => {
    const name = new URL(request.url, "http://x").pathname.slice(1) || "index.html";
    const file = join(dist, "hosted", name);
    if (!/^[\w.-]+$/.test(name) || !existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": types[name.split(".").pop()] }).end(readFileSync(file));
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  t.after(() => server.close());
  return `http://localhost:${server.address().port}/`;
}

/** golden compares a text with a snapshot file; REWRITE=1 writes the file. */
export function golden(name, text) {
  const file = join(here, "snapshots", name);
  if (process.env.REWRITE === "1") return writeFileSync(file, `${text}\n`);
  assert.equal(`${text}\n`, readFileSync(file, "utf8"), `${file} differs; read what changed, then REWRITE=1`);
}
