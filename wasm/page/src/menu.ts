// A select that works as a menu: a choice acts at once, and the select shows its title again.

import { html } from "lit";

/** menu renders a menu. choose gets the value of the chosen option. */
export function menu(name: string, title: string, options: [value: string, text: string][], choose: (value: string) => void): unknown {
  const onChange = (e: Event): void => {
    const select = e.target as HTMLSelectElement;
    const { value } = select;
    select.value = "";
    if (value) choose(value);
  };
  return html`<select aria-label=${name} style="width:auto" @change=${onChange}>
    <option value="">${title}</option>${options.map(([value, text]) => html`<option value=${value}>${text}</option>`)}</select>`;
}
