// The core in the browser gives the same results as the native core, for a table of hostile documents and for
// the examples.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { examples, here, inBrowser, open } from "./browser.mjs";

const root = join(here, "../../..");
const hostile = JSON.parse(readFileSync(join(root, "core/layout/document/testdata/documents.json"), "utf8"));

/** describe asks the page's core about documents that are given in parts: text, hexadecimal bytes, and
 * repetitions. */
const describe = (page, documents) =>
  page.evaluate(async (documents) => {
    const bytes = (part) => {
      if (typeof part === "string") return new TextEncoder().encode(part);
      if (part.hex !== undefined) return Uint8Array.from(part.hex.match(/../g), (pair) => parseInt(pair, 16));
      return new TextEncoder().encode(Array.from({ length: part.times }, (_, i) => part.repeat.replaceAll("#", i)).join(""));
    };
    const join = (parts) => {
      const all = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
      parts.reduce((at, p) => (all.set(p, at), at + p.length), 0);
      return all;
    };
    const { core } = document.querySelector("layout-app").model;
    const { signal } = new AbortController();
    const answer = async (parts) => {
      const { document, error, report, text } = await core.ask("describe", [join(parts.map(bytes))], signal);
      return { document, error, report: documents.length > 20 ? null : report, text };
    };
    return Promise.all(documents.map(answer));
  }, documents);

inBrowser("hostile documents have the same canonical form or error as elsewhere", async (page) => {
  await open(page);
  const answers = await describe(page, hostile.map((row) => row.text));
  for (const [i, row] of hostile.entries()) {
    const { op, message, hint, path } = answers[i].error ?? {};
    const error = answers[i].error ? `${op}: ${message}${hint ? `; ${hint}` : ""}` : undefined;
    assert.deepEqual(
      { canonical: answers[i].document ?? undefined, error, path: path ?? "" },
      { canonical: row.canonical, error: row.error, path: row.path ?? "" },
      row.name,
    );
  }
});

inBrowser("the examples have the same report and text as elsewhere", async (page) => {
  await open(page);
  const list = examples();
  const answers = await describe(page, list.map(({ text }) => [text]));
  for (const [i, { name }] of list.entries()) {
    const got = answers[i];
    const golden = (kind) => readFileSync(join(root, "tests/layouts/testdata", `${name}.${kind}`), "utf8");
    assert.deepEqual(got.report, JSON.parse(golden("report.json")), name);
    assert.equal(got.text, golden("txt"), name);
  }
});
