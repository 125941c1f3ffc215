// Starts the page: unpacks the layout core, opens the first document, and connects the tabs. Both cores are Go code
// compiled to WebAssembly. That of the tab "Strategy" is unpacked when the tab is opened first.

import type { Answers } from "./answers.js";
import { Core } from "./core.js";
import { LayoutApp } from "./layout-app.js";
import { Model } from "./model.js";
import { examples } from "./examples.js";
import { PageTabs } from "./page-tabs.js";
import type { Planner } from "./planner.js";
import { type Tab, tabOf, unpack } from "./share.js";
import { StrategyApp } from "./strategy-app.js";
import { FIRST, kindOf } from "./strategy-draft.js";
import { StrategyModel } from "./strategy-model.js";
import { setTheme, theme } from "./theme.js";

declare const WORKER: string; // the programs of the workers, inserted by the build
declare const PLANNER: string;

/** The page's own HTML, before any change, for saving the page. */
const source = `<!doctype html>\n${document.documentElement.outerHTML}`;

/** held returns the text of an element of the page that is not HTML: a document, or a
 * packed module. */
function held(id: string): string | null {
  return document.getElementById(id)?.textContent.trim() || null;
}

/** compiled returns a WebAssembly module: packed in the page, or a file beside it. */
async function compiled(packed: string | null, file: string): Promise<WebAssembly.Module> {
  if (!packed) return WebAssembly.compileStreaming(fetch(file));
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compile(await new Response(stream).arrayBuffer());
}

/** firstLayout opens a layout, or else an example. If the layout is unusable, it also returns the reason. */
async function firstLayout(text: () => Promise<string | null>): Promise<[Model, string]> {
  const module = await compiled(held("core"), "meshfeed.wasm");
  const example = examples[1]!;
  const [main, aside] = [new Core<Answers>(module, WORKER), new Core<Answers>(module, WORKER)];
  const start = (document: string | null): Promise<Model> => Model.open(main, aside, document ?? example.text, document === null ? example.title : "");
  try {
    return [await start(await text()), ""];
  } catch (cause) {
    return [await start(null), (cause as Error).message];
  }
}

/** The tabs of the page, and what they show. */
class Page {
  private readonly root = new PageTabs();
  private readonly layout = new LayoutApp();
  private readonly planner = held("strategy"); // the packed module
  private strategy: Promise<StrategyApp> | null = null;
  private opened: Promise<void> = Promise.resolve(); // links and files open one after the other, so the last one remains

  /** start opens the page's link, or else the document that the page holds, or else an example. */
  async start(): Promise<void> {
    setTheme(theme());
    const own = held("document");
    const tab = location.hash ? tabOf(location.hash) : own !== null && kindOf(own) === "strategy" ? "strategy" : "layout";
    const link = (): Promise<string | null> => unpack(location.hash).then((text) => text ?? (own !== null && (kindOf(own) ?? "layout") === tab ? own : null));
    [this.layout.model, this.layout.notice] = await firstLayout(tab === "layout" ? link : () => Promise.resolve(null));
    this.place(this.layout, "layout");
    this.root.addEventListener("select-tab", (e) => void this.select((e as CustomEvent<Tab>).detail));
    this.root.addEventListener("open-file", (e) => (this.opened = this.opened.then(() => this.openFile((e as CustomEvent<File>).detail))));
    this.root.addEventListener("open-layout", (e) => void this.openLayout((e as CustomEvent<string>).detail));
    addEventListener("keydown", (e) => void this.undo(e));
    addEventListener("hashchange", () => (this.opened = this.opened.then(() => this.openLink())));
    if (tab === "strategy") await this.showStrategy(link);
    document.body.replaceChildren(this.root);
  }

  private place(app: LayoutApp | StrategyApp, tab: Tab): void {
    app.source = source;
    app.slot = tab;
    this.root.append(app);
  }

