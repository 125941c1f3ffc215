// The ten WASI functions that a Go guest needs to start: clocks, randomness and output. The guest has
// no files, no arguments and no network.

const OK = 0;
const BAD_FILE = 8; // the result of every other call; with ENOSYS Go's os package fails to initialize

/** Host implements WASI for one instance. */
export class Host {
  memory: WebAssembly.Memory | null = null;
  output = "";

  constructor(private readonly name: string) {} // name of the module, in error messages

  imports(): WebAssembly.Imports {
    const known: Record<string, (...args: never[]) => number> = {
      args_sizes_get: (a: number, b: number) => this.zeros(a, b),
      environ_sizes_get: (a: number, b: number) => this.zeros(a, b),
      args_get: () => OK,
      environ_get: () => OK,
      sched_yield: () => OK,
      poll_oneoff: () => OK,
      clock_time_get: (id: number, _precision: bigint, at: number) => this.clock(id, at),
      random_get: (at: number, n: number) => this.random(at, n),
      fd_write: (_fd: number, list: number, n: number, at: number) => this.write(list, n, at),
      proc_exit: (code: number) => {
        throw new Error(`the ${this.name} ended with code ${code}`);
      },
    };
    const module = new Proxy(known, { get: (all, name) => all[name as string] ?? (() => BAD_FILE) });
    return { wasi_snapshot_preview1: module as unknown as WebAssembly.ModuleImports };
  }

  private view(): DataView {
    return new DataView(this.memory!.buffer);
  }

  /** zeros writes the count and the size of an empty list. */
  private zeros(a: number, b: number): number {
    this.view().setUint32(a, 0, true);
    this.view().setUint32(b, 0, true);
    return OK;
  }

  private clock(id: number, at: number): number {
    const ms = id === 0 ? Date.now() : performance.now();
    this.view().setBigUint64(at, BigInt(Math.round(ms * 1e6)), true);
    return OK;
  }

  private random(at: number, n: number): number {
    for (let i = 0; i < n; i += 65536) {
      crypto.getRandomValues(new Uint8Array(this.memory!.buffer, at + i, Math.min(n - i, 65536)));
    }
    return OK;
  }

  private write(list: number, n: number, at: number): number {
    let total = 0;
    for (let i = 0; i < n; i++) {
      const start = this.view().getUint32(list + 8 * i, true);
      const size = this.view().getUint32(list + 8 * i + 4, true);
      this.output += new TextDecoder().decode(new Uint8Array(this.memory!.buffer, start, size));
      total += size;
    }
    this.view().setUint32(at, total, true);
    return OK;
  }
}
