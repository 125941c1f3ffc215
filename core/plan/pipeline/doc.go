// Package pipeline builds schedules of pipeline parallelism as timelines, and
// counts their idle time and the activations that they keep.
//
// A pipeline has stages. Each stage is a group of devices with some layers of the
// model, and it runs one task at a time. A step splits its batch into micro-batches.
// With chunks, a stage has several parts of the model: part number chunk × stages +
// stage. The tasks of a micro-batch at a part are:
//
//   - Forward: needs the Forward of the part before it.
//   - Backward: the gradient of the inputs; needs the Backward of the part after it,
//     and the Forward of its own part.
//   - Weight: the gradient of the weights; needs the Backward of its own part. Only
//     zero-bubble has it as a task of its own. In all other kinds, Backward contains
//     it.
//
// Time counts in ticks, which may be any unit. [Build] makes a [Timeline]. [BubbleShare]
// and [LiveFormula] are the closed forms of the literature; the tests compare them with
// timelines, and check every timeline without the rules that built it.
package pipeline
