// Names as string literals that Python and Go read alike.

/** quoted writes a string literal. What an editor would not show, or would show elsewhere, is
 * spelled out: a byte order mark, which Go refuses, or marks that turn the direction of text. */
export function quoted(s: string): string {
  return JSON.stringify(s).replaceAll(UNSEEN, (c) => {
    const code = c.codePointAt(0)!;
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** plain says whether an editor shows all of a text. */
export function plain(s: string): boolean {
  return s.search(UNSEEN) < 0;
}

const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
