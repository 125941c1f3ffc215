// Formats and parses numbers, and computes with them.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/** bytes formats a size as the Go core does: 960 B, 8.25 KiB, 48.8 KiB. */
export function bytes(n: number | null): string {
  if (n === null) return "–";
  if (n < 1024) return `${n} B`;
  let unit = 1;
  for (n /= 1024; n >= 999.5 && unit < UNITS.length - 1; unit++) n /= 1024;
  const digits = n >= 100 ? 0 : n >= 10 ? 1 : 2;
  return `${Number(roundHalfEven(n, digits))} ${UNITS[unit]}`;
}

/** roundHalfEven rounds as Go does: half to even. */
function roundHalfEven(n: number, digits: number): string {
  const scaled = n * 10 ** digits;
  const low = Math.floor(scaled);
  const up = scaled - low > 0.5 || (scaled - low === 0.5 && low % 2 === 1);
  return ((low + (up ? 1 : 0)) / 10 ** digits).toFixed(digits);
}

/** whole formats an integer with commas between thousands. */
export function whole(n: number | null): string {
  return n === null ? "–" : n.toLocaleString("en-US");
}

/** times formats the factor part/of, such as 1×, 4.5× or 8,192×. */
export function times(part: number | null, of: number | null): string {
  if (part === null || !of) return "–";
  const factor = part / of;
  return `${factor < 100 ? Number(factor.toPrecision(3)) : whole(Math.round(factor))}×`;
}

/** count formats a number with its noun. */
export function count(n: number, one: string, many = `${one}s`): string {
  return `${whole(n)} ${n === 1 ? one : many}`;
}

/** span formats a half-open range by its first and its last index. */
export function span(start: number, stop: number): string {
  return stop - start === 1 ? whole(start) : `${whole(start)}–${whole(stop - 1)}`;
}

/** product multiplies numbers. The product of none is 1. */
export function product(numbers: number[]): number {
  return numbers.reduce((a, b) => a * b, 1);
}

/** gcd returns the greatest common divisor. */
export function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}

/** parseBytes parses a size with its unit, such as "16 GiB", "512M" or "1000 B". It throws for other texts. */
export function parseBytes(text: string): number {
  const [, number, unit, byte] = /^\s*(\d+(?:\.\d+)?)\s*([kmgtp]?)(i?b)?\s*$/i.exec(text) ?? [];
  if (!number) throw new Error("expected a size with its unit, such as 16 GiB");
  if (!unit && !byte) throw new Error(`${number} has no unit; write ${number} GiB, ${number} MiB or ${number} B`);
  const n = Math.round(Number(number) * (unit ? 1024 ** ("kmgtp".indexOf(unit.toLowerCase()) + 1) : 1));
  if (n < 1) throw new Error("expected a size of at least 1 B; leave the input empty for no bound");
  return n;
}
