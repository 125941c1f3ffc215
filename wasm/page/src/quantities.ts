// Formats and parses quantities with decimal units, as data sheets of devices have them: 80 GB, 3.35 TB/s, 989 TFLOP/s.

const PREFIXES = ["", "k", "M", "G", "T", "P", "E"];

/** decimal formats a quantity with three significant digits: 61.0 GB, 989 TFLOP/s. */
export function decimal(n: number, unit: string): string {
  let prefix = 0;
  let value = n;
  while (Math.abs(value) >= 999.5 && prefix < PREFIXES.length - 1) [value, prefix] = [value / 1000, prefix + 1];
  return `${prefix === 0 ? value : value.toPrecision(3)} ${PREFIXES[prefix]}${unit}`;
}

/** gigabytes formats the memory of a device. */
export function gigabytes(n: number | null): string {
  if (n === null) return "–";
  const gb = n / 1e9;
  return `${Math.abs(gb) >= 100 ? Math.round(gb).toLocaleString("en-US") : gb.toFixed(Math.abs(gb) >= 10 ? 1 : 2)} GB`;
}

const TIMES: [from: number, ns: number, unit: string][] = [[1e12, 60e9, "min"], [1e9, 1e9, "s"], [1e6, 1e6, "ms"], [1e3, 1e3, "µs"], [0, 1, "ns"]];

/** duration formats nanoseconds with three significant digits: 1.23 s, 456 ms, and minutes from 1,000 s. */
export function duration(ns: number | null): string {
  if (ns === null) return "–";
  const [, size, unit] = TIMES.find(([from]) => ns >= 0.9995 * from) ?? TIMES.at(-1)!;
  const value = ns / size;
  return `${value >= 100 ? Math.round(value).toLocaleString("en-US") : unit === "ns" ? Math.round(value) : value.toPrecision(3)} ${unit}`;
}

/** parseDuration parses a time with its unit, such as "250 ms" or "1.2 s", and returns milliseconds. It throws for other
 * texts. */
export function parseDuration(text: string): number {
  const [, number, unit] = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|min)\s*$/.exec(text) ?? [];
  const ms = Number(number) * { ms: 1, s: 1000, min: 60_000 }[unit as "ms" | "s" | "min"]!;
  if (!(ms > 0)) throw new Error("expected a time with its unit, such as 250 ms or 1.2 s");
  return ms;
}

/** share formats a part of a whole in percent. */
export function share(part: number, of: number): string {
  const percent = (100 * part) / of;
  return percent > 0 && percent < 0.95 ? "< 1 %" : `${Math.round(percent)} %`;
}

/** parseQuantity parses a number with an optional decimal or binary prefix, such as "80 GB", "3.35T", "94 GiB" or "1e12". It
 * throws for other texts. */
export function parseQuantity(text: string): number {
  const [, number, prefix, binary] = /^\s*(-?\d[\d,_]*(?:\.\d+)?(?:e\d+)?)\s*(?:([kmgtpe])(i)?)?[a-z/]*\s*$/i.exec(text) ?? [];
  if (!number) throw new Error("expected a number with a prefix, such as 80 G or 3.35 T");
  const power = prefix ? "kmgtpe".indexOf(prefix.toLowerCase()) + 1 : 0;
  const n = Math.round(Number(number.replaceAll(/[,_]/g, "")) * (binary ? 1024 : 1000) ** power);
  if (!Number.isSafeInteger(n) || n < 1) throw new Error("expected a number from 1 to 9 P");
  return n;
}
