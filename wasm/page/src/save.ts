// Exports: text to the clipboard, files to the download folder.

/** copy puts text on the clipboard and reports whether the browser allowed it. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** save downloads a file. */
export function save(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const STYLES = ["fill", "stroke", "stroke-width", "opacity", "font-family", "font-size", "font-weight", "text-anchor", "color"];

/** picture combines drawings side by side into one standalone SVG. paper is the background color and ink the
 * color of the title. Computed styles become attributes, because the file has no style sheet. A canvas becomes
 * an image. */
export function picture(drawings: (SVGSVGElement | HTMLCanvasElement)[], title: string, paper: string, ink: string): string {
  const gap = 28;
  const top = 44;
  let x = gap;
  let height = 0;
  const parts = drawings.map((d) => {
    const box = d.getBoundingClientRect();
    const at = x;
    x += box.width + gap;
    height = Math.max(height, box.height);
    return `<g transform="translate(${at} ${top})">${d instanceof SVGSVGElement ? inlined(d) : image(d, box)}</g>`;
  });
  const [w, h] = [Math.ceil(x), Math.ceil(top + height + gap)];
  const text = title.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}">`,
    `<rect width="${w}" height="${h}" fill="${paper}"/>`,
    `<text x="${gap}" y="27" fill="${ink}" font-family="system-ui, sans-serif" font-size="13" font-weight="600">${text}</text>`,
    ...parts,
    "</svg>",
  ].join("");
}

function inlined(drawing: SVGSVGElement): string {
  const copy = drawing.cloneNode(true) as SVGSVGElement;
  const from = [drawing, ...drawing.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, i) => {
    const style = getComputedStyle(from[i]!);
    for (const name of STYLES) element.setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "style", "tabindex", "role"]) element.removeAttribute(name);
    for (const child of [...element.childNodes]) if (child.nodeType === Node.COMMENT_NODE) child.remove();
  });
  const box = drawing.getBoundingClientRect();
  copy.setAttribute("width", String(box.width));
  copy.setAttribute("height", String(box.height));
  return new XMLSerializer().serializeToString(copy);
}

function image(canvas: HTMLCanvasElement, box: DOMRect): string {
  const size = `width="${box.width}" height="${box.height}"`;
  return `<image href="${canvas.toDataURL()}" ${size} preserveAspectRatio="none" style="image-rendering:pixelated"/>`;
}

/** png renders an SVG at twice its size. */
export async function png(svg: string): Promise<Blob> {
  const drawing = new Image();
  drawing.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await drawing.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [drawing.width * 2, drawing.height * 2];
  canvas.getContext("2d")!.drawImage(drawing, 0, 0, canvas.width, canvas.height);
  return new Promise((done, fail) => canvas.toBlob((b) => (b ? done(b) : fail(new Error("the browser could not create the picture")))));
}
