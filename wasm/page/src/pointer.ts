// JSON Pointers (RFC 6901).

/** pointer joins parts to a JSON Pointer. */
export function pointer(...parts: (string | number)[]): string {
  return parts.map((p) => `/${String(p).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** steps splits a JSON Pointer into its parts. */
export function steps(path: string): string[] {
  return path.split("/").slice(1).map((s) => s.replaceAll("~1", "/").replaceAll("~0", "~"));
}
