// The styles that all parts of the page share.

import { css } from "lit";

export const controls = css`
  *, *::before, *::after { box-sizing: border-box; }
  :host { display: block; }
  h2 { margin: 0; font-size: 0.8125rem; font-weight: 650; letter-spacing: 0.01em; color: var(--text); }
  h2 small { font-weight: 400; color: var(--muted); margin-left: 0.1rem; }
  input, select, textarea, button { font: inherit; font-size: 0.8125rem; color: inherit; }
  input, select {
    background: var(--field); border: 1px solid var(--line); border-radius: 6px; padding: 0.22rem 0.45rem; min-width: 0; width: 100%; height: 1.85rem;
  }
  input.code, .code { font-family: var(--mono); font-size: 0.78rem; }
  input:hover, select:hover { border-color: var(--edge); }
  :is(input, select, textarea, button, summary):focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; border-color: var(--accent); }
  [aria-invalid="true"] { border-color: var(--error); box-shadow: inset 0 0 0 1px var(--error); }
  button {
    background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: 0.2rem 0.6rem; cursor: pointer; height: 1.85rem; white-space: nowrap;
  }
  button:hover:not(:disabled) { border-color: var(--edge); background: var(--field); }
  button:disabled { opacity: 0.45; cursor: default; }
  button.quiet { border-color: transparent; background: none; color: var(--muted); padding: 0 0.4rem; }
  button.quiet:hover { color: var(--text); background: var(--field); }
  button.main { background: var(--accent); border-color: var(--accent); color: var(--on-accent); font-weight: 600; }
  button.main:hover { background: var(--accent); filter: brightness(1.08); }
  label { color: var(--muted); font-size: 0.75rem; display: grid; gap: 0.2rem; min-width: 0; }
  .cap { display: flex; align-items: center; gap: 0.3rem; margin-bottom: 0.2rem; min-width: 0; min-height: 1.1rem; }
  .cap label { display: inline; }
  label > :is(input, select) { color: var(--text); }
  .muted { color: var(--muted); }
  .num { font-variant-numeric: tabular-nums; }
  .row { display: flex; gap: 0.4rem; align-items: center; }
  .why { margin: 0.15rem 0 0; font-size: 0.75rem; color: var(--error); overflow-wrap: anywhere; }
  .scroll { overflow-x: auto; }
  table { border-collapse: collapse; width: 100%; font-size: 0.78rem; font-variant-numeric: tabular-nums; }
  th { text-align: left; font-weight: 500; color: var(--muted); padding: 0.25rem 0.7rem 0.35rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
  td { padding: 0.28rem 0.7rem 0.28rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
  tr:last-child td { border-bottom: 0; }
  .visually-hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
  @media (forced-colors: active) {
    :is([aria-pressed="true"], [aria-selected="true"], .main):is(button) { forced-color-adjust: none; background: Highlight !important; border-color: Highlight !important; color: HighlightText !important; }
    :is(.bar, .meter) { border: 1px solid CanvasText; }
    :is(.bar, .meter) i { forced-color-adjust: none; background: Highlight !important; }
  }
  @media print {
    * { print-color-adjust: exact; }
    button:not([aria-pressed], .path), [role="tablist"] { display: none !important; }
    :is(.scroll, pre) { overflow: visible !important; max-height: none !important; }
    pre { white-space: pre-wrap !important; overflow-wrap: anywhere; }
  }
`;
