// Who holds which block of an array: the guest's table, numbered.

import type { ArrayReport } from "./guest.js";
import { type Swatch, palette } from "./palette.js";

/** Blocks is an array cut up. Blocks are numbered row-major, devices in mesh order. */
export class Blocks {
  readonly rank: number;
  readonly shape: number[];
  readonly shard: number[];
  readonly counts: number[]; // blocks along each dimension
  readonly total: number;
  readonly devices: number;
  readonly block: Int32Array; // of each device
  readonly process: Int32Array;
  readonly id: Int32Array;
  readonly replica: Int32Array;
  readonly bytes: number;
  private start: Int32Array | null = null;
  private byBlock: Int32Array | null = null;
  private colors: ((block: number) => Swatch) | null = null;

  constructor(report: ArrayReport, table: Float64Array) {
    this.shape = report.global_shape;
    this.shard = report.shard_shape ?? report.global_shape;
    this.rank = this.shape.length;
    this.counts = this.shape.map((n, d) => (this.shard[d]! > 0 ? n / this.shard[d]! : 1));
    this.total = this.counts.reduce((a, b) => a * b, 1);
    const width = 4 + 2 * this.rank;
    this.devices = table.length / width;
    this.block = new Int32Array(this.devices);
    this.process = new Int32Array(this.devices);
    this.id = new Int32Array(this.devices);
    this.replica = new Int32Array(this.devices);
    this.bytes = table[3] ?? 0;
    for (let i = 0, at = 0; i < this.devices; i++, at += width) {
      this.process[i] = table[at]!;
      this.id[i] = table[at + 1]!;
      this.replica[i] = table[at + 2]!;
      let number = 0;
      for (let d = 0; d < this.rank; d++) {
        number = number * this.counts[d]! + (this.shard[d]! > 0 ? table[at + 4 + 2 * d]! / this.shard[d]! : 0);
      }
      this.block[i] = number;
    }
  }

  /** replicas gives how many devices hold each block. */
  get replicas(): number {
    return this.devices / this.total;
  }

  /** cut lists the dimensions that are partitioned. */
  get cut(): number[] {
    return this.counts.flatMap((n, d) => (n > 1 ? [d] : []));
  }

  /** holders gives the devices of a block, in mesh order. */
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

  /** coordinates gives a block's place along every dimension. */
  coordinates(block: number): number[] {
    const out = new Array<number>(this.rank);
    for (let d = this.rank - 1; d >= 0; d--) {
      out[d] = block % this.counts[d]!;
      block = Math.floor(block / this.counts[d]!);
    }
    return out;
  }

  /** number gives the block at a place. */
  number(coordinates: number[]): number {
    return coordinates.reduce((n, c, d) => n * this.counts[d]! + c, 0);
  }

  /** range gives [start, stop) of a block along a dimension. */
  range(coordinate: number, dim: number): [number, number] {
    return [coordinate * this.shard[dim]!, (coordinate + 1) * this.shard[dim]!];
  }

  /** color gives a block's color. */
  color(block: number): Swatch {
    const first = this.counts[this.cut[0] ?? 0] ?? 1;
    this.colors ??= palette(first, this.total / first);
    return this.colors(block);
  }
}
