// Calls a WebAssembly module of meshfeed. Package reactor in wasm/guest documents how inputs and replies pass.

import { Host } from "./wasi.js";

/** Reactor has the exports of every module. */
export interface Reactor extends WebAssembly.Exports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  mf_input(n: number): number;
}

/** Instance runs a module. If a call fails, the next call uses a new WebAssembly instance. */
export abstract class Instance<E extends Reactor> {
  private exports: E | null = null;
  private host = new Host(this.name);

  constructor(
    private readonly module: WebAssembly.Module,
    private readonly name: string, // in error messages
  ) {}

  /** restart makes the next call use a new WebAssembly instance. */
  protected restart(): void {
    this.exports = null;
  }

  /** memory returns the bytes of the instance's memory. */
  protected get memory(): number {
    return this.exports?.memory.buffer.byteLength ?? 0;
  }

  /** ask makes one call of the module. If the call throws, the instance is dropped. */
  protected ask<T>(question: (e: E) => T): T {
    try {
      this.exports ??= this.start();
      return question(this.exports);
    } catch (cause) {
      this.restart();
      const output = this.host.output.trim();
      throw new Error(output ? `the ${this.name} failed: ${output.split("\n")[0]}` : String(cause), { cause });
    }
  }

  private start(): E {
    this.host = new Host(this.name);
    const exports = new WebAssembly.Instance(this.module, this.host.imports()).exports as E;
    this.host.memory = exports.memory;
    exports._initialize();
    return exports;
  }

  /** put copies the input of the next call into the instance's memory, and returns its length. */
  protected put(bytes: Uint8Array): number {
    const e = this.exports!;
    const at = e.mf_input(bytes.length);
    if (at === 0 && bytes.length > 0) throw new Error(`the ${this.name} takes at most 16 MiB at once`);
    new Uint8Array(e.memory.buffer, at, bytes.length).set(bytes);
    return bytes.length;
  }

  /** parse reads a reply that is JSON. */
  protected parse<T>(reply: bigint): T {
    const [at, size] = split(reply);
    return JSON.parse(new TextDecoder().decode(new Uint8Array(this.exports!.memory.buffer, at, size))) as T;
  }
}

/** split returns the address and the length of a reply. */
export function split(reply: bigint): [number, number] {
  const bits = BigInt.asUintN(64, reply);
  return [Number(bits >> 32n), Number(bits & 0xffffffffn)];
}
