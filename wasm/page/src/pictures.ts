// The pictures of a candidate, as documents of package core/plan/diagram/document, which draws them.

import type { Candidate, Collective, KnownModel, Report } from "./advice.js";
import { meshText, sizeOf } from "./candidate.js";
import type { JsonObject } from "./json.js";
import { duration, share } from "./quantities.js";
import { at, numberAt, textAt } from "./strategy-draft.js";
import type { Detail } from "./strategy-model.js";
import { product, whole } from "./units.js";

/** Picture describes a picture. The note says what the picture simplifies. */
export interface Picture {
  key: string;
  title: string;
  note: string;
  choices: { title: string; diagram: object }[]; // several if the user selects what to draw, none if it is not known yet
}

const MAX_BARS = 12; // candidates with drawn memory
const MAX_GROUP = 4; // devices of a collective that are drawn

/** pictures lists the pictures of a candidate. detail is the candidate's, or null if it is not known yet. */
export function pictures(document: JsonObject, models: readonly KnownModel[], report: Report, chosen: number, detail: Detail | null): Picture[] {
  const c = report.candidates[chosen];
  if (!c) return [];
  return [schedule(c, detail), memory(report, chosen), exchange(c, detail?.collectives ?? []), matmul(c, document, models)].filter((p) => p !== null);
}

/** schedule describes the picture of the pipeline over time. It returns null for a mesh without a pipeline. */
function schedule(c: Candidate, detail: Detail | null): Picture | null {
  if (sizeOf(c, "pipe") === 1 || c.schedule === null) return null;
  const { time } = c;
  const idle = time ? ` In a step of ${duration(time.step)}, the slowest stage is idle for ${share(time.bubble, time.step)}.` : "";
  return {
    key: "schedule",
    title: "Schedule",
    note: `The picture has the computation of the micro-batches, without communication.${idle}`,
    choices: detail?.pipeline ? [{ title: "", diagram: { pipeline: detail.pipeline } }] : [],
  };
}

/** memory describes the picture of the memory of the first candidates and of the chosen one. */
function memory(report: Report, chosen: number): Picture {
  const numbers = report.candidates.map((_, i) => i).filter((i) => i < MAX_BARS || i === chosen);
  const bars = numbers.map((i) => {
    const { memory: m, mesh } = report.candidates[i]!;
    const { weights, gradients, optimizer, activations, buffers } = m;
    return { label: `${i === chosen ? "▸ " : ""}${i + 1}. ${meshText(mesh)}`, weights, gradients, optimizer, activations, buffers };
  });
  const capacity = report.candidates[chosen]!.memory.capacity;
  return {
    key: "memory",
    title: "Memory",
    note: "",
    choices: [{ title: "", diagram: { memory: { title: "Memory of the fullest device of each candidate", ...(capacity === null ? {} : { capacity }), bars } } }],
  };
}

/** exchange describes the pictures of the collectives, step by step. The user selects one of them. */
function exchange(c: Candidate, collectives: readonly Collective[]): Picture | null {
  const kinds = new Map(collectives.map(({ op, axis }) => [`${op} over ${axis} ${whole(sizeOf(c, axis))}`, { op, size: sizeOf(c, axis) }]));
  if (kinds.size === 0) return null;
  return {
    key: "collectives",
    title: "Collectives",
    note: `The values are examples. A group of more than ${MAX_GROUP} devices is drawn with ${MAX_GROUP}.`,
    choices: [...kinds].map(([title, { op, size }]) => ({ title, diagram: { collective: { op, devices: Math.min(size, MAX_GROUP) } } })),
  };
}

/** matmul describes the picture of the first matrix product of a feed-forward layer. It
 * returns null for a model with experts, because their rows differ from the batch's rows,
 * and for a model that is not a transformer. */
function matmul(c: Candidate, document: JsonObject, models: readonly KnownModel[]): Picture | null {
  const known = models.find((m) => m.name === textAt(document, "/model/preset"));
  const number = (key: string): number | null => numberAt(document, `/model/transformer/${key}`) ?? (known?.transformer[key] as number | undefined) ?? null;
  const [hidden, ffn, sequence] = [number("hidden"), number("ffn"), number("sequence")];
  const experts = known?.transformer["experts"] ?? at(document, "/model/transformer/experts");
  if (!hidden || !ffn || !sequence || experts) return null;
  // A device would have parts of several sequences, which are not adjacent rows.
  if (sizeOf(c, "context") > 1 && c.micro_batch > 1) return null;
  const axes = c.mesh.filter(([name]) => name !== "pipe");
  const rows = axes.filter(([name]) => name !== "tensor").map(([name]) => name);
  const batch = c.micro_batch * product(axes.filter(([name]) => ["data", "fsdp", "expert"].includes(name)).map(([, size]) => size));
  const [fsdp, tensor] = [sizeOf(c, "fsdp"), sizeOf(c, "tensor")];
  const over = (axis: string, size: number, dimension: number): string | null => (size > 1 && dimension % size === 0 ? axis : null);
  return {
    key: "matmul",
    title: "Matmul",
    note: "x has the activations of a micro-batch, w the weights of the first matrix of a feed-forward layer.",
    choices: [{
      title: "",
      diagram: { matmul: {
        mesh: { axes: axes.length > 0 ? axes : [["device", 1]] },
        x: { shape: [batch * sequence, hidden], spec: [rows.length > 0 ? rows : null, null] },
        w: { shape: [hidden, ffn], spec: [over("fsdp", fsdp, hidden), over("tensor", tensor, ffn)] },
      } },
    }],
  };
}
