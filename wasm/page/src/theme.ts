// Light, dark, or what the system says.

const KEY = "meshfeed-theme";
export const THEMES = ["auto", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

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
  try {
    localStorage.setItem(KEY, t);
  } catch {
    // then it holds as long as the page
  }
}
