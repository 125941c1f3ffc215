// The planner's report, as package core/plan/strategy/document writes it. Memory is in bytes, time in nanoseconds.

import type { Failure, Problem } from "./guest.js";

/** PARTS lists the parts of a device's memory, in the order of the pictures. */
export const MEMORY_PARTS = ["weights", "gradients", "optimizer", "activations", "buffers"] as const;

/** TIME_PARTS lists the parts of a step's time. */
export const TIME_PARTS = ["compute", "hbm", "tensor", "fsdp", "data", "context", "expert", "pipe", "bubble"] as const;

export type MemoryPart = (typeof MEMORY_PARTS)[number];
export type TimePart = (typeof TIME_PARTS)[number];

export interface Memory extends Record<MemoryPart, number> {
  activations_low: number;
  activations_high: number;
  total: number;
  capacity: number | null;
  free: number | null; // negative if the candidate does not fit
}

export interface Time extends Record<TimePart, number> {
  step: number;
  low: number;
  high: number;
  bound: TimePart;
  next: TimePart | null;
  behind: number;
}

export interface Candidate {
  mesh: [string, number][];
  zero: number;
  recomputation: string;
  micro_batch: number;
  micro_batches: number;
  schedule: string | null;
  chunks: number;
  memory: Memory;
  time: Time | null; // null if a number of the hardware is not known
  tokens_per_second: number | null;
  mfu: number | null;
  fits: boolean;
  reasons: string[];
}

export interface Stage {
  number: number;
  first_layer: number;
  layers: number;
  embedding: boolean;
  head: boolean;
  parameters: number;
  live: number;
  memory: Memory;
  compute: number | null;
}

/** Pipeline is the schedule of a pipeline, in the form of a diagram document. Durations are in ticks. */
export interface Pipeline {
  schedule: string;
  stages: number;
  micro_batches: number;
  chunks: number;
  forward: number[]; // forward times of each chunk of each stage
  backward: number[];
  weight: number[];
}

export interface Collective {
  op: string;
  axis: string;
  what: string;
  link: string;
  count: number;
  bytes: number;
  sent: number;
  ns: number | null;
  overlapped: boolean;
}

export interface InputNeeds {
  rows_per_step: number;
  rows_per_second: number | null;
  bytes_per_step: number;
  read_bytes: number;
  processes: number;
  process_rows: number;
  process_bytes: number;
  host_bytes: number;
  host_capacity: number | null;
  sharing: number;
  groups: number;
  available: number | null; // rows per second that the document names
  keeps_up: boolean | null;
  margin: number | null;
}

export interface Report {
  model: { name: string; parameters: number; active_parameters: number; gigaflops_per_step: number | null };
  devices: number;
  evaluated: number;
  pruned: { code: string; count: number; message: string }[];
  candidates: Candidate[];
  best: number | null;
  stages: Stage[];
  pipeline: Pipeline | null;
  collectives: Collective[];
  layout: unknown;
  input: InputNeeds | null;
  assumptions: { code: string; text: string }[];
  problems: Problem[];
}

/** Advised is the reply about a strategy document. */
export interface Advised {
  report: Report | null;
  layout: string | null; // the text of the best candidate's layout document
  text: string | null; // the report in characters
  error: Failure | null;
}

/** Known is a model that the planner knows by name, with its form as in a document. */
export interface KnownModel {
  name: string;
  title: string;
  parameters: number;
  source: string;
  transformer: Record<string, number | boolean | string | Record<string, number>>;
}

/** Device is a kind of device. A number that no source publishes is null. */
export interface Device {
  name: string;
  title: string;
  memory: number | null;
  per_node: number;
}

/** Catalog has what the planner knows by name. */
export interface Catalog {
  models: KnownModel[];
  devices: Device[];
}
