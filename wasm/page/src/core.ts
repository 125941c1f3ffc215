// The layout core beside the page: questions go to a worker, so that the page takes input while an
// answer is worked out.

import type { Answers } from "./answers.js";

declare const WORKER: string; // the worker's program, which the build puts here

type Method = "describe" | "show" | "costs" | "schema";

interface Task {
  message: { name: Method; args: unknown[] };
  signal: AbortSignal;
  resolve(answer: unknown): void;
  reject(cause: Error): void;
}

/** PATIENCE is how long an answer that nobody wants may still hold up the next one, in milliseconds. */
const PATIENCE = 150;

/** Dropped is what a question gets whose answer is not wanted any more. */
export class Dropped extends Error {}

/** Core asks one question at a time, in order. */
export class Core {
  private static address = "";
  private worker: Worker | null = null;
  private running: Task | null = null;
  private waiting: Task[] = [];
  private impatience = 0;

  constructor(private readonly module: WebAssembly.Module) {}

  /** ask puts a question. Once its signal is aborted it is dropped, and a worker that is still busy
   * with it is replaced. */
  ask<M extends Method>(name: M, args: Parameters<Answers[M]>, signal: AbortSignal): Promise<ReturnType<Answers[M]>> {
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
    if (this.running === task) this.impatience = setTimeout(() => this.finish(null, true), PATIENCE);
  }

  /** finish ends the running question, and where the worker is of no more use, the worker. */
  private finish(answer: ((task: Task) => void) | null, replace = false): void {
    clearTimeout(this.impatience);
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
    Core.address ||= URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
    const worker = new Worker(Core.address);
    worker.onmessage = ({ data }: MessageEvent<{ answer?: unknown; error?: string }>) => {
      this.finish((task) => (data.error === undefined ? task.resolve(data.answer) : task.reject(new Error(data.error))));
    };
    worker.onerror = (e) => {
      e.preventDefault();
      this.finish((task) => task.reject(new Error(e.message || "the worker of the layout core could not start")), true);
    };
    worker.postMessage(this.module);
    return worker;
  }
}
