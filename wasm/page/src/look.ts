// The look: which part of the layout the page shows, and how. It is not part of the layout.

export interface Look {
  array: string;
  dims: [number, number] | null; // down and across; null for the first two partitioned dimensions
  slice: number[]; // block coordinate for every dimension
  split: number | null; // number of mesh axes that run down; null for the default
  pinned: number | null; // block
  tab: string;
  from: number; // the first process shown
  epoch: number; // of the records shown
  step: number;
}

export const DEFAULT_LOOK: Look = { array: "", dims: null, slice: [], split: null, pinned: null, tab: "jax", from: 0, epoch: 0, step: 0 };
