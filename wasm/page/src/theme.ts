// The theme: light, dark, or the system's setting.

const KEY = "meshfeed-theme";
export const THEMES = ["auto", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const changed = new EventTarget();
const system = matchMedia("(prefers-color-scheme: dark)");

/** watchTheme calls redraw whenever the colors of the page change. The returned function ends this. */
export function watchTheme(redraw: () => void): () => void {
  for (const target of [changed, system]) target.addEventListener("change", redraw);
  return () => [changed, system].forEach((target) => target.removeEventListener("change", redraw));
}

/** theme returns the chosen theme. A page from a file may have no local storage. */
export function theme(): Theme {
  try {
    return THEMES.find((t) => t === localStorage.getItem(KEY)) ?? "auto";
  } catch {
    return "auto";
  }
}

/** setTheme sets the theme and stores it if possible. */
export function setTheme(t: Theme): void {
  if (t === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = t;
  changed.dispatchEvent(new Event("change"));
  try {
    localStorage.setItem(KEY, t);
  } catch {
    // without storage, the theme lasts until the page is closed
  }
}
