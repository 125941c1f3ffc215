// Fixes of problems, each applied by one click.

import { type ArrayDraft, type Draft, addArray, batchDims, isBatched, resize } from "./draft.js";
import type { Failure, Problem } from "./guest.js";
import { steps } from "./pointer.js";
import { bytes, whole } from "./units.js";

export interface Fix<D = Draft> {
  label: string;
  apply(d: D): void;
}

type Maker = (p: Problem, d: Draft) => Fix[];

/** fixes returns the fixes of a problem, the likeliest first. */
export function fixes(p: Problem, d: Draft): Fix[] {
  return makers[p.code]?.(p, d) ?? [];
}

/** failureFixes returns the fixes of a document that cannot be planned. */
export function failureFixes(f: Failure, d: Draft): Fix[] {
  if (/^\/arrays\/[^/]*\/shape(\/\d+)?$/.test(f.path) && f.message.includes("batch dimension") && d.batch) return [batchDimsFix(d)];
  return [];
}

/** batchDimsFix replaces the leading batch dimensions of every shape by the batch's
 * dimensions. The specs keep the axes of all other dimensions. */
function batchDimsFix(d: Draft): Fix {
  const dims = batchDims(d);
  return {
    label: `begin the shapes with ${dims.join(", ")}`,
    apply: (x) => {
      for (const a of x.arrays.filter(isBatched)) {
        const before = a.shape.findIndex((n) => typeof n === "number");
        const old = before < 0 ? a.shape.length : before;
        const kept = Math.min(old, dims.length);
        const fresh = Array.from({ length: dims.length - kept }, (): string[] => []);
        a.shape.splice(0, old, ...dims);
        a.names.splice(0, old, ...dims.map(() => null));
        a.spec = [...a.spec.slice(0, kept), ...(a.spec.length > kept ? fresh : []), ...a.spec.slice(old)];
      }
    },
  };
}

const makers: Record<string, Maker> = {
  indivisible: (p, d) => [...batchFixes(p, d), ...sizeFixes(p, d), ...wholeFix(p, d)],
  "unknown-axis": (p, d) => [
    ...byLikeness(axisOf(p), d.axes.map((a) => a.name)).slice(0, 2).map((name) => inSpec(p, `use "${name}"`, (a, dim) => {
      a.spec[dim] = a.spec[dim]!.map((n) => (d.axes.some((x) => x.name === n) ? n : name));
    })),
    inSpec(p, "leave it out", (a, dim) => {
      a.spec[dim] = a.spec[dim]!.filter((n) => d.axes.some((x) => x.name === n));
    }),
  ],
  "duplicate-axis": (p) => [
    inSpec(p, `keep it in dimension ${p.facts["other"] ?? 0} only`, (a, dim) => {
      const before = new Set(a.spec.slice(0, dim).flat());
      a.spec[dim] = [...new Set(a.spec[dim])].filter((n) => !before.has(n));
    }),
  ],
  "spec-rank": (p) => [inSpec(p, "shorten the spec", (a) => void (a.spec.length = a.shape.length))],
  "name-taken": () => [
    { label: "rename the mask", apply: (d) => void (d.batch && (d.batch.mask = "is_valid")) },
  ],
  "no-arrays": () => [{ label: "add an array", apply: addArray }],
  "no-step": (p, d) => [
    ...(p.facts["records"] ? [setBatch(p.facts["records"])] : []),
    ...(d.batch ? [remainder("pad")] : []),
  ],
  remainder: () => [remainder("drop"), remainder("pad")],
  "unknown-order": () => [{ label: "read in order", apply: (d) => void (d.dataset && (d.dataset.order = null)) }],
  "device-budget": (p, d) => [...halve(d), raise("deviceBytes", p)],
  "host-budget": (p, d) => [
    ...(d.prefetch > 0 ? [{ label: `prefetch ${d.prefetch - 1}`, apply: (x: Draft) => void (x.prefetch = d.prefetch - 1) }] : []),
    ...halve(d),
    raise("hostBytes", p),
  ],
  "no-prefetch": () => [{ label: "prefetch 2", apply: (d) => void (d.prefetch = 2) }],
  loading: () => [{ label: "load by process", apply: (d) => void (d.loading = "process") }],
  replicated: (p, d) =>
    d.axes[0] ? [inSpec(p, `partition the batch over "${d.axes[0].name}"`, (a) => void (a.spec[0] = [d.axes[0]!.name]))] : [],
  "unused-axis": (p, d) => {
    const axis = d.axes[Number(steps(p.path)[2])]?.name;
    return axis && !MODEL_AXES.test(axis) ? [{ label: `split the batch over "${axis}" too`, apply: (x) => x.arrays.filter(isBatched).forEach((a) => void (a.spec[0] = [...(a.spec[0] ?? []), axis])) }] : [];
  },
};

