// Compares the processes and their devices with the axes of the mesh, and offers fixes.

import { type Axis, type Draft, addAxis, axesText, deviceCount } from "./draft.js";
import type { Fix } from "./fixes.js";
import type { Problem } from "./guest.js";
import { count, gcd, whole } from "./units.js";

const PATH = "/mesh/processes";

/** Disagreement is a problem that the form detects without the core (see core.ts). */
export interface Disagreement {
  problem: Problem;
  fixes: Fix[];
}

/** disagreement compares processes × devices with the axes. It returns null if they agree. */
export function disagreement(d: Draft): Disagreement | null {
  const total = deviceCount(d);
  if (d.devices || (d.perProcess === null ? total % d.processes === 0 : d.processes * d.perProcess === total)) return null;
  const made = `the axes make ${count(total, "device")}: ${axesText(d.axes)}`;
  const message =
    d.perProcess === null
      ? `${count(d.processes, "process", "processes")} cannot share the devices equally; ${made}`
      : `${count(d.processes, "process", "processes")} × ${count(d.perProcess, "device")} are ${count(d.processes * d.perProcess, "device")}, but ${made}`;
  const facts = { processes: d.processes, devices: total };
  const hint = "change the sizes of the axes, or the number of processes or of their devices";
  return { problem: { severity: "error", code: "mesh-size", path: PATH, message, hint, facts }, fixes: d.perProcess === null ? shareable(d, total) : matching(d, total, d.perProcess) };
}

/** matching lists the fixes that make processes × devices equal to the axes, the likeliest first. */
function matching(d: Draft, total: number, each: number): Fix[] {
  const want = d.processes * each;
  const fixes = pair(d, each);
  for (const [i, a] of d.axes.entries()) {
    const others = total / a.size;
    if (want % others === 0) fixes.push(resizeAxis(a, i, want / others));
  }
  if (want > total && want % total === 0 && d.axes.length > 1) fixes.push(newAxis(d, want / total));
  if (total % each === 0) fixes.push(processes(total / each));
  if (total % d.processes === 0) fixes.push({ label: `${count(total / d.processes, "device")} per process`, apply: (x) => void (x.perProcess = total / x.processes) });
  return fixes;
}

/** pair offers one axis for the processes and one for the devices per process, if there are at most two
 * axes. */
function pair(d: Draft, each: number): Fix[] {
  const [outer, inner] = d.axes;
  if (!outer || d.axes.length > 2 || d.processes === 1 || each === 1 || inner?.size === each) return [];
  const copy = structuredClone(d); // addAxis chooses the name of the new axis
  const other = inner ?? addAxis(copy, 1, each);
  return [
    {
      label: `${outer.name} ${whole(d.processes)} × ${other.name} ${whole(each)}`,
      apply: (x) => {
        x.axes[0]!.size = x.processes;
        if (x.axes[1]) x.axes[1].size = each;
        else addAxis(x, 1, each);
      },
    },
  ];
}

/** shareable lists the fixes that give all processes the same number of devices. */
function shareable(d: Draft, total: number): Fix[] {
  const fixes: Fix[] = [];
  for (const [i, a] of d.axes.entries()) {
    const step = d.processes / gcd(d.processes, total / a.size);
    fixes.push(resizeAxis(a, i, Math.ceil(a.size / step) * step));
  }
  for (let n = Math.min(d.processes - 1, total); n >= 1; n--) {
    if (total % n === 0) return [...fixes, processes(n)];
  }
  return fixes;
}

function resizeAxis(a: Axis, i: number, size: number): Fix {
  return { label: `${a.name} ${whole(size)}`, apply: (d) => void (d.axes[i]!.size = size) };
}

function newAxis(d: Draft, size: number): Fix {
  const { name } = addAxis(structuredClone(d), d.axes.length, size);
  return { label: `another axis: ${name} ${whole(size)}`, apply: (x) => void addAxis(x, x.axes.length, size) };
}

function processes(n: number): Fix {
  return { label: count(n, "process", "processes"), apply: (d) => void (d.processes = n) };
}
