// The generated programs match the page: JAX programs run, Go programs compile and run, and their layouts
// equal the page's.
//
//   PYTHON  an interpreter with meshfeed and JAX; default: the one in .venv

import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { examples, here } from "./browser.mjs";
import { core, modules } from "./modules.mjs";

const root = join(here, "../../..");
const python = resolve(root, process.env.PYTHON ?? ".venv/bin/python");
const hostile = JSON.parse(readFileSync(join(root, "core/layout/document/testdata/documents.json"), "utf8"));

/** scattered returns devices in an order that does not follow from axes. */
const scattered = (n, processes) => Array.from({ length: n }, (_, i) => ((i * 37 + 11) % n)).map((id) => [Math.floor((id * processes) / n), id]);

const one = (rest) => JSON.stringify({ meshfeed: 1, mesh: { axes: [["data", 4], ["model", 2]] }, ...rest });
const x = { shape: ["B", 4], dtype: "float32", spec: ["data", "model"] };

const OWN = {
  "reshard": one({ arrays: { x }, batch: { size: 8 }, loading: "reshard" }),
  "global, no prefetch": one({ arrays: { x }, batch: { size: 8 }, loading: "global", prefetch: 0 }),
  ...Object.fromEntries(["int64", "uint64", "float64", "complex128"].map((dtype) => [dtype, one({ arrays: { x: { ...x, dtype } }, batch: { size: 8 } })])),
  "all other types": one({ arrays: Object.fromEntries(["bool", "int8", "int16", "uint8", "uint16", "uint32", "float16", "bfloat16", "complex64"].map((dtype) => [dtype, { ...x, dtype }])), batch: { size: 8 } }),
  "mask, extras and columns": one({ arrays: { in: { ...x, field: "tokens", columns: [[0, 2], [3, 5]] }, out: { ...x, field: "tokens", columns: [[1, 5]] } }, batch: { size: 8, remainder: "pad", mask: "real", mask_spec: [["model", "data"]], extras: ["record", "key"] }, dataset: { records: 21, order: "shuffle.1", seed: -3 } }),
  "the remainder is an error": one({ arrays: { x }, batch: { size: 8, remainder: "error" }, dataset: { records: 24, seed: 5 } }),
  "two batch dimensions": one({ arrays: { x: { shape: ["B0", "B1", 3], dtype: "int8", spec: ["data", "model"] } }, batch: { size: [4, 6] } }),
  "a local order": one({ arrays: { x }, batch: { size: 8 }, dataset: { records: 64, order: "local.1:4:8", seed: 1 } }),
  "devices in another order": one({ mesh: { axes: [["data", 4], ["model", 2]], devices: scattered(8, 4) }, arrays: { x }, batch: { size: 8 } }),
  "128 devices in another order": one({ mesh: { axes: [["data", 32], ["model", 4]], devices: scattered(128, 16) }, arrays: { x }, batch: { size: 32 } }),
  "one device": one({ mesh: { axes: [] }, arrays: { x: { ...x, spec: [] } }, batch: { size: 8 } }),
  "names of Python and Go": one({ arrays: { mesh: { shape: [8], dtype: "int8", spec: ["data"] }, class: { shape: [8], dtype: "int8", spec: [["model", "data"]] }, "0 a": { shape: [8], dtype: "int8" }, "0_a": { shape: [8], dtype: "int8", spec: ["model"] }, jax: x, "a/b": { ...x, field: "f/g" } }, batch: { size: 8 } }),
  "invisible characters in names, in a document": one({ arrays: { "\u2028\ufeff\u{e0001}": x }, batch: { size: 8 }, dataset: { records: 16, fields: { "\u2028\ufeff\u{e0001}": { shape: [4], dtype: "float32" } } } }),
  "only weights": one({ arrays: { w: { shape: [8, 6], dtype: "bfloat16", spec: [["data", "model"], null] } } }),
  "invisible characters in names": one({ arrays: { "\u202e\ufeff\u2028`\\": x, "\u0001\u007f": x }, batch: { size: 8 } }),
};

/** A layout with the fields of FILE, so that its programs run unchanged. */
const WHOLE = "a program that runs unchanged";
const FILE = "internal/arrowmeta/testdata/fixed.arrow";
OWN[WHOLE] = one({
  mesh: { axes: [["data", 2], ["model", 2]] },
  arrays: { image: { shape: ["B", 4, 3], dtype: "float32", spec: ["data", "model"] }, first: { field: "bytes", columns: [[0, 2]], shape: ["B", 2], dtype: "uint8", spec: ["data"] } },
  batch: { size: 2, remainder: "pad" },
  dataset: { records: 5, order: "shuffle.1", seed: 4 },
});

/** programs returns the page's results for every document: the canonical document, the report, the draft's
 * document, and the programs. */
async function programs(cases) {
  const { Guest, parse, text, jaxCode, goCode } = await modules("guest", "draft", "jax-code", "go-code");
  const guest = core(Guest);
  return cases.map((c) => {
    const { document, report, error } = guest.describe(c.text);
    if (!document) throw new Error(`${c.name}: ${error.message}`);
    const draft = parse(document);
    return { name: c.name, document, report, again: guest.describe(text(draft)).document, jax: jaxCode(draft), go: goCode(draft, document) };
  });
}

