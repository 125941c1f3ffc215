// The programs that the page gives, without the page: its own modules, bundled for Node, and its core.

import { build } from "esbuild";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { dist, here } from "./browser.mjs";

const EXPORTS = `
export { Guest } from "./guest.js";
export { parse, text } from "./draft.js";
export { jaxCode } from "./jax-code.js";
export { goCode } from "./go-code.js";
`;

/** modules gives what the page's modules export. */
async function modules() {
  const out = await build({
    stdin: { contents: EXPORTS, resolveDir: join(here, "../src"), loader: "ts" },
    tsconfig: join(here, "../tsconfig.json"),
    bundle: true,
    format: "esm",
    target: "es2022",
    write: false,
  });
  return import(`data:text/javascript;base64,${Buffer.from(out.outputFiles[0].contents).toString("base64")}`);
}

/** programs gives for every document what the page makes of it: the canonical document, the report,
 * what a draft of it says, and the programs. */
export async function programs(cases) {
  const { Guest, parse, text, jaxCode, goCode } = await modules();
  const guest = new Guest(new WebAssembly.Module(readFileSync(join(dist, "hosted/meshfeed.wasm"))));
  return cases.map((c) => {
    const { document, report, error } = guest.describe(c.text);
    if (!document) throw new Error(`${c.name}: ${error.message}`);
    const draft = parse(document);
    return { name: c.name, document, report, again: guest.describe(text(draft)).document, jax: jaxCode(draft), go: goCode(draft, document) };
  });
}
