// Calls the strategy planner: Go code compiled to WebAssembly. This code runs in the worker.

import type { Advised, Catalog } from "./advice.js";
import { type Failure, failureText } from "./guest.js";
import { Instance, type Reactor } from "./instance.js";

/** Exports are the functions of the module. Package advice in wasm/internal documents the replies. */
interface Exports extends Reactor {
  mf_advise(n: number): bigint;
  mf_catalog(): bigint;
  mf_diagram(n: number, width: number): bigint;
}

/** Planner answers the questions of the page. */
export class Planner extends Instance<Exports> {
  constructor(module: WebAssembly.Module) {
    super(module, "planner");
  }

  /** advise evaluates a strategy document. */
  advise(document: string): Advised {
    return this.ask((e) => this.parse<Advised>(e.mf_advise(this.put(new TextEncoder().encode(document)))));
  }

  /** catalog lists the models and the devices that the planner knows by name. */
  catalog(): Catalog {
    return this.ask((e) => this.parse<Catalog>(e.mf_catalog()));
  }

  /** diagram draws a diagram document at most width pixels wide, and returns the SVG. It throws if the document is
   * invalid. */
  diagram(document: string, width: number): string {
    const { svg, error } = this.ask((e) => this.parse<{ svg: string; error: Failure | null }>(e.mf_diagram(this.put(new TextEncoder().encode(document)), width)));
    if (error) throw new Error(failureText(error));
    return svg;
  }
}