const { PRESETS } = await modules("presets");
for (const { name, axes, processes } of PRESETS) {
  OWN[`preset ${name}`] = one({ mesh: { axes: axes.map((a) => [a.name, a.size]), processes }, arrays: { x: { ...x, spec: ["data"] } }, batch: { size: 1024 }, dataset: { records: 4096 } });
}

const cases = await programs([
  ...examples(),
  ...hostile.filter((row) => row.canonical).map((row) => ({ name: row.name, text: row.canonical })),
  ...Object.entries(OWN).map(([name, text]) => ({ name, text })),
]);

/** folder creates a folder that is removed after the test. */
function folder(t) {
  const made = mkdtempSync(join(tmpdir(), "meshfeed-"));
  t.after(() => rmSync(made, { recursive: true }));
  return made;
}

/** run returns the output of a command. */
function run(command, args, options) {
  const done = spawnSync(command, args, { encoding: "utf8", maxBuffer: 1 << 28, ...options });
  assert.equal(done.status, 0, `${command} ${args.join(" ")}: ${done.error?.message ?? done.stderr}`);
  return done.stdout;
}

/** expressible removes from a document what a JAX program in one process cannot express: the processes of
 * devices, the budgets and the dataset. A device list in ascending order is then a plain mesh. */
function expressible(document) {
  const { budget, dataset, mesh, ...rest } = JSON.parse(document);
  const { order, seed, records } = dataset ?? {};
  const ids = mesh.devices?.map(([, id]) => id);
  return { ...rest, arrays: Object.entries(rest.arrays).filter(([, a]) => a.shape.some((n) => typeof n === "string")), axes: mesh.axes, ids: ids?.some((id, n) => id !== n) ? ids : undefined, order, seed, records };
}

/** goModule makes a folder a Go module that uses this checkout. */
function goModule(folder) {
  const mod = readFileSync(join(root, "go.mod"), "utf8").replace(/^module .*/, `module example.com/programs\n\nrequire github.com/meshfeed/meshfeed v0.0.0\n\nreplace github.com/meshfeed/meshfeed => ${root}`);
  writeFileSync(join(folder, "go.mod"), mod);
  cpSync(join(root, "go.sum"), join(folder, "go.sum"));
}

test("a draft gives the document back that it was parsed from", () => {
  for (const { name, document, again } of cases) assert.equal(again, document, name);
});

test("programs contain no invisible characters", () => {
  for (const { name, jax, go } of cases) assert.doesNotMatch(jax + go, /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u, name);
});

test("the JAX programs load the page's layouts", (t) => {
  const made = folder(t);
  const asked = cases.map(({ name, document, report, jax }) => ({
    name, document, jax, errors: report.problems.filter((p) => p.severity === "error").length, bytes: report.totals.batch_bytes ?? 0,
  }));
  writeFileSync(join(made, "cases.json"), JSON.stringify(asked));
  const answers = JSON.parse(run(python, ["-W", "error", join(here, "programs.py"), "cases.json"], { cwd: made }));
  for (const [i, { name, document, report }] of cases.entries()) {
    const { layout, shardings, batch } = answers[i];
    const want = expressible(document);
    if (layout) {
      const got = expressible(JSON.stringify(layout));
      assert.deepEqual({ ...got, records: want.records }, want, name);
      if (want.records !== undefined) assert.equal(got.records, want.records, name);
    } else assert.deepEqual(want.arrays, [], name);
    const fixed = Object.entries(JSON.parse(document).arrays).filter(([, a]) => a.shape.every((n) => typeof n === "number"));
    assert.deepEqual(shardings, Object.fromEntries(fixed.map(([n, a]) => [n, a.spec ?? []])), name);
    for (const [array, { global_shape, shard_shape }] of Object.entries(batch)) {
      const { global_shape: shape, shard_shape: shard } = report.arrays[array];
      assert.deepEqual({ global_shape, shard_shape }, { global_shape: shape, shard_shape: shard }, `${name}: ${array}`);
    }
  }
});

test("a JAX program runs unchanged on a file", (t) => {
  const made = folder(t);
  cpSync(join(root, FILE), join(made, "train-0.arrow"));
  const { jax } = cases.find((c) => c.name === WHOLE);
  writeFileSync(join(made, "load.py"), `${jax}    print({name: a.shape for name, a in batch.items()})\n`);
  const output = run(python, ["load.py"], { cwd: made, env: { ...process.env, JAX_PLATFORMS: "cpu", XLA_FLAGS: "--xla_force_host_platform_device_count=4" } });
  assert.equal(output, "{'image': (2, 4, 3), 'first': (2, 2), 'valid': (2,)}\n".repeat(3));
});

