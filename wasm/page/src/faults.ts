// The problems of a layout, without duplicates: the form finds some, and the Go core reports the others.

import type { Draft } from "./draft.js";
import { type Fix, failureFixes, fixes } from "./fixes.js";
import type { Described, Problem } from "./guest.js";
import { type Disagreement, disagreement } from "./hosts.js";

/** Fault is one problem, at one or several paths, in a document of type D. */
export interface Fault<D = Draft> {
  problems: [Problem, ...Problem[]];
  fixes: Fix<D>[];
}

const ORDER = { error: 0, warning: 1, info: 2 } as const;

/** faults lists the problems, errors first. Problems that differ only in the array are one fault. */
export function faults(reply: Described, draft: Draft): Fault[] {
  const own = disagreementOf(reply, draft);
  const found = new Map<string, Fault>();
  if (own) found.set("", { problems: [own.problem], fixes: own.fixes });
  for (const problem of core(reply)) {
    if (own && problem.path === own.problem.path) continue; // the form's problem is more precise
    const key = `${problem.severity} ${problem.code} ${anyArray(problem.message)} ${problem.hint}`;
    const offered = reply.error ? failureFixes(reply.error, draft) : fixes(problem, draft);
    const same = found.get(key);
    if (!same) {
      found.set(key, { problems: [problem], fixes: offered });
      continue;
    }
    same.problems.push(problem);
    same.fixes = together(same.fixes, offered);
  }
  return [...found.values()].sort((a, b) => ORDER[a.problems[0].severity] - ORDER[b.problems[0].severity]);
}

/** disagreementOf compares the number of devices of all processes with the axes, unless the axes are invalid. */
export function disagreementOf(reply: Described, draft: Draft): Disagreement | null {
  return reply.error?.path.startsWith("/mesh/axes") ? null : disagreement(draft);
}

/** core lists the problems that the Go core reports, or its error as one problem. */
function core({ error, report }: Described): Problem[] {
  if (error) return [{ severity: "error", code: error.code, path: error.path, message: error.message, hint: error.hint, facts: {} }];
  return report?.problems ?? [];
}

/** anyArray removes the name and the shape of the array from a message. */
function anyArray(message: string): string {
  return message.replace(/array "(?:[^"\\]|\\.)*"(?: of shape \([^)]*\))?/, "array");
}

/** together joins the fixes of two problems. Fixes with the same label are applied together. */
function together(a: Fix[], b: Fix[]): Fix[] {
  const joined = a.map((fix) => {
    const other = b.find((f) => f.label === fix.label);
    return other ? { label: fix.label, apply: (d: Draft) => (fix.apply(d), other.apply(d)) } : fix;
  });
  return [...joined, ...b.filter((f) => !a.some((fix) => fix.label === f.label))];
}
