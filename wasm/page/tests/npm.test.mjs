// The npm package: packed, unpacked, and used as its README says, in Node.js, by TypeScript and in Chromium.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { dist, examples, here, inBrowser, layouts } from "./browser.mjs";

const readme = readFileSync(join(here, "../../npm/README.md"), "utf8");
const printed = (language) => [...readme.matchAll(new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, "gs"))].map(([, text]) => text);
const [check, reads] = printed("js");

// What npm publishes, installed in a project without anything else.
const project = mkdtempSync(join(tmpdir(), "meshfeed npm "));
after(() => rmSync(project, { recursive: true }));
const npm = join(dirname(process.execPath), "npm");
const [{ filename }] = JSON.parse(execFileSync(npm, ["pack", "--json", "--offline", "--pack-destination", project], { cwd: join(dist, "npm"), encoding: "utf8" }));
const installed = join(project, "node_modules/meshfeed");
mkdirSync(installed, { recursive: true });
execFileSync("tar", ["-xzf", filename, "-C", installed, "--strip-components=1"], { cwd: project });
const { load } = await import(join(installed, "index.js"));

/** run runs a program of the README. */
function run(name, program, ...args) {
  writeFileSync(join(project, name), program);
  const { status, stdout, stderr } = spawnSync(process.execPath, [name, ...args], { cwd: project, encoding: "utf8" });
  assert.equal(stderr, "");
  return { status, stdout };
}

test("the package has a version, licenses and no dependency", () => {
  const about = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
  assert.equal(about.version, readFileSync(join(here, "../../../VERSION"), "utf8").trim());
  assert.equal(about.dependencies, undefined);
  assert.match(readFileSync(join(installed, "LICENSE"), "utf8"), /Apache License/);
  assert.match(readFileSync(join(installed, "THIRD_PARTY_LICENSES"), "utf8"), /The Go Authors/);
});

test("the program for continuous integration finds a layout that does not divide", () => {
  const [good, bad] = ["01-data-parallel.json", "07-indivisible-batch.json"].map((name) => join(layouts, name));
  const broken = join(project, "broken.json");
  writeFileSync(broken, '{"meshfeed": 2}');
  assert.equal(run("check.mjs", check, good).status, 0);
  const { status, stdout } = run("check.mjs", check, bad, broken);
  assert.equal(status, 1);
  assert.match(stdout, /07-indivisible-batch\.json: error: dimension 0 of array "image" .*, but 100 % 8 = 4; use a batch of 96 or 104\n/);
  assert.match(stdout, /broken\.json: error: \/meshfeed: the document has version 2, but this release reads version 1\n/);
});

test("the second program prints the rows of each process", () => {
  const { status, stdout } = run("reads.mjs", reads);
  assert.equal(status, 0);
  assert.match(stdout, /^process 0 reads the rows 0 to 1: 512 bytes a step\nprocess 1 reads the rows 2 to 3: 512 bytes a step\n/);
});

test("a caller may pass the module, and gets the same answers", async () => {
  const bytes = readFileSync(join(installed, "meshfeed.wasm"));
  const [own, given, compiled] = await Promise.all([load(), load(bytes), load(await WebAssembly.compile(bytes))]);
  for (const { text } of examples()) {
    const answer = own.describe(text);
    assert.deepEqual(given.describe(new TextEncoder().encode(text)), answer);
    assert.deepEqual(compiled.describe(text), answer);
  }
  assert.deepEqual(own.samples({ order: "sequential.1", seed: 0, records: 10, epoch: 0, position: 7, count: 5 }), [7, 8, 9]);
  assert.throws(() => own.samples({ order: "absent.1", seed: 0, records: 1, epoch: 0, position: 0, count: 1 }), /absent\.1/);
  const file = readFileSync(join(here, "../../../internal/arrowmeta/testdata/fixed.arrow"));
  assert.deepEqual(own.schema(file, file.length).fields.map((f) => f.name), ["image", "tensor", "bytes", "holes"]);
});

test("the types hold in a strict project", () => {
  writeFileSync(
    join(project, "typed.mts"),
    `import { load, type Described, type Problem, type Validator } from "meshfeed";
     const validator: Validator = await load();
     const { report, error }: Described = validator.describe(new Uint8Array());
     const problems: Problem[] = report?.problems ?? [];
     export const total: number | null | undefined = report?.totals.batch_bytes;
     // @ts-expect-error: a document is text or bytes
     validator.describe(7);
     console.log(problems.length, error?.message);\n`,
  );
  const tsc = join(here, "../node_modules/typescript/bin/tsc");
  const flags = ["--strict", "--noEmit", "--target", "ES2022", "--module", "nodenext", "--lib", "ES2023,DOM"];
  const { status, stdout } = spawnSync(process.execPath, [tsc, ...flags, "typed.mts"], { cwd: project, encoding: "utf8" });
  assert.equal(status, 0, stdout);
});

inBrowser("the package works in a browser, from a web server", { online: true, expected: /status of 404/ }, async (page, t) => {
  const files = {
    "/": ["text/html", `<!doctype html><link rel="icon" href="data:,"><body></body>${printed("html")[0]}`],
    "/meshfeed/index.js": ["text/javascript", readFileSync(join(installed, "index.js"))],
    "/meshfeed/meshfeed.wasm": ["application/wasm", readFileSync(join(installed, "meshfeed.wasm"))],
  };
  const policy = "default-src 'none'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; connect-src 'self'; img-src data:";
  const server = createServer(({ url }, response) => {
    if (!files[url]) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": files[url][0], "content-security-policy": policy }).end(files[url][1]);
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  t.after(() => server.close());
  await page.goto(`http://localhost:${server.address().port}/`);
  await page.getByText("a layout document needs the key").waitFor();
  delete files["/meshfeed/meshfeed.wasm"];
  const missing = await page.evaluate(async () => {
    const { load } = await import("/meshfeed/index.js");
    return load().catch((cause) => cause.message);
  });
  assert.match(missing, /meshfeed\.wasm is not there: the server answered 404; publish meshfeed\.wasm beside index\.js$/);
});
