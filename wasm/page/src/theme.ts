// Light, dark, or what the system says.

const KEY = "meshfeed-theme";
export const THEMES = ["auto", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const changed = new EventTarget();
const system = matchMedia("(prefers-color-scheme: dark)");

/** watchTheme calls back whenever the colors of the page change, until what it gives is called. */
export function watchTheme(redraw: () => void): () => void {
  for (const target of [changed, system]) target.addEventListener("change", redraw);
  return () => [changed, system].forEach((target) => target.removeEventListener("change", redraw));
}

/** theme gives what was chosen. A page from a file may have no memory. */
export function theme(): Theme {
  try {
    return THEMES.find((t) => t === localStorage.getItem(KEY)) ?? "auto";
  } catch {
    return "auto";
  }
}

/** setTheme chooses, and remembers the choice where it can. */
export function setTheme(t: Theme): void {
  if (t === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = t;
  changed.dispatchEvent(new Event("change"));
  try {
    localStorage.setItem(KEY, t);
  } catch {
    // then it holds as long as the page
  }
}
