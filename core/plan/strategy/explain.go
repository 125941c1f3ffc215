package strategy

import "github.com/meshfeed/meshfeed/core/problem"

// Codes lists the codes of a [Report]: the codes of problems, of rules that exclude meshes,
// and of assumptions.
func Codes() []problem.Code {
	list := []problem.Code{
		NoCandidate, NothingFits, NotPlanned, NarrowExperts, Tight, UnknownNumber, ActivationsUnknown, InputSlow, HostMemory, NoInputs, NoLayout,

		TensorHeads, TensorKVHeads, TensorFFN, TensorNode, ExpertCount, ContextSequence, ContextShort, PipeLayers,
		PipeChunks, Batch, MicroBatch, MicroBatchPipe, TreeSpec, TooManyMeshes,
	}
	for _, a := range assumptions {
		list = append(list, problem.Code(a.code))
	}
	return list
}

// Explain returns a few sentences about what a code of a [Report] means and what to
// do, or "" for an unknown code.
func Explain(code problem.Code) string { return explanations[code] }

var explanations = map[problem.Code]string{
	NoCandidate:        `Every mesh of the devices breaks a rule, so there is nothing to evaluate. "pruned" in the report counts the meshes by rule. Use another number of devices or another batch, or name fewer sizes in search.axes.`,
	NothingFits:        `No candidate fits into the memory of a device. The message names the candidate that needs the least. A candidate is near if it needs less than 10 % too much, which is within the uncertainty of activations. The hint names changes of the document after which a candidate fits, such as more devices or recomputation.`,
	NotPlanned:         `The planner counts gradients and states of the optimizer for every parameter, in the memory of the devices. Training of a few parameters, such as LoRA, and states in the memory of the host take less memory than the report says.`,
	NarrowExperts:      `Matrices of narrow experts reach a smaller share of the peak, and the exchange of tokens takes more of a step. Published runs of such models differ by a factor of ten between libraries. Measure a step, and write its share as training.efficiency.`,
	Tight:              `The best candidate fits by the published formula for activations, but not by the upper bound, which is what JAX keeps without jax.checkpoint. No candidate fits without them. Do what the hint says.`,
	UnknownNumber:      `A number that a time or the fit needs is missing: no source publishes it, or the document leaves it out. The path of the problem says where to give it. "meshfeed advise --list --device KIND" prints the numbers of a kind of device.`,
	ActivationsUnknown: `The model is given by its parameters or its arrays, from which activations do not follow. The memory is without them. Give activation_bytes_per_example, or describe the model as a transformer.`,
	InputSlow:          `The input delivers fewer rows per second than the step needs, so devices wait for it. Use more processes, faster storage, or smaller rows. input.rows_per_second is the rate that the document gives.`,
	HostMemory:         `The batches of a process, with those read ahead, need more memory than its host has. Lower prefetch, or use more processes.`,
	NoInputs:           `The arrays of a batch are not known, so the report has no layout for a loader. Give model.inputs, as the arrays of a layout without specs. A transformer needs none: a row has the tokens of an example.`,
	NoLayout:           `The layout of the best candidate has an error, which the message repeats, so no loader runs with it. Correct model.inputs, input.processes or the batch.`,

	TensorHeads:     `A mesh is left out because tensor does not divide the query heads. Each device computes whole heads.`,
	TensorKVHeads:   `A mesh is left out because tensor neither divides the key and value heads nor is a multiple of them. With a multiple, several devices hold the same head.`,
	TensorFFN:       `A mesh is left out because tensor does not divide the width of the feed-forward block, or of an expert.`,
	TensorNode:      `A mesh is left out because tensor is larger than a node. Tensor parallelism communicates in every layer, which is slow between nodes. To evaluate such meshes, name the sizes of tensor in search.axes.`,
	ExpertCount:     `A mesh is left out because expert does not divide the number of experts. Each device holds whole experts.`,
	ContextSequence: `A mesh is left out because context does not divide the tokens of an example.`,
	ContextShort:    `A mesh is left out because it splits a sequence that is shorter than 32,768 tokens, which rarely pays. To evaluate such meshes, name the sizes of context in search.axes.`,
	PipeLayers:      `A mesh is left out because a stage of its pipeline would have no layer.`,
	PipeChunks:      `A mesh is left out because the interleaved schedule cannot give its stages equal chunks of layers. The first and the last chunk may have one layer less. Use another number of chunks, or another schedule.`,
	Batch:           `A mesh is left out because data × fsdp × expert does not divide the global batch. Choose a batch with more divisors, such as a power of two.`,
	MicroBatch:      `A mesh is left out because training.micro_batch does not divide the examples of a replica. Choose another size, or "auto".`,
	MicroBatchPipe:  `A mesh is left out because the interleaved schedule needs a number of micro-batches that is a multiple of the stages. Choose smaller micro-batches, a larger batch, or another schedule.`,
	TreeSpec:        `A mesh is left out because an axis in the spec of an array does not divide a dimension of the array. JAX has no uneven shards.`,
	TooManyMeshes:   `More meshes break no rule than the planner evaluates, so those with the most axes are left out. Name the sizes of some axes in search.axes to evaluate others.`,

	"precision":         `The types of weights, gradients, the master copy and moments follow from training.precision and its defaults. They decide the bytes per parameter.`,
	"margin":            `A share of the memory of a device stays free for the runtime, communication and fragmentation. search.margin changes it; the default is a convention.`,
	"activations":       `Activations follow a published formula, within an interval of what the compiler can keep. Only a compiled step shows the exact number. Its memory_analysis() in JAX has it.`,
	"flash":             `Attention does not store the scores of all pairs of tokens. If the model stores them, write "attention": "plain" in training.`,
	"sequence-parallel": `The devices of tensor also split norms and dropout by the sequence, which saves activations. If the model does not, write "sequence_parallel": false in training.`,
	"scores":            `Flash attention skips the scores that a causal mask removes, so the time has half of them. The utilization (MFU) counts all, as most publications do. If the model has no causal mask, write "causal": false in the transformer.`,
	"vocabulary":        `The vocabulary is padded to a multiple of tensor, so that each device has equally many rows of the embedding. The padding takes memory and time.`,
	"routing":           `Tokens are spread evenly over the experts. Uneven routing makes the device with the most tokens slower than the report says.`,
	"capacity":          `An expert computes as many tokens as its capacity, also if fewer are sent to it. The padding takes time, but is not useful work, so the utilization leaves it out.`,
	"heads":             `The model has fewer key and value heads than tensor devices, so several devices hold and compute the same head. The copies take memory, and their gradients are summed once per step.`,
	"stages":            `The stages of a pipeline have unequal numbers of layers. Layers are spread so that the slowest stage has the fewest operations.`,
	"tied":              `The first and the last stage of a pipeline both hold a tied embedding, and sum its gradients once per step.`,
	"fsdp":              `The axis fsdp splits weights, gradients and states, as ZeRO stage 3 does. Weights are gathered for both passes of every micro-batch. A device holds two gathered layers at once. Without layers, gathered weights do not count.`,
	"zero":              `ZeRO splits states and gradients by elements, with padding, so that all replicas hold equally much. A spec of JAX divides dimensions only. If the replicas divide no dimension of an array, flatten and pad its states, choose another number of replicas, or use the axis fsdp. Stage 2 sums gradients for every micro-batch, other stages once per step.`,
	"context":           `Keys and values pass around a ring of the devices of context, and every device computes equally many scores. A causal mask needs a balanced order of the tokens for that.`,
	"recomputation":     `The backward pass computes some activations again: the scores of attention, or a whole layer. That saves memory and takes time. training.recomputation chooses.`,
	"efficiency":        `Matrix products reach a share of the peak FLOP/s. The default is the range of published runs on such devices. Measure your own, and write it as training.efficiency.`,
	"overlap":           `Communication of some axes runs during computation, and computation waits for the other axes. training.overlap says for each axis which is the case.`,
	"gradients":         `The sum of gradients over the replicas runs during the backward pass of the last micro-batch. What takes longer than that pass adds to the step.`,
	"links":             `Links reach a share of their bandwidth, which depends on the size of a message. Measure your own, and write it as training.link_efficiency.`,
	"latency":           `Each step of a collective adds a latency. The values are conventions. cluster.node_latency_ns and cluster.network_latency_ns change them.`,
	"torus":             `Mesh axes take whole dimensions of the torus if they can. An axis with a part of a dimension has fewer links, so the assignment of devices to the mesh matters.`,
	"slices":            `A slice of TPUs is counted as a straight torus. Links that only some shapes or generations have, such as the links of twisted slices, are left out.`,
	"memory-traffic":    `The update of the weights and the weights of every micro-batch pass through the memory of the device, at its full bandwidth. With a small batch, that takes longer than computing.`,
	"bubble":            `The stages of a pipeline are idle at the start and at the end of a step. The schedule decides how long; more micro-batches make the share smaller.`,
	"tf32":              `Products of float32 arrays run in TF32, as XLA does on GPUs by default. With a higher jax_default_matmul_precision they are slower.`,
	"flat":              `The model is given by its number of parameters only, so they count as one array that any number of devices can split. Dimensions that do not divide are not found.`,
	"quantized":         `Moments in integers are quantized in blocks of elements, each with a scale in float32. The scales are not counted, because they are less than 1 % of the moments.`,
	"tree-types":        `Gradients and moments have the type of their array, as in optax, unless training.precision names a type.`,
	"processes":         `The number of processes that load data follows from the cluster: one per node or TPU host. input.processes changes it.`,
}
