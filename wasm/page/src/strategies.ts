// Example strategies: the documents of docs/strategies, which the build inserts.

declare const STRATEGIES: { name: string; title: string; text: string }[];

export const strategies = STRATEGIES;
