// Runs the layout core in a worker, so that the page accepts input while the core computes.

import type { Answers } from "./answers.js";

declare const WORKER: string; // the worker's program, inserted by the build

type Method = "describe" | "show" | "costs" | "schema";

interface Task {
  message: { name: Method; args: unknown[] };
  signal: AbortSignal;
  resolve(answer: unknown): void;
  reject(cause: Error): void;
}

/** After this many milliseconds, a worker that still computes an aborted answer is replaced. */
const ABORT_DELAY = 150;

/** Dropped is the error of a question that was aborted. */
export class Dropped extends Error {}

/** Core sends one question at a time to the worker, in order. */
export class Core {
  private static address = "";
  private worker: Worker | null = null;
  private running: Task | null = null;
  private waiting: Task[] = [];
  private abortTimer = 0;

  constructor(private readonly module: WebAssembly.Module) {}

  /** ask sends a question. If its signal is aborted, the promise rejects with Dropped. */
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