/** MODEL_AXES are usual names of axes that divide the work on a row and not the rows. Their devices hold the same
 * rows on purpose. */
const MODEL_AXES = /^(model|tensor|tp|mp|pipe|pipeline|stage|pp|expert|ep)$/;

/** target returns the array and the dimension that a problem is about. */
function target(p: Problem, d: Draft): { array: ArrayDraft | undefined; dim: number } {
  const [, name, , dim] = steps(p.path);
  return { array: d.arrays.find((a) => a.name === name), dim: Number(dim ?? p.facts["dimension"] ?? 0) };
}

/** inSpec returns a fix that calls change for the array and the dimension of a problem. */
function inSpec(p: Problem, label: string, change: (a: ArrayDraft, dim: number) => void): Fix {
  return {
    label,
    apply: (d) => {
      const { array, dim } = target(p, d);
      if (array) change(array, dim);
    },
  };
}

function axisOf(p: Problem): string {
  return /^axis "([^"]*)"/.exec(p.message)?.[1] ?? "";
}

/** byLikeness sorts names by their similarity to a name: the share of letters that occur in it in the same order. */
function byLikeness(name: string, names: string[]): string[] {
  const score = (other: string): number => {
    let at = 0;
    for (const c of other) if (name[at] === c) at++;
    return at / Math.max(name.length, other.length);
  };
  return [...names].sort((a, b) => score(b) - score(a));
}

function setBatch(size: number): Fix {
  return { label: `batch ${whole(size)}`, apply: (d) => void (d.batch && (d.batch.size = [size])) };
}

/** batchFixes uses the batch sizes in the core's hint, which suit all arrays. */
function batchFixes(p: Problem, d: Draft): Fix[] {
  const found = /batch of (\d+)(?: or (\d+))?/.exec(p.hint);
  if (!found || d.batch?.size.length !== 1) return [];
  return [found[2], found[1]].filter((n) => n !== undefined).map((n) => setBatch(Number(n)));
}

function sizeFixes(p: Problem, d: Draft): Fix[] {
  const { array, dim } = target(p, d);
  const { size, tiles, remainder: left } = p.facts;
  if (!array || typeof array.shape[dim] !== "number" || !size || !tiles || !left) return [];
  return [size - left + tiles, size - left]
    .filter((n) => n > 0)
    .map((n) => ({ label: `size ${whole(n)}`, apply: (x) => setSize(x, target(p, x).array, dim, n) }));
}

/** setSize changes a size, and all sizes with the same name. */
function setSize(d: Draft, a: ArrayDraft | undefined, dim: number, size: number): void {
  const name = a?.names[dim];
  if (name) resize(d, name, size);
  else if (a) a.shape[dim] = size;
}

function wholeFix(p: Problem, d: Draft): Fix[] {
  const { array, dim } = target(p, d);
  return array?.spec[dim]?.length ? [inSpec(p, `leave dimension ${dim} whole`, (a) => void (a.spec[dim] = []))] : [];
}

/** halve returns the fix that halves the batch size, if it is even. */
function halve(d: Draft): Fix[] {
  const size = d.batch?.size[0] ?? 0;
  return d.batch?.size.length === 1 && size % 2 === 0 ? [setBatch(size / 2)] : [];
}

function raise(key: "deviceBytes" | "hostBytes", p: Problem): Fix {
  const enough = 2 ** Math.ceil(Math.log2(p.facts["bytes"] ?? 1));
  return { label: `budget ${bytes(enough)}`, apply: (d) => void (d[key] = enough) };
}

function remainder(way: string): Fix {
  return { label: `${way} the remainder`, apply: (d) => void (d.batch && (d.batch.remainder = way)) };
}
