// A bar of the parts of a device's memory, with marks at the capacity and at what a candidate may take of it.

import { css, html, nothing } from "lit";
import { MEMORY_PARTS, type Memory } from "./advice.js";
import { limit, memoryColor } from "./candidate.js";

export const memoryBarStyles = css`
  .stackbar { position: relative; display: flex; height: 0.55rem; margin-top: 0.25rem; background: var(--field); border: 1px solid var(--line); border-radius: 3px; overflow: hidden; }
  .stackbar.tall { height: 1.6rem; border-radius: 5px; }
  .stackbar > i { display: block; height: 100%; flex: none; }
  .stackbar > i.idle { background: repeating-linear-gradient(45deg, var(--edge) 0 3px, transparent 3px 7px); }
  .stackbar > b { position: absolute; top: 0; bottom: 0; width: 0; border-left: 2px solid var(--text); }
  .stackbar > b.limit { border-left-style: dotted; }
  @media (forced-colors: active) {
    .stackbar { border: 1px solid CanvasText; forced-color-adjust: none; background: Canvas; }
    .stackbar > b { border-color: CanvasText; }
  }
`;

/** memoryBar renders a bar on a scale of most bytes. The numbers beside it say the same in words. */
export function memoryBar(m: Memory, most: number, tall = false): unknown {
  const percent = (n: number): string => `${(100 * n) / most}%`;
  const may = limit(m);
  return html`<div class="stackbar ${tall ? "tall" : ""}" aria-hidden="true">
    ${MEMORY_PARTS.map((part) => (m[part] > 0 ? html`<i style="width:${percent(m[part])};background:${memoryColor(part)}"></i>` : nothing))}
    ${m.capacity ? html`<b style="left:calc(${percent(m.capacity)} - 2px)"></b>` : nothing}
    ${may !== null && may > 0 ? html`<b class="limit" style="left:calc(${percent(may)} - 2px)"></b>` : nothing}</div>`;
}
