// Meshes to begin with, by the number of hosts and the devices of each.

import type { Axis } from "./draft.js";

/** Preset is a mesh to begin with. */
export interface Preset {
  name: string;
  axes: Axis[];
  processes: number;
}

const axesOf = (sizes: Record<string, number>): Axis[] => Object.entries(sizes).map(([name, size]) => ({ name, size }));

export const PRESETS: Preset[] = [
  { name: "1 host × 8", axes: axesOf({ data: 8 }), processes: 1 },
  { name: "4 hosts × 2", axes: axesOf({ data: 4, model: 2 }), processes: 4 },
  { name: "4 hosts × 8", axes: axesOf({ data: 8, model: 4 }), processes: 4 },
  { name: "8 hosts × 8", axes: axesOf({ data: 8, model: 8 }), processes: 8 },
  { name: "16 hosts × 8", axes: axesOf({ data: 4, fsdp: 8, model: 4 }), processes: 16 },
  { name: "32 hosts × 8", axes: axesOf({ data: 16, fsdp: 4, model: 4 }), processes: 32 },
  { name: "512 hosts × 8", axes: axesOf({ data: 64, fsdp: 16, model: 4 }), processes: 512 },
  { name: "8,192 hosts × 8", axes: axesOf({ data: 256, fsdp: 64, model: 4 }), processes: 8192 },
];
