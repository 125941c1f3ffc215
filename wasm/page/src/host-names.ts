// Reads the names of hosts, as Slurm writes them.

/** hostNames expands a list such as "node[001-004], login" into one name for each process. It throws for a list of
 * another length. An empty text has no names. */
export function hostNames(text: string, processes: number): string[] {
  if (text.trim() === "") return [];
  const names = text.split(/,(?![^[]*\])/).flatMap((part) => expand(part.trim()));
  if (names.length !== processes) throw new Error(`expected ${processes} names, such as node[01-${String(processes).padStart(2, "0")}], but these are ${names.length}`);
  return names;
}

/** expand expands the ranges of one name: node[1-2,7] is node1, node2 and node7. */
function expand(name: string): string[] {
  const [, before, list, after] = /^([\w.-]*)\[([\d,-]+)\]([\w.-]*)$/.exec(name) ?? [];
  if (list === undefined) {
    if (!/^[\w.-]+$/.test(name)) throw new Error(`"${name}" is not the name of a host, such as node01, or of several, such as node[01-16]`);
    return [name];
  }
  return list.split(",").flatMap((range) => {
    const [first = "", last = first] = range.split("-");
    const count = Number(last) - Number(first) + 1;
    if (first === "" || !(count >= 1 && count <= 1 << 20)) throw new Error(`"${range}" is not a range of numbers, such as 01-16`);
    return Array.from({ length: count }, (_, i) => `${before}${String(Number(first) + i).padStart(first.length, "0")}${after}`);
  });
}
