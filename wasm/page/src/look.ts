// The look: the settings that select which part of a layout the page shows, and how. They are not part of the
// layout.

export interface Look {
  array: string; // name of the array shown
  dims: [number, number] | null; // dimensions drawn down and across; null for the first two partitioned ones
  slice: number[]; // for every dimension: the index of the block shown, if the dimension is not drawn
  split: number | null; // number of mesh axes drawn down, the others across; null for the default
  pinned: number | null; // number of the block that the user selected
  tab: string; // the open tab of the export panel
  from: number; // the first process shown
  epoch: number; // epoch of the records shown
  step: number;
}

export const DEFAULT_LOOK: Look = { array: "", dims: null, slice: [], split: null, pinned: null, tab: "jax", from: 0, epoch: 0, step: 0 };
