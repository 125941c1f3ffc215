// Generates programs and commands that compute the report of a strategy document.

import { type Json, type JsonObject, pretty } from "./json.js";
import { plain, quoted } from "./quote.js";
import { at } from "./strategy-draft.js";

const WIDE = 88; // characters in a line

/** Code is a Python expression: a text, or a bracket with its items, which fill one line or a line each. */
type Code = string | { open: string; items: [before: string, code: Code][]; close: string };

/** strategyPython returns a Python program that prints the report as a table. */
export function strategyPython(document: JsonObject): string {
  const rows = at(document, "/input/rows_per_second");
  const items: [string, Code][] = [
    ["model=", modelOf(document.get("model") ?? null)],
    ["training=", call("mf.strategy.training", document.get("training") ?? null)],
    ["cluster=", call("mf.strategy.cluster", document.get("cluster") ?? null, "device")],
    ...(document.has("search") ? [["search=", python(document.get("search")!)] as [string, Code]] : []),
    ...(rows === undefined ? [] : [["input=", python(rows)] as [string, Code]]),
  ];
  const text = pretty(document);
  const literal = text.includes("'''") || !plain(text.replaceAll("\n", "")) ? quoted(text) : `r'''\n${text}\n'''`;
  const typed = `advice = ${lines({ open: "mf.advise(", items, close: ")" }, "", 0)}`;
  return `import meshfeed as mf

${at(document, "/input/processes") === undefined ? typed : `advice = mf.Advice(${literal})`}
print(advice)
layout = advice.layout  # of the best candidate; None if none fits
`;
}

/** lines writes code on one line if that fits behind used characters, else with one item per line. */
function lines(code: Code, indent: string, used: number): string {
  if (typeof code === "string") return code;
  const line = flat(code);
  if (indent.length + used + line.length < WIDE && !line.startsWith("mf.advise")) return line;
  const inner = `${indent}    `;
  return `${code.open}\n${code.items.map(([before, item]) => `${inner}${before}${lines(item, inner, before.length)},\n`).join("")}${indent}${code.close}`;
}

function flat(code: Code): string {
  return typeof code === "string" ? code : `${code.open}${code.items.map(([before, item]) => before + flat(item)).join(", ")}${code.close}`;
}

/** modelOf writes the model of a document, by the function that makes it if there is one. */
function modelOf(model: Json): Code {
  if (!(model instanceof Map) || model.has("inputs") || model.has("tree")) return python(model);
  const sizes = model.get("transformer");
  if (model.has("preset") && (sizes === undefined || sizes instanceof Map)) return call("mf.strategy.preset", new Map([["preset", model.get("preset")!], ...(sizes ?? [])]), "preset");
  if (sizes instanceof Map) return call("mf.strategy.transformer", sizes);
  return call("mf.strategy.parameters", model, "parameters");
}

/** call writes a call with the members of an object as arguments. The member first has no name. */
function call(name: string, members: Json, first = ""): Code {
  if (!(members instanceof Map)) return python(members);
  const order = [...members].sort(([a], [b]) => Number(b === first) - Number(a === first));
  return { open: `${name}(`, items: order.map(([key, value]) => [key === first ? "" : `${key}=`, python(value)]), close: ")" };
}

/** python writes a value as Python does. */
function python(value: Json): Code {
  if (value === null) return "None";
  if (value === true || value === false) return value ? "True" : "False";
  if (value instanceof Map) return { open: "{", items: [...value].map(([key, v]) => [`${quoted(key)}: `, python(v)]), close: "}" };
  if (Array.isArray(value)) return { open: "[", items: value.map((v) => ["", python(v)]), close: "]" };
  return typeof value === "string" ? quoted(value) : String(value);
}

/** The flags of the command, by the path of their value. */
const FLAGS: Record<string, string> = {
  "/cluster/devices": "--devices",
  "/cluster/device": "--device",
  "/cluster/per_node": "--per-node",
  "/training/batch": "--batch",
  "/model/transformer/sequence": "--sequence",
  "/search/keep": "--keep",
};

/** strategyCommand returns the command that prints the report. If flags cannot say what a document says, the command
 * reads the document. */
export function strategyCommand(document: JsonObject): string {
  const rest = paths(document).filter((path) => !(path in FLAGS) && path !== "/meshfeed" && path !== "/model/preset");
  const preset = at(document, "/model/preset");
  const flags = Object.entries(FLAGS).map(([path, flag]) => [flag, at(document, path)] as const).filter(([, v]) => v !== undefined);
  if (rest.length > 0 || typeof preset !== "string" || !/^[\w.-]+$/.test(preset) || flags.some(([, v]) => !/^[\w.-]+$/.test(String(v)))) {
    return "# strategy.json is the document of the tab JSON\nmeshfeed advise strategy.json\n";
  }
  return `meshfeed advise ${preset}${flags.map(([flag, v]) => ` ${flag} ${String(v)}`).join("")}\n`;
}

/** paths lists the paths of all values of a document, except objects. */
function paths(value: Json, path = ""): string[] {
  return value instanceof Map ? [...value].flatMap(([key, v]) => paths(v, `${path}/${key}`)) : [path];
}

/** strategyGo returns a Go program that prints the report as a table. */
export function strategyGo(document: Json): string {
  const text = pretty(document);
  const literal = text.includes("`") || !plain(text.replaceAll("\n", "")) ? quoted(text) : `\`${text}\``;
  return `package main

import (
	"fmt"
	"log"

	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/plan/strategy/document"
)

const question = ${literal}

func main() {
	d, err := document.Parse([]byte(question))
	if err != nil {
		log.Fatal(err)
	}
	report, err := strategy.Advise(d)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(document.Text(d, report))
}
`;
}
