// Starts the page: unpacks the layout core, the validator in WebAssembly, and opens the first layout.

import { Core } from "./core.js";
import { LayoutApp } from "./layout-app.js";
import { Model } from "./model.js";
import { examples } from "./examples.js";
import { unpack } from "./share.js";
import { setTheme, theme } from "./theme.js";

/** core returns the WebAssembly module: embedded in the page, or a file beside it. */
async function core(): Promise<WebAssembly.Module> {
  const inside = document.getElementById("core")?.textContent.trim();
  if (!inside) return WebAssembly.compileStreaming(fetch("meshfeed.wasm"));
  const packed = Uint8Array.from(atob(inside), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compile(await new Response(stream).arrayBuffer());
}

/** first returns the initial layout. If the link's layout is unusable, it also returns the reason. */
async function first(module: WebAssembly.Module): Promise<[Model, string]> {
  const example = examples[1]!;
  const [main, aside] = [new Core(module), new Core(module)];
  const start = (document: string | null): Promise<Model> => Model.open(main, aside, document ?? example.text, document === null ? example.title : "");
  const own = document.getElementById("layout")?.textContent.trim() || null;
  try {
    return [await start((await unpack(location.hash)) ?? own), ""];
  } catch (cause) {
    return [await start(location.hash ? own : null), (cause as Error).message];
  }
}

/** openLink opens the layout of the page's current link. */
async function openLink(app: LayoutApp): Promise<void> {
  try {
    const document = await unpack(location.hash);
    app.notice = (document && (await app.model.load(document))?.message) || "";
  } catch (cause) {
    app.notice = (cause as Error).message;
  }
}

async function start(): Promise<void> {
  const source = `<!doctype html>\n${document.documentElement.outerHTML}`; // before any change, for saving the page
  setTheme(theme());
  const app = new LayoutApp();
  [app.model, app.notice] = await first(await core());
  app.source = source;
  document.body.replaceChildren(app);
  addEventListener("keydown", (e) => undo(e, app));
  let opened = Promise.resolve(); // links open one after the other, so the last one remains
  addEventListener("hashchange", () => (opened = opened.then(() => openLink(app))));
}

/** undo reverts an edit on Ctrl-Z. Inside an input the browser handles the key. */
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
