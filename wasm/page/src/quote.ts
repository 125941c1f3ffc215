// Writes names as string literals that are valid in Python and in Go.

/** quoted writes a string literal. Characters that editors do not show are escaped: control and direction
 * marks, and the byte order mark, which Go rejects. */
export function quoted(s: string): string {
  return JSON.stringify(s).replaceAll(UNSEEN, (c) => {
    const code = c.codePointAt(0)!;
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** plain reports whether an editor shows all characters of a text. */
export function plain(s: string): boolean {
  return s.search(UNSEEN) < 0;
}

const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
