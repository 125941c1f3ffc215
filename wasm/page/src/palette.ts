// Colors of blocks. A block's position in the global array determines its color. The first partitioned
// dimension changes hue and lightness, the others change lightness. The hues run from blue to yellow, so
// that neighbors differ with every kind of color blindness. Every cell also has a text.

export interface Swatch {
  fill: string;
  ink: (typeof INKS)[number]; // legible on the fill
  rgb: [number, number, number]; // fill as bytes
}

/** The colors of text on a fill. */
export const INKS = ["#ffffff", "#0c1220"] as const;

/** The most hues and shades. If there are more blocks, neighbors share a color. */
const [HUES, LIGHTS] = [512, 64];

/** palette returns the color of each of first × rest blocks, which are numbered in row-major order. */
export function palette(first: number, rest: number): (block: number) => Swatch {
  const [hues, lights] = [Math.min(first, HUES), Math.min(rest, LIGHTS)];
  const all: Swatch[] = [];
  for (let i = 0; i < hues; i++) for (let j = 0; j < lights; j++) all.push(swatch(i, hues, j, lights));
  return (block) => {
    const j = block % rest;
    const i = (block - j) / rest;
    return all[Math.floor((i * hues) / first) * lights + Math.floor((j * lights) / rest)]!;
  };
}

/** swatch returns the color of hue i of first and shade j of rest. */
function swatch(i: number, first: number, j: number, rest: number): Swatch {
  const u = first > 1 ? i / (first - 1) : 0.3;
  const v = rest > 1 ? j / (rest - 1) : 0;
  const light = rest > 1 ? 0.38 + 0.3 * u + 0.2 * v : 0.39 + 0.48 * u;
  const rgb = fromOklch(light, 0.13 - 0.01 * v, 275 - 170 * u);
  const bright = luminance(rgb);
  return {
    fill: `#${rgb.map((c) => c.toString(16).padStart(2, "0")).join("")}`,
    // The ink with the higher WCAG contrast; 0.055 is about the dark ink's luminance + 0.05.
    ink: 1.05 / (bright + 0.05) > (bright + 0.05) / 0.055 ? INKS[0] : INKS[1],
    rgb,
  };
}

/** fromOklch converts a color to sRGB bytes. It reduces the chroma until the color is in the sRGB gamut.
 * The matrices are Björn Ottosson's: https://bottosson.github.io/posts/oklab/ */
function fromOklch(light: number, chroma: number, hue: number): [number, number, number] {
  for (let c = chroma; ; c -= 0.01) {
    const a = c * Math.cos((hue * Math.PI) / 180);
    const b = c * Math.sin((hue * Math.PI) / 180);
    const l = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (light - 0.0894841775 * a - 1.291485548 * b) ** 3;
    const rgb = [
      4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
      -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
      -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
    ];
    if (c <= 0 || rgb.every((x) => x > -0.0005 && x < 1.0005)) return rgb.map(gamma) as [number, number, number];
  }
}

/** gamma converts a linear sRGB channel to a byte. */
function gamma(x: number): number {
  const y = x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055;
  return Math.round(255 * Math.min(1, Math.max(0, y)));
}

/** luminance returns the WCAG relative luminance of sRGB bytes. */
function luminance(rgb: number[]): number {
  const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}
