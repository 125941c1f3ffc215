// The worker: runs the core, which is Go code compiled to WebAssembly, and answers questions in order.

import { Answers } from "./answers.js";

let answers: Answers | null = null;

self.onmessage = ({ data }: MessageEvent<WebAssembly.Module | { name: keyof Answers; args: unknown[] }>): void => {
  if (data instanceof WebAssembly.Module) {
    answers = new Answers(data);
    return;
  }
  try {
    const method = answers![data.name] as (...args: unknown[]) => unknown;
    self.postMessage({ answer: method.apply(answers, data.args) });
  } catch (cause) {
    self.postMessage({ error: (cause as Error).message });
  }
};
