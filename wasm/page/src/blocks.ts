// The blocks of an array and the devices that hold them, from the core's table.

import type { ArrayReport } from "./guest.js";
import { type Swatch, palette } from "./palette.js";
import { product } from "./units.js";

/** Columns describes the blocks of an array, with the block of each device. */
export interface Columns {
  shape: number[];
  shard: number[];
  counts: number[]; // blocks along each dimension
  bytes: number;
  block: Int32Array; // block of each device
  process: Int32Array;
  id: Int32Array;
  replica: Int32Array;
}

/** columns converts the core's table of an array. */
export function columns(report: ArrayReport, table: Float64Array): Columns {
  const shape = report.global_shape;
  const shard = report.shard_shape ?? shape;
  const counts = shape.map((n, d) => (shard[d]! > 0 ? n / shard[d]! : 1));
  const width = 4 + 2 * shape.length;
  const devices = table.length / width;
  const [block, process, id, replica] = [0, 1, 2, 3].map(() => new Int32Array(devices)) as [Int32Array, Int32Array, Int32Array, Int32Array];
  for (let i = 0, at = 0; i < devices; i++, at += width) {
    process[i] = table[at]!;
    id[i] = table[at + 1]!;
    replica[i] = table[at + 2]!;
    let number = 0;
    for (let d = 0; d < shape.length; d++) number = number * counts[d]! + (shard[d]! > 0 ? table[at + 4 + 2 * d]! / shard[d]! : 0);
    block[i] = number;
  }
  return { shape, shard, counts, bytes: table[3] ?? 0, block, process, id, replica };
}

/** Blocks has the fields of Columns, which its constructor copies. */
export interface Blocks extends Readonly<Columns> {}

/** Blocks is a partitioned array. Blocks are numbered row-major, devices in mesh order. */
export class Blocks {
  readonly rank: number;
  readonly total: number;
  readonly devices: number;
  private start: Int32Array | null = null;
  private byBlock: Int32Array | null = null;
  private colors: ((block: number) => Swatch) | null = null;

  constructor(c: Columns) {
    Object.assign(this, c);
    this.rank = c.shape.length;
    this.total = product(c.counts);
    this.devices = c.block.length;
  }

  /** replicas returns the number of devices that hold each block. */
  get replicas(): number {
    return this.devices / this.total;
  }

  /** cut lists the partitioned dimensions. */
  get cut(): number[] {
    return this.counts.flatMap((n, d) => (n > 1 ? [d] : []));
  }

  /** holders returns the devices of a block, in mesh order. */
  holders(block: number): Int32Array {
    if (!this.start || !this.byBlock) {
      this.start = new Int32Array(this.total + 1);
      for (const b of this.block) this.start[b + 1]!++;
      for (let b = 0; b < this.total; b++) this.start[b + 1]! += this.start[b]!;
      const next = this.start.slice();
      this.byBlock = new Int32Array(this.devices);
      for (let i = 0; i < this.devices; i++) this.byBlock[next[this.block[i]!]!++] = i;
    }
    return this.byBlock.subarray(this.start[block]!, this.start[block + 1]!);
  }

  /** coordinates returns a block's position along every dimension. */
  coordinates(block: number): number[] {
    const out = new Array<number>(this.rank);
    for (let d = this.rank - 1; d >= 0; d--) {
      out[d] = block % this.counts[d]!;
      block = Math.floor(block / this.counts[d]!);
    }
    return out;
  }

  /** number returns the block at these coordinates. */
  number(coordinates: number[]): number {
    return coordinates.reduce((n, c, d) => n * this.counts[d]! + c, 0);
  }

  /** range returns [start, stop) of a block along a dimension. */
  range(coordinate: number, dim: number): [number, number] {
    return [coordinate * this.shard[dim]!, (coordinate + 1) * this.shard[dim]!];
  }

  /** color returns a block's color. */
  color(block: number): Swatch {
    const first = this.counts[this.cut[0] ?? 0] ?? 1;
    this.colors ??= palette(first, this.total / first);
    return this.colors(block);
  }
}
