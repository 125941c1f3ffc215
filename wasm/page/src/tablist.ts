// What all lists of tabs share: their look, and the keys that move between tabs.

import { css } from "lit";

export const tabStyles = css`
  [role="tablist"] { display: flex; flex-wrap: wrap; gap: 0.15rem; background: var(--field); border: 1px solid var(--line); border-radius: 8px; padding: 0.15rem; }
  [role="tab"] { border: 0; background: none; color: var(--muted); height: 1.6rem; }
  [role="tab"][aria-selected="true"] { background: var(--panel); color: var(--text); font-weight: 600; box-shadow: 0 1px 2px rgb(0 0 0 / 0.14); }
`;

/** nextTab returns the tab that a key selects, or null for any other key. */
export function nextTab<K>(e: KeyboardEvent, tabs: readonly K[], selected: K): K | null {
  const at = tabs.indexOf(selected);
  const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[e.key];
  if (next === undefined) return null;
  e.preventDefault();
  return tabs[(next + tabs.length) % tabs.length]!;
}
