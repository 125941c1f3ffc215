// Loads the page's modules in Node, without a page.

import { build } from "esbuild";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { dist, here } from "./browser.mjs";

/** modules returns the exports of some modules of the page. */
export async function modules(...names) {
  const folder = mkdtempSync(join(tmpdir(), "meshfeed-"));
  await build({
    stdin: { contents: names.map((name) => `export * from "./${name}.js";`).join("\n"), resolveDir: join(here, "../src"), loader: "ts" },
    tsconfig: join(here, "../tsconfig.json"),
    bundle: true,
    format: "esm",
    target: "es2022",
    outfile: join(folder, "modules.mjs"),
  });
  try {
    return await import(pathToFileURL(join(folder, "modules.mjs")));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** core starts the page's layout core. */
export function core(Guest) {
  return new Guest(new WebAssembly.Module(readFileSync(join(dist, "hosted/meshfeed.wasm"))));
}