  /** select shows a tab. A link without a document then names the tab. */
  private async select(tab: Tab): Promise<void> {
    if (!/v1=/.test(location.hash)) history.replaceState(null, "", tab === "strategy" ? "#strategy" : location.href.replace(/#.*/, ""));
    this.root.tab = tab;
    if (tab === "strategy") await this.startStrategy(() => Promise.resolve(null));
  }

  private async showStrategy(text: () => Promise<string | null>): Promise<void> {
    this.root.tab = "strategy";
    await this.startStrategy(text);
  }

  /** startStrategy unpacks the planner, unless that is done, and opens a document or the first example. */
  private startStrategy(text: () => Promise<string | null>): Promise<StrategyApp> {
    return (this.strategy ??= this.loadStrategy(text));
  }

  private async loadStrategy(text: () => Promise<string | null>): Promise<StrategyApp> {
    const module = await compiled(this.planner, "strategy.wasm");
    const core = new Core<Planner>(module, PLANNER);
    const app = new StrategyApp();
    try {
      app.model = await StrategyModel.open(core, (await text()) ?? FIRST);
    } catch (cause) {
      app.model = await StrategyModel.open(core, FIRST);
      app.notice = (cause as Error).message;
    }
    this.place(app, "strategy");
    return app;
  }

  /** openLink opens the document of the page's current link, or shows the tab that it names. */
  private async openLink(): Promise<void> {
    const tab = tabOf(location.hash);
    if (tab === "strategy") return this.openStrategyLink();
    this.root.tab = tab;
    try {
      const document = await unpack(location.hash);
      this.layout.notice = (document && (await this.layout.model.load(document))?.message) || "";
    } catch (cause) {
      this.layout.notice = (cause as Error).message;
    }
  }

  private async openStrategyLink(): Promise<void> {
    const first = this.strategy === null;
    await this.showStrategy(() => unpack(location.hash));
    if (first) return;
    const app = await this.strategy!;
    try {
      const document = await unpack(location.hash);
      if (document) await app.model.load(document);
      app.notice = "";
    } catch (cause) {
      app.notice = (cause as Error).message;
    }
  }

  /** openFile opens a file in the tab that it belongs to. A JSON file that belongs to neither stays in the open tab,
   * which reports it. */
  private async openFile(file: File): Promise<void> {
    const json = /\.json$/i.test(file.name);
    const text = json && file.size <= MOST_JSON ? await file.text() : "";
    const tab = kindOf(text) ?? (json ? this.root.tab : "layout");
    await this.select(tab);
    if (tab === "layout") return this.layout.take(file);
    const strategy = await this.strategy!;
    if (file.size > MOST_JSON) strategy.notice = `${file.name} is larger than 8 MiB, the limit for a strategy.`;
    else await strategy.take(file.name, text);
  }

  /** openLayout shows the layout of a strategy. */
  private async openLayout(text: string): Promise<void> {
    const error = await this.layout.model.load(text);
    this.layout.notice = error ? error.message : "This is the layout of the best strategy. Name the fields of your dataset in it.";
    await this.select("layout");
  }

  /** undo reverts an edit on Ctrl-Z. Inside an input the browser handles the key. */
  private async undo(e: KeyboardEvent): Promise<void> {
    if (e.key.toLowerCase() !== "z" || !(e.ctrlKey || e.metaKey) || e.shiftKey || e.altKey) return;
    const at = e.composedPath()[0];
    if ((at instanceof HTMLInputElement && at.type !== "range") || at instanceof HTMLTextAreaElement) return;
    e.preventDefault();
    await (this.root.tab === "strategy" ? (await this.strategy)?.model.undo() : this.layout.model.undo());
  }
}

/** The most bytes of a JSON file that is examined for its kind. */
const MOST_JSON = 8 << 20;

new Page().start().catch((cause: unknown) => {
  document.body.textContent = `The page could not start: ${cause instanceof Error ? cause.message : String(cause)}`;
});
