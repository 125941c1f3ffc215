// Runs files of tests in one process, so that all their tests share one browser.
//
//   node --test-reporter=spec wasm/page/tests/all.mjs FILE...

import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

for (const file of process.argv.slice(2)) await import(pathToFileURL(resolve(file)));