/** job runs a command in several processes at the same time, and returns what each of them printed to both outputs. */
async function job(processes, command, args, options) {
  const one = (i) =>
    new Promise((resolve, reject) => {
      const { env, ...rest } = options;
      execFile(command, args(i), { encoding: "utf8", ...rest, env: { ...process.env, ...env(i) } }, (cause, stdout, stderr) => (cause ? reject(new Error(`process ${i}: ${cause.message}\n${stderr}`)) : resolve([stdout, stderr])));
    });
  return Promise.all(Array.from({ length: processes }, (_, i) => one(i)));
}

/** freePort returns a port that no program listens to. */
async function freePort() {
  const server = createServer();
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const { port } = server.address();
  await new Promise((closed) => server.close(closed));
  return port;
}

const DOCUMENTS = `
import pyarrow as pa, pyarrow.parquet as pq
pq.write_table(pa.table({"tok": [list(range(i % 7)) for i in range(64)], "id": range(64)}), "documents.parquet")
`;

test("the programs of presets run in as many processes as they have, on a file with rows of different lengths", async (t) => {
  const { parse, text, pad, EMPTY, jaxCode, goCode, Guest } = await modules("guest", "draft", "jax-code", "go-code");
  const made = folder(t);
  run(python, ["-c", DOCUMENTS], { cwd: made });
  for (const { axes, processes } of PRESETS.filter((p) => ["1 host × 8", "4 hosts × 2"].includes(p.name))) {
    const draft = { ...parse(EMPTY), axes, processes, files: "documents.parquet", dataset: { records: 64, fields: new Map(), fingerprint: null, order: "shuffle.1", seed: 1 } };
    draft.ragged = [{ name: "tok", dtype: "int64", element: [] }];
    pad(draft, draft.ragged[0], 8);
    draft.batch.size = [16];
    const { document, report } = core(Guest).describe(text(draft));
    assert.deepEqual(report.problems.filter((p) => p.severity !== "info"), []);

    writeFileSync(join(made, "load.py"), `${jaxCode(draft)}print({name: a.shape for name, a in batch.items()}, loader.state()["epoch"])\n`);
    rmSync(join(made, "run.state"), { force: true });
    const port = await freePort();
    const several = (i) => ({ JAX_COORDINATOR_ADDRESS: `localhost:${port}`, JOB_COMPLETION_INDEX: String(i) });
    const devices = String(8 / processes);
    const jax = await job(processes, python, () => ["load.py"], { cwd: made, env: (i) => ({ JAX_PLATFORMS: "cpu", JAX_NUM_CPU_DEVICES: devices, ...(processes > 1 ? several(i) : {}) }) });
    assert.deepEqual(new Set(jax.map(([stdout]) => stdout)), new Set(["{'tok': (16, 8), 'tok_length': (16,)} 1\n"]));

    mkdirSync(join(made, "go"), { recursive: true });
    writeFileSync(join(made, "go", "main.go"), goCode(draft, document).replace("\t\tb.Release()", '\t\tprintln(b.Step().Index)\n\t\tb.Release()'));
    goModule(join(made, "go"));
    run("go", ["build", "-mod=mod", "-o", "../load", "."], { cwd: join(made, "go") });
    const printed = await job(processes, join(made, "load"), (i) => (processes > 1 ? ["-process", String(i)] : []), { cwd: made, env: () => ({}) });
    assert.deepEqual(printed, Array(processes).fill(["", "0\n1\n2\n3\n"]));
  }
});

const DRIVER = `package main

import (
	"encoding/json"
	"log"
	"os"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
)

func text(wanted any) string {
	switch d := wanted.(type) {
	case string:
		parsed, err := document.Parse([]byte(d))
		if err != nil {
			log.Fatal(err)
		}
		return string(document.Canonical(parsed))
	case layout.Document:
		return string(document.Canonical(&d))
	}
	return ""
}

func main() {
	err := json.NewEncoder(os.Stdout).Encode([]string{
LIST	})
	if err != nil {
		log.Fatal(err)
	}
	mainWHOLE()
}
`;

test("the Go programs are formatted and have the page's layouts, and one loads a file", (t) => {
  const made = folder(t);
  const go = (...args) => run("go", args, { cwd: made });
  goModule(made);
  const file = (i) => join(made, `p${i}.go`);
  for (const [i, { go }] of cases.entries()) writeFileSync(file(i), go);
  assert.equal(run("gofmt", ["-l", "."], { cwd: made }), "", "gofmt changes these programs");
  // One package of all programs compiles sooner than a package of each. Its files have the names of their programs with a number.
  for (const [i, { go }] of cases.entries()) writeFileSync(file(i), go.replace(/^func main\(\)/m, `func main${i}()`).replace(/^(const|var) wanted /m, `$1 wanted${i} `).replace(/(\[\]byte\(|&)wanted\)/, `$1wanted${i})`));
  const list = cases.map((_, i) => `\t\ttext(wanted${i}),\n`).join("");
  writeFileSync(join(made, "main.go"), DRIVER.replace("WHOLE", cases.findIndex((c) => c.name === WHOLE)).replace("LIST", list));
  cpSync(join(root, FILE), join(made, "train-0.arrow"));
  const documents = JSON.parse(go("run", "-mod=mod", "."));
  for (const [i, { name, document }] of cases.entries()) assert.equal(documents[i], document, name);
});
