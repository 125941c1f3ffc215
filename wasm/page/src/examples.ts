// Example layouts: the documents of docs/layouts, which the build inserts.

declare const EXAMPLES: { name: string; title: string; text: string }[];

export const examples = EXAMPLES;
