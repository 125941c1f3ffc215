// The generated programs and commands print the report that the tab "Strategy" shows.
//
//   PYTHON  an interpreter with meshfeed; default: the one in .venv

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { dist, here, strategies } from "./browser.mjs";
import { modules } from "./modules.mjs";

const root = join(here, "../../..");
const python = resolve(root, process.env.PYTHON ?? ".venv/bin/python");

const one = (model, more = {}) => ({ meshfeed: 1, model, training: { batch: 64 }, cluster: { device: "h100-80", devices: 8 }, ...more });
const OWN = {
  flags: one({ preset: "llama3-8b", transformer: { sequence: 4096 } }, { search: { keep: 5 }, cluster: { device: "h100-80", devices: 16, per_node: 4 } }),
  transformer: one({ transformer: { layers: 4, hidden: 512, heads: 8, ffn: 2048, vocab: 1000, sequence: 256, gated: true, experts: { count: 4, active: 2, capacity: 1.25 } } }, { training: { tokens: 65536, precision: { master: null }, overlap: { tensor: true }, efficiency: [0.3, 0.5] }, search: { axes: { tensor: [1, 2] }, zero: [0] }, input: { rows_per_second: 100 } }),
  tree: one({ tree: { 2: { shape: [4096, 512], dtype: "bfloat16", spec: ["fsdp", null] }, "a`b": { shape: [3], dtype: "float32" } } }),
  processes: one({ tree: { "a\"\\b": { shape: [8], dtype: "float32" } } }, { input: { rows_per_second: 100, processes: 2 } }),
};

const { Planner, read, strategyCommand, strategyGo, strategyPython } = await modules("planner", "json", "strategy-code");
const planner = new Planner(new WebAssembly.Module(readFileSync(join(dist, "hosted/strategy.wasm"))));

const cases = [...strategies(), ...Object.entries(OWN).map(([name, document]) => ({ name, text: JSON.stringify(document) }))].map(({ name, text }) => {
  const document = read(text);
  const { report, text: table, error } = planner.advise(text);
  assert.equal(error, null, name);
  return { name, text, report, table, command: strategyCommand(document), go: strategyGo(document), python: strategyPython(document) };
});

/** folder creates a folder that is removed after the test. */
function folder(t) {
  const made = mkdtempSync(join(tmpdir(), "meshfeed-"));
  t.after(() => rmSync(made, { recursive: true }));
  return made;
}

/** run returns the output of a command. */
function run(command, args, options) {
  const done = spawnSync(command, args, { encoding: "utf8", maxBuffer: 1 << 28, ...options });
  if (done.error || done.stderr) assert.fail(`${command} ${args.join(" ")}: ${done.error?.message ?? done.stderr}`);
  return done.stdout;
}

const RUN = `import json
with open("programs.json") as f:
    programs = json.load(f)
for program in programs:
    space = {"print": lambda advice: None}
    exec(program, space)
    print(json.dumps(space["advice"].report))
`;

test("the Python programs have the page's reports", (t) => {
  const made = folder(t);
  writeFileSync(join(made, "programs.json"), JSON.stringify(cases.map((c) => c.python)));
  const reports = run(python, ["-W", "error", "-c", RUN], { cwd: made }).trim().split("\n");
  for (const [i, { name, report }] of cases.entries()) assert.deepEqual(JSON.parse(reports[i]), report, name);
  for (const { name, python } of cases) assert.ok(python.split("\n").every((line) => line.length <= 88), `${name} has a long line:\n${python}`);
});

test("the commands print the page's table", (t) => {
  const made = folder(t);
  assert.equal(cases.find((c) => c.name === "flags").command, "meshfeed advise llama3-8b --devices 16 --device h100-80 --per-node 4 --batch 64 --sequence 4096 --keep 5\n");
  assert.ok(cases.find((c) => c.name === "tree").command.endsWith("meshfeed advise strategy.json\n"));
  for (const { name, text, table, command } of cases) {
    writeFileSync(join(made, "strategy.json"), text);
    const args = command.trim().split("\n").at(-1).split(" ").slice(1);
    assert.equal(run(join(root, "python/meshfeed/_bin/meshfeed"), args, { cwd: made }), table, name);
  }
});

test("a Go program prints the page's table", (t) => {
  const made = folder(t);
  const mod = readFileSync(join(root, "go.mod"), "utf8").replace(/^module .*/, `module example.com/programs\n\nrequire github.com/meshfeed/meshfeed v0.0.0\n\nreplace github.com/meshfeed/meshfeed => ${root}`);
  writeFileSync(join(made, "go.mod"), mod);
  cpSync(join(root, "go.sum"), join(made, "go.sum"));
  for (const { name, table, go } of cases.filter((c) => ["tree", "transformer"].includes(c.name))) {
    writeFileSync(join(made, "main.go"), go);
    assert.equal(run("gofmt", ["-l", "."], { cwd: made }), "", "gofmt changes this program");
    assert.equal(run("go", ["run", "-mod=mod", "."], { cwd: made }), table, name);
  }
});
