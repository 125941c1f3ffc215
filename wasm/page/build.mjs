// Builds the page: dist/layout.html, one file that works from file://, and dist/hosted/, a folder for a web server. Builds
// dist/npm/, which npm pack makes into the package of the validator.
// Checks the types first. Does nothing if the inputs have not changed since the last build.
// usage: node build.mjs MESHFEED.wasm STRATEGY.wasm [DIST]

import { build } from "esbuild";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const [wasm, strategy, dist = join(here, "dist")] = process.argv.slice(2);

const layouts = join(here, "../../docs/layouts");
const strategies = join(here, "../../docs/strategies");
const npm = join(here, "../npm");
const version = join(here, "../../VERSION");
const licenses = ["LICENSE", "THIRD_PARTY_LICENSES"].map((name) => join(here, "../..", name));
const tsc = join(here, "node_modules/typescript/bin/tsc");

/** inputs returns a digest of all files that the page is built from. */
function inputs() {
  const list = [wasm, strategy, version, ...licenses, ...["build.mjs", "package-lock.json", "tsconfig.json"].map((f) => join(here, f))];
  for (const folder of [join(here, "src"), npm, layouts, strategies]) list.push(...readdirSync(folder).sort().map((f) => join(folder, f)));
  const hash = createHash("sha256");
  for (const file of list) hash.update(`${file}\0`).update(readFileSync(file));
  return hash.digest("hex");
}

const made = join(dist, ".inputs");
const now = inputs();
if (existsSync(made) && readFileSync(made, "utf8") === now) process.exit(0);
execFileSync(process.execPath, [tsc, "--noEmit", "-p", here], { stdio: "inherit" });

/** examples lists the documents of a folder. */
function examples(folder) {
  return readdirSync(folder)
    .filter((f) => f.endsWith(".json"))
    .sort()
    .map((f) => ({ name: f.slice(0, -5), title: titleOf(f), text: readFileSync(join(folder, f), "utf8") }));
}

/** NAMES are words of titles that are not written in lower case. */
const NAMES = ["ResNet", "GPT", "AdamW", "GPUs", "GB", "TPU", "MoE"];

/** titleOf turns 03-replicas-in-a-process.json into a title. */
function titleOf(file) {
  const plain = file.replace(/^\d+-/, "").replace(/\.json$/, "").replaceAll("-", " ");
  const words = plain.replace(/\b[a-z]+\b/g, (word) => NAMES.find((name) => name.toLowerCase() === word) ?? word).replace(/\b(\d+)b\b/g, "$1B");
  return words[0].toUpperCase() + words.slice(1);
}

/** packages has the version of each npm package in the bundles, for tools/licenses.py and tools/sbom.py. */
const packages = {};

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
    metafile: true,
    legalComments: "eof",
    tsconfig: join(here, "tsconfig.json"),
    define,
  });
  for (const input of Object.keys(out.metafile.inputs)) {
    const name = input.match(/node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1];
    if (name) packages[name] = JSON.parse(readFileSync(join(here, "node_modules", name, "package.json"), "utf8")).version;
  }
  return out.outputFiles[0].text;
}

const worker = await bundle("worker.ts", {});
const planner = await bundle("planner-worker.ts", {});
const main = await bundle("main.ts", {
  EXAMPLES: JSON.stringify(examples(layouts)),
  STRATEGIES: JSON.stringify(examples(strategies)),
  WORKER: JSON.stringify(worker),
  PLANNER: JSON.stringify(planner),
});
const script = main.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
const template = readFileSync(join(here, "src/index.html"), "utf8");

/** packed returns an element that holds a compressed WebAssembly module. */
function packed(id, file) {
  return `<script type="application/octet-stream" id="${id}">${gzipSync(readFileSync(file), { level: 9 }).toString("base64")}</script>`;
}

/** page fills in the template. The values come from functions, because replace would expand a "$" in a string. */
function page(csp, core, planner, code) {
  return template
    .replace("%CSP%", () => csp)
    .replace("%DOCUMENT%", "")
    .replace("%CORE%", () => core)
    .replace("%STRATEGY%", () => planner)
    .replace("<script>%SCRIPT%</script>", () => code);
}

const rules = "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; worker-src blob:; base-uri 'none'; form-action 'none'";
rmSync(dist, { recursive: true, force: true });
mkdirSync(join(dist, "hosted"), { recursive: true });
writeFileSync(
  join(dist, "layout.html"),
  page(`${rules}; script-src 'unsafe-inline' 'wasm-unsafe-eval'`, packed("core", wasm), packed("strategy", strategy), `<script>${script}</script>`),
);
const name = `page-${createHash("sha256").update(script).digest("hex").slice(0, 12)}.js`;
writeFileSync(join(dist, "hosted", name), script);
writeFileSync(
  join(dist, "hosted", "index.html"),
  page(`${rules}; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'`, "", "", `<script src="${name}"></script>`),
);
writeFileSync(join(dist, "packages.json"), `${JSON.stringify(packages, Object.keys(packages).sort())}\n`);
copyFileSync(wasm, join(dist, "hosted", "meshfeed.wasm"));
copyFileSync(strategy, join(dist, "hosted", "strategy.wasm"));

/** writePackage writes the folder of the npm package. */
async function writePackage(folder) {
  await build({
    entryPoints: [join(here, "src/validator.ts")],
    outfile: join(folder, "index.js"),
    bundle: true,
    charset: "utf8",
    format: "esm",
    target: "es2022",
    tsconfig: join(here, "tsconfig.json"),
  });
  execFileSync(process.execPath, [tsc, "-p", npm, "--outDir", join(folder, "types")], { stdio: "inherit" });
  const about = { ...JSON.parse(readFileSync(join(npm, "package.json"), "utf8")), version: readFileSync(version, "utf8").trim() };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(about, null, 2)}\n`);
  copyFileSync(join(npm, "README.md"), join(folder, "README.md"));
  for (const file of licenses) copyFileSync(file, join(folder, basename(file)));
  copyFileSync(wasm, join(folder, "meshfeed.wasm"));
}

await writePackage(join(dist, "npm"));
writeFileSync(made, now);
