// Starts the page: unpacks the layout core and shows the layout that came along.

import { Core } from "./core.js";
import { LayoutApp } from "./layout-app.js";
import { Model } from "./model.js";
import { examples } from "./examples.js";
import { unpack } from "./share.js";
import { setTheme, theme } from "./theme.js";

/** core gives the module: from inside the page, or beside it. */
async function core(): Promise<WebAssembly.Module> {
  const inside = document.getElementById("core")?.textContent.trim();
  if (!inside) return WebAssembly.compileStreaming(fetch("meshfeed.wasm"));
  const packed = Uint8Array.from(atob(inside), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compile(await new Response(stream).arrayBuffer());
}

/** first gives the layout to begin with, and why another one could not be used. */
async function first(module: WebAssembly.Module): Promise<[Model, string]> {
  const example = examples()[1]!;
  const [main, aside] = [new Core(module), new Core(module)];
  const start = (document: string | null): Promise<Model> => Model.open(main, aside, document ?? example.text, document === null ? example.title : "");
  const own = document.getElementById("layout")?.textContent.trim() || null;
  try {
    return [await start((await unpack(location.hash)) ?? own), ""];
  } catch (cause) {
    return [await start(location.hash ? own : null), String((cause as Error).message)];
  }
}

/** follow opens the layout of the link that the page stands at. */
async function follow(app: LayoutApp): Promise<void> {
  try {
    const document = await unpack(location.hash);
    app.notice = (document && (await app.model.load(document))?.message) || "";
  } catch (cause) {
    app.notice = (cause as Error).message;
  }
}

async function start(): Promise<void> {
  const source = `<!doctype html>\n${document.documentElement.outerHTML}`;
  setTheme(theme());
  const app = new LayoutApp();
  [app.model, app.notice] = await first(await core());
  app.source = source;
  document.body.replaceChildren(app);
  addEventListener("keydown", (e) => undo(e, app));
  let opened = Promise.resolve(); // one after the other, so that the last one is what stays
  addEventListener("hashchange", () => (opened = opened.then(() => follow(app))));
}

/** undo takes an edit back by Ctrl-Z. Inside an input the key is the browser's. */
function undo(e: KeyboardEvent, app: LayoutApp): void {
  if (e.key.toLowerCase() !== "z" || !(e.ctrlKey || e.metaKey) || e.shiftKey || e.altKey) return;
  const at = e.composedPath()[0];
  if (at instanceof HTMLInputElement || at instanceof HTMLTextAreaElement) return;
  e.preventDefault();
  void app.model.undo();
}

start().catch((cause: unknown) => {
  document.body.textContent = `The page could not start: ${cause instanceof Error ? cause.message : String(cause)}`;
});
