// Texts about candidates.

import { type Candidate, type Memory, type MemoryPart, TIME_PARTS, type TimePart } from "./advice.js";
import { palette } from "./palette.js";
import { whole } from "./units.js";

/** meshText lists the axes of a mesh with their sizes. */
export function meshText(mesh: Candidate["mesh"]): string {
  return mesh.map(([name, size]) => `${name} ${whole(size)}`).join(" × ") || "one device";
}

/** sizeOf returns the size of an axis of the candidate's mesh. */
export function sizeOf(c: Candidate, axis: string): number {
  return c.mesh.find(([name]) => name === axis)?.[1] ?? 1;
}

/** settingsText lists the settings of a candidate besides its mesh. */
export function settingsText(c: Candidate): string {
  const pipe = sizeOf(c, "pipe") > 1;
  const recomputed = { none: "no recomputation", dots: "recomputation dots", selective: "selective recomputation", full: "full recomputation" }[c.recomputation] ?? c.recomputation;
  return [
    c.zero > 0 ? `ZeRO ${c.zero}` : "",
    recomputed,
    `${whole(c.micro_batches)} × ${whole(c.micro_batch)} examples`,
    pipe && c.schedule ? `${c.schedule}${c.chunks > 1 ? ` with ${c.chunks} chunks` : ""}` : "",
  ].filter(Boolean).join(", ");
}

/** limit returns the memory that a candidate may take: the capacity less the margin. */
export function limit(m: Memory): number | null {
  return m.free === null || m.capacity === null ? null : m.total + m.free;
}

export const MEMORY_NAMES: Record<MemoryPart, string> = { weights: "weights", gradients: "gradients", optimizer: "optimizer", activations: "activations", buffers: "buffers" };

export const TIME_NAMES: Record<TimePart, string> = {
  compute: "compute",
  hbm: "memory traffic",
  tensor: "tensor",
  fsdp: "fsdp",
  data: "data",
  context: "context",
  expert: "expert",
  pipe: "pipe",
  bubble: "bubble",
};

const timeColors = palette(TIME_PARTS.length, 1);

/** MEMORY_COLORS are the colors of the same parts in the pictures, which the planner draws. */
const MEMORY_COLORS: Record<MemoryPart, string> = { weights: "#2f68cc", gradients: "#207a50", optimizer: "#7d6200", activations: "#b04a12", buffers: "#983a96" };

/** memoryColor returns the color of a part of the memory. */
export function memoryColor(part: MemoryPart): string {
  return MEMORY_COLORS[part];
}

/** timeColor returns the color of a part of the time. */
export function timeColor(part: TimePart): string {
  return timeColors(TIME_PARTS.indexOf(part)).fill;
}
