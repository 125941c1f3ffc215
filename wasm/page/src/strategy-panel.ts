// The export panel of the strategy tab: programs that compute the same report, the document, and the report as text.

import { state } from "lit/decorators.js";
import { failureText } from "./guest.js";
import { pretty } from "./json.js";
import { strategyCommand, strategyGo, strategyPython } from "./strategy-code.js";
import type { StrategyModel } from "./strategy-model.js";
import { TextPanel, type TextTab } from "./text-panel.js";

const TABS: TextTab<StrategyModel>[] = [
  { key: "text", title: "Text table", file: "strategy.txt", content: ({ reply }) => reply.text ?? (reply.error ? failureText(reply.error) : "") },
  { key: "json", title: "JSON", file: "strategy.json", content: ({ wanted }) => `${pretty(wanted)}\n` },
  { key: "command", title: "Command", file: "advise.sh", content: ({ wanted }) => strategyCommand(wanted) },
  { key: "python", title: "Python", file: "advise.py", content: ({ wanted }) => strategyPython(wanted) },
  { key: "go", title: "Go", file: "main.go", content: ({ wanted }) => strategyGo(wanted) },
];

export class StrategyPanel extends TextPanel<StrategyModel> {
  protected readonly tabs = TABS;
  @state() protected override selected = "text";
}

customElements.define("strategy-panel", StrategyPanel);
