// Answers the page's questions in a worker, in order. The first message is the WebAssembly module.

type Question = { name: string; args: unknown[] };

/** serve starts to answer. start makes the object with the methods that answer the
 * questions. */
export function serve(start: (module: WebAssembly.Module) => object): void {
  let answers: Record<string, (...args: unknown[]) => unknown> = {};
  self.onmessage = ({ data }: MessageEvent<WebAssembly.Module | Question>): void => {
    if (data instanceof WebAssembly.Module) {
      answers = start(data) as typeof answers;
      return;
    }
    try {
      self.postMessage({ answer: answers[data.name]!(...data.args) });
    } catch (cause) {
      self.postMessage({ error: (cause as Error).message });
    }
  };
}
