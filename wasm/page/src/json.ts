// JSON with objects that keep the order of their keys. JSON.parse moves keys that look like
// numbers to the front, but the order of a document's arrays matters.

export type Json = null | boolean | number | string | Json[] | JsonObject;
export type JsonObject = Map<string, Json>;

/** read parses a JSON text. It accepts the same texts as JSON.parse and throws the same errors. */
export function read(text: string): Json {
  JSON.parse(text); // checks the grammar; the reader below relies on it
  // The tokens are strings, punctuation, and all other values.
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g) ?? [];
  let at = 0;
  const value = (): Json => {
    const token = tokens[at++]!;
    if (token === "{") return object();
    if (token === "[") return list();
    return JSON.parse(token) as Json;
  };
  const object = (): JsonObject => {
    const out: JsonObject = new Map();
    while (tokens[at] !== "}") {
      if (tokens[at] === ",") at++;
      const key = JSON.parse(tokens[at]!) as string;
      at += 2; // the key and its colon
      out.set(key, value());
    }
    at++;
    return out;
  };
  const list = (): Json[] => {
    const out: Json[] = [];
    while (tokens[at] !== "]") {
      if (tokens[at] === ",") at++;
      out.push(value());
    }
    at++;
    return out;
  };
  return value();
}

/** write formats a value on one line. The text space follows every colon and comma. */
export function write(value: Json, space = ""): string {
  if (value instanceof Map) {
    return `{${[...value].map(([k, v]) => `${JSON.stringify(k)}:${space}${write(v, space)}`).join(`,${space}`)}}`;
  }
  if (Array.isArray(value)) return `[${value.map((v) => write(v, space)).join(`,${space}`)}]`;
  return JSON.stringify(value);
}

/** pretty formats a value over several lines. A value that fits into width characters is on one line. */
export function pretty(value: Json, indent = "", width = 96): string {
  const flat = write(value, " ");
  if (flat.length + indent.length <= width || !(value instanceof Map || Array.isArray(value))) return flat;
  const inner = indent + "  ";
  if (value instanceof Map) {
    const lines = [...value].map(([k, v]) => `${inner}${JSON.stringify(k)}: ${pretty(v, inner, width)}`);
    return `{\n${lines.join(",\n")}\n${indent}}`;
  }
  return `[\n${value.map((v) => inner + pretty(v, inner, width)).join(",\n")}\n${indent}]`;
}
