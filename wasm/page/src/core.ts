// Runs a WebAssembly module in a worker, so that the page accepts input while the module computes.

/** Methods are the questions that a worker answers. */
type Methods<A> = Record<keyof A, (...args: never[]) => unknown>;

interface Task {
  message: { name: PropertyKey; args: unknown[] };
  signal: AbortSignal;
  resolve(answer: unknown): void;
  reject(cause: Error): void;
}

/** After this many milliseconds, a worker that still computes an aborted answer is replaced. */
const ABORT_DELAY = 150;

/** Dropped is the error of a question that was aborted. */
export class Dropped extends Error {}

/** The addresses of the workers' programs. */
const addresses = new Map<string, string>();

/** Core sends one question at a time to the worker, in order. A is the class that answers in the worker. */
export class Core<A extends Methods<A>> {
  private worker: Worker | null = null;
  private running: Task | null = null;
  private waiting: Task[] = [];
  private abortTimer = 0;

  constructor(
    private readonly module: WebAssembly.Module,
    private readonly program: string, // program of the worker
  ) {}

  /** ask sends a question. If its signal is aborted, the promise rejects with Dropped. */
  ask<M extends keyof A>(name: M, args: Parameters<A[M]>, signal: AbortSignal): Promise<ReturnType<A[M]>> {
    return new Promise((resolve, reject) => {
      const task: Task = { message: { name, args }, signal, resolve: resolve as (answer: unknown) => void, reject };
      signal.addEventListener("abort", () => this.drop(task), { once: true });
      if (signal.aborted) return reject(new Dropped());
      this.waiting.push(task);
      this.next();
    });
  }

  private next(): void {
    if (this.running) return;
    this.running = this.waiting.shift() ?? null;
    if (!this.running) return;
    try {
      this.worker ??= this.start();
      this.worker.postMessage(this.running.message);
    } catch (cause) {
      this.finish((task) => task.reject(cause as Error));
    }
  }

  private drop(task: Task): void {
    task.reject(new Dropped());
    this.waiting = this.waiting.filter((t) => t !== task);
    if (this.running === task) this.abortTimer = setTimeout(() => this.finish(null, true), ABORT_DELAY);
  }

  /** finish ends the running question, and terminates the worker if replace is true. */
  private finish(answer: ((task: Task) => void) | null, replace = false): void {
    clearTimeout(this.abortTimer);
    const task = this.running;
    this.running = null;
    if (replace) {
      this.worker?.terminate();
      this.worker = null;
    }
    if (task && answer) answer(task);
    this.next();
  }

  private start(): Worker {
    if (!addresses.has(this.program)) addresses.set(this.program, URL.createObjectURL(new Blob([this.program], { type: "text/javascript" })));
    const worker = new Worker(addresses.get(this.program)!);
    worker.onmessage = ({ data }: MessageEvent<{ answer?: unknown; error?: string }>) => {
      this.finish((task) => (data.error === undefined ? task.resolve(data.answer) : task.reject(new Error(data.error))));
    };
    worker.onerror = (e) => {
      e.preventDefault();
      this.finish((task) => task.reject(new Error(e.message || "the worker could not start")), true);
    };
    worker.postMessage(this.module);
    return worker;
  }
}
