// The export panel shows the layout as JAX code, Go code, files that start the job, a JSON document or a text table.

import { compose, text } from "./draft.js";
import { goCode } from "./go-code.js";
import { jaxCode } from "./jax-code.js";
import { pretty } from "./json.js";
import { jobset, slurm } from "./launch.js";
import type { Model } from "./model.js";
import { TextPanel, type TextTab } from "./text-panel.js";

const TABS: TextTab<Model>[] = [
  { key: "jax", title: "JAX", file: "load.py", content: ({ draft }) => jaxCode(draft) },
  { key: "go", title: "Go", file: "main.go", content: ({ draft, reply }) => goCode(draft, reply.document ?? text(draft)) },
  { key: "slurm", title: "Slurm", file: "job.sh", content: ({ draft }) => slurm(draft) },
  { key: "jobset", title: "JobSet", file: "jobset.yaml", content: ({ draft }) => jobset(draft) },
  { key: "json", title: "JSON", file: "layout.json", content: ({ draft }) => `${pretty(compose(draft))}\n` },
  { key: "text", title: "Text table", file: "layout.txt", content: ({ reply }) => reply.text ?? reply.error?.message ?? "" },
];

export class OutPanel extends TextPanel<Model> {
  protected readonly tabs = TABS;

  protected get selected(): string {
    return this.model.look.tab;
  }

  protected set selected(tab: string) {
    void this.model.see({ tab });
  }
}

customElements.define("out-panel", OutPanel);
