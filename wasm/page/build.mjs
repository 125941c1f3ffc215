// Builds the page: dist/layout.html, one file that works from file://, and dist/hosted/, a folder for a web server.
// Checks the types first. Does nothing if the inputs have not changed since the last build.
// usage: node build.mjs MESHFEED.wasm [DIST]

import { build } from "esbuild";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const [wasm = join(here, "meshfeed.wasm"), dist = join(here, "dist")] = process.argv.slice(2);

const layouts = join(here, "../../docs/layouts");

/** inputs returns a digest of all files that the page is built from. */
function inputs() {
  const list = [wasm, ...["build.mjs", "package-lock.json", "tsconfig.json"].map((f) => join(here, f))];
  for (const folder of [join(here, "src"), layouts]) list.push(...readdirSync(folder).sort().map((f) => join(folder, f)));
  const hash = createHash("sha256");
  for (const file of list) hash.update(`${file}\0`).update(readFileSync(file));
  return hash.digest("hex");
}

const made = join(dist, ".inputs");
const now = inputs();
if (existsSync(made) && readFileSync(made, "utf8") === now) process.exit(0);
execFileSync(process.execPath, [join(here, "node_modules/typescript/bin/tsc"), "--noEmit", "-p", here], { stdio: "inherit" });

const examples = readdirSync(layouts)
  .filter((f) => f.endsWith(".json"))
  .sort()
  .map((f) => ({ name: f.slice(0, -5), title: titleOf(f), text: readFileSync(join(layouts, f), "utf8") }));

/** titleOf turns 03-replicas-in-a-process.json into a title. */
function titleOf(file) {
  const words = file.replace(/^\d+-/, "").replace(/\.json$/, "").replaceAll("-", " ");
  return words[0].toUpperCase() + words.slice(1);
}

/** bundle returns the text of a program with everything that it imports. */
async function bundle(entry, define) {
  const out = await build({
    entryPoints: [join(here, "src", entry)],
    bundle: true,
    minify: true,
    charset: "utf8",
    format: "iife",
    target: "es2022",
    write: false,
    legalComments: "none",
    tsconfig: join(here, "tsconfig.json"),
    define,
  });
  return out.outputFiles[0].text;
}

const worker = await bundle("worker.ts", {});
const main = await bundle("main.ts", { EXAMPLES: JSON.stringify(examples), WORKER: JSON.stringify(worker) });
const script = main.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
const template = readFileSync(join(here, "src/index.html"), "utf8");
const module = readFileSync(wasm);

/** page fills in the template. The values come from functions, because replace would expand a "$" in a string. */
function page(csp, core, code) {
  return template
    .replace("%CSP%", () => csp)
    .replace("%LAYOUT%", "")
    .replace("%CORE%", () => core)
    .replace("<script>%SCRIPT%</script>", () => code);
}

const rules = "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; worker-src blob:; base-uri 'none'; form-action 'none'";
rmSync(dist, { recursive: true, force: true });
mkdirSync(join(dist, "hosted"), { recursive: true });
const packed = gzipSync(module, { level: 9 }).toString("base64");
writeFileSync(
  join(dist, "layout.html"),
  page(`${rules}; script-src 'unsafe-inline' 'wasm-unsafe-eval'`, `<script type="application/octet-stream" id="core">${packed}</script>`, `<script>${script}</script>`),
);
const name = `page-${createHash("sha256").update(script).digest("hex").slice(0, 12)}.js`;
writeFileSync(join(dist, "hosted", name), script);
writeFileSync(
  join(dist, "hosted", "index.html"),
  page(`${rules}; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'`, "", `<script src="${name}"></script>`),
);
copyFileSync(wasm, join(dist, "hosted", "meshfeed.wasm"));
writeFileSync(made, now);
