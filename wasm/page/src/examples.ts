// Example layouts. The build inserts the documents of docs/layouts.

export interface Example {
  name: string;
  title: string;
  text: string;
}

declare const EXAMPLES: Example[];

/** examples lists the layouts in the page. */
export function examples(): Example[] {
  return EXAMPLES;
}
