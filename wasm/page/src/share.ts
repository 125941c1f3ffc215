// A document in a link: #v1= and a deflated layout in base64url, or #strategy.v1= and a strategy. Browsers do not send
// the part of a link after #.

export type Tab = "layout" | "strategy";

const MARKS: Record<Tab, string> = { layout: "#v1=", strategy: "#strategy.v1=" };
const MAX_BYTES = 8 << 20; // bytes of a document

/** fragment encodes a document of a tab. */
export async function fragment(tab: Tab, document: string): Promise<string> {
  const packed = await through(new TextEncoder().encode(document), new CompressionStream("deflate-raw"), Infinity);
  const base64 = btoa(Array.from(packed, (b) => String.fromCharCode(b)).join(""));
  return MARKS[tab] + base64.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** tabOf returns the tab that a link's fragment opens. */
export function tabOf(hash: string): Tab {
  return /^#strategy(\.|$)/.test(hash) ? "strategy" : "layout";
}

/** unpack decodes the document of a link's fragment. It returns null without one, and
 * throws if the fragment is damaged. */
export async function unpack(hash: string): Promise<string | null> {
  const tab = tabOf(hash);
  const mark = MARKS[tab];
  if (!hash.startsWith(mark)) return null;
  try {
    const binary = atob(hash.slice(mark.length).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (c) => c.charCodeAt(0));
    return new TextDecoder("utf-8", { fatal: true }).decode(await through(bytes, new DecompressionStream("deflate-raw"), MAX_BYTES));
  } catch (cause) {
    throw new Error(`the link is damaged: its ${tab} cannot be decoded`, { cause });
  }
}

/** through sends bytes through a stream. It throws if the output has more than most bytes. */
async function through(bytes: Uint8Array<ArrayBuffer>, stream: GenericTransformStream, most: number): Promise<Uint8Array> {
  const reader = (new Blob([bytes]).stream().pipeThrough(stream as ReadableWritablePair<Uint8Array, Uint8Array>)).getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for (let size = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    size += value.length;
    if (size > most) throw new Error("a document has at most 8 MiB");
    parts.push(value as Uint8Array<ArrayBuffer>);
  }
}

const SLOT = '<script type="application/json" id="document">';

/** withDocument inserts a document into the page's HTML, as the one that the page opens first. */
export function withDocument(page: string, document: string): string {
  const at = page.indexOf(SLOT) + SLOT.length;
  const safe = document.replaceAll("<", "\\u003c").replaceAll(">", "\\u003e");
  return page.slice(0, at) + safe + page.slice(page.indexOf("</script>", at));
}
