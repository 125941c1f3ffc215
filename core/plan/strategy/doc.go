// Package strategy plans how to split a model over devices: it computes what every
// way of splitting takes in memory and time, and ranks them.
//
// A [Document] describes a model, its training, and the devices. [Advise] returns a
// [Report] with the candidates from best to worst. For the best candidate it also has
// the pipeline stages, the communication, and the layout for its loader. It says how many
// rows per second the input must deliver.
//
// # Axes
//
// A candidate is a mesh of up to six axes with settings. The axes are, outermost first:
//
//	axis      splits                                  communicates
//	pipe      layers, into stages                     activations, between neighbors
//	data      the batch                               gradients, once per step
//	fsdp      the batch; weights, gradients, states   weights and gradients, for every micro-batch
//	expert    the batch; experts                      tokens, in layers with experts
//	context   the sequence                            keys and values, in every layer
//	tensor    heads, hidden units, vocabulary         activations, in every layer
//
// The settings are the stage of ZeRO, the recomputation of activations, the size of a
// micro-batch, and for a pipeline the schedule with its chunks of layers. ZeRO stages 0 to 2 are
// over the replicas of the weights, and fsdp is stage 3. A mesh that breaks a rule, such as a
// tensor axis that does not divide the heads, is not evaluated: [Report.Pruned] counts it.
//
// # Memory
//
// The planner reports the memory of a device in the stage that needs the most:
//
//   - Weights: the weights of the stage's layers, divided by tensor, expert and fsdp, if
//     these axes split them.
//   - Gradients: the same number of elements; from ZeRO stage 2 on, also divided by the
//     replicas. A weight of an expert has data × context replicas; every other weight
//     has data × context × expert.
//   - Optimizer: states and a master copy, divided by the replicas from ZeRO stage 1 on. Adam
//     in mixed precision has 2 + 2 + 12 = 16 bytes per parameter [Rajbhandari et al.,
//     arXiv 1910.02054, section 3.1].
//   - Activations: bytes of one layer and micro-batch [package transformer], times
//     layers, times micro-batches in flight: p - s of them on stage s of p with the
//     schedule 1F1B [package pipeline].
//   - Buffers: with fsdp two gathered layers and the gradients of one; with
//     recomputation what one layer keeps while its backward pass runs.
//
// A candidate fits if the sum leaves the margin free.
//
// # Time
//
// The time of a step is the time of the slowest stage. Layers are spread over the stages so
// that it has the fewest operations, with the head on the last stage. For one micro-batch
// the time has
//
//	compute   3 × the operations of the forward pass and of recomputation,
//	          over peak × efficiency; flash attention skips what a causal mask removes
//	hbm       the time by which reading weights exceeds compute
//	tensor    two all-reduces per layer in each pass [Shoeybi et al., arXiv 1909.08053]
//	fsdp      two all-gathers and a reduce-scatter per layer [arXiv 1910.02054]
//	context   a ring in each pass, with gradients in the second [Liu et al., 2310.01889]
//	expert    two all-to-alls per pass [Lepikhin et al., arXiv 2006.16668]
//	pipe      a message in each pass
//
// and once per step
//
//	data      the sum of gradients: an all-reduce, or for ZeRO a reduce-scatter of
//	          gradients and an all-gather of weights
//	hbm       the update of the weights
//	bubble    p - 1 micro-batches, or less with other schedules [package pipeline]
//
// Package collective turns bytes into time over the links that an axis crosses
// [package hardware]. Devices are in row-major order over the mesh, so tensor, the
// innermost axis, stays in a node.
//
// Communication of fsdp, context, pipe and data overlaps with computation, unless the
// document says otherwise. Communication of fsdp overlaps on up to 32 nodes only, as in published
// runs. Computation waits for all other communication. Let C be the time of computation, B the
// sum that overlaps, and W the sum that does not. The expected time of a micro-batch is
// max(C, B) + W. The sum of the gradients overlaps with the backward pass of the last
// micro-batch.
//
// Products reach a share of the peak, and links a share of their bandwidth. Both shares
// are intervals, and the expected time is for their middles. The best case has the highest
// shares, and all axes that overlap do so at the same time. The worst case has the lowest
// shares and no overlap. Most published times are between the two. Overlap changes a time
// by up to a factor of two, so a time is of little use without its assumptions.
// [Report.Assumptions] lists them.
//
// # Order
//
// Candidates that fit as JAX runs them come first, which is with the upper bound of their
// activations. Those that fit with fused kernels only follow. Both are in the order of
// expected time. Times within 1 % of the fastest one count as equal. Among equally fast
// candidates, the ones with fewer axes come first. After that, data precedes fsdp, tensor
// and pipe, and then a shorter time in the worst case decides. Candidates that do not fit
// follow, by their memory. The ranking compares only integers, so the order is the same on
// every machine.
//
// # Unknown numbers
//
// A number of the hardware that no source publishes stays unknown. A candidate that
// needs it has no time, and [Report.Problems] names the number.
//
// # Nothing fits
//
// If no candidate fits, the planner changes the document and evaluates it again: other
// meshes, smaller micro-batches, recomputation, smaller states, more devices. A problem
// names the smallest change of each kind that makes a candidate fit. If the best
// candidate fits only with fused kernels, a warning says so.
package strategy
