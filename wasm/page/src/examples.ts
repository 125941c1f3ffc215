// Ready layouts. The build puts the documents of docs/layouts here.

export interface Example {
  name: string;
  title: string;
  text: string;
}

declare const EXAMPLES: Example[];

/** examples lists the layouts that came with the page. */
export function examples(): Example[] {
  return EXAMPLES;
}
