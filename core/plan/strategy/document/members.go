package document

import (
	"github.com/meshfeed/meshfeed/core/layout"
	layouts "github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/internal/form"
)

// members is the table of a document.
func members(d *strategy.Document) []*form.Member {
	return []*form.Member{
		form.Key("model", model(&d.Model), "One of: a known transformer by its name, the sizes of a transformer, a number of parameters, or the arrays of a model.").Required(),
		form.Key("training", training(&d.Training), "How the model is trained.").Required(),
		form.Key("cluster", cluster(&d.Cluster), "The devices. A number replaces the number of the kind of device.").Required(),
		form.Key("search", search(&d.Search), "Which ways of splitting the model are tried."),
		form.Key("input", inputRate(&d.Input), "What is known about the input."),
	}
}

func model(m *strategy.Model) form.Value {
	return form.Object("a model",
		form.Key("preset", form.Word(&m.Preset, "the name of a model"), "A model that `meshfeed advise --list` names. A transformer beside it changes single sizes."),
		form.Key("transformer", form.Pointer(&m.Transformer, transformer), "The sizes of a decoder-only transformer."),
		form.Key("parameters", form.Integer(&m.Parameters, "a number of parameters", 1, layout.MaxInteger), "The number of parameters."),
		form.Key("tree", form.With(`"minProperties":1`, form.ByName(&m.Tree, "an object of arrays", nil, MaxArrays, array)), "The arrays of a model by name."),
		form.Key("inputs", form.ByName(&m.Inputs, "an object of arrays", nil, layout.MaxArrays, inputArray), "The arrays of a batch by name. Left out for a transformer: one row has the tokens of an example."),
		form.Key("activation_bytes_per_example", optional(&m.ActivationBytesPerExample, "a number of bytes", layout.MaxInteger), "With parameters or tree: bytes that the backward pass of one example needs."),
		form.Key("flops_per_example", optional(&m.FLOPsPerExample, "a number of operations", layout.MaxInteger), "With parameters or tree: floating-point operations of the forward pass of one example."),
	)
}

func transformer(t *strategy.Transformer) form.Value {
	return form.Object("a transformer", transformerMembers(t)...)
}

func transformerMembers(t *strategy.Transformer) []*form.Member {
	return []*form.Member{
		form.Key("layers", size(&t.Layers), "Layers of attention and feed-forward block."),
		form.Key("hidden", size(&t.Hidden), "The width of the residual stream."),
		form.Key("heads", size(&t.Heads), "Query heads."),
		form.Key("kv_heads", size(&t.KVHeads), "Key and value heads; heads if left out."),
		form.Key("head_dim", size(&t.HeadDim), "hidden / heads if left out."),
		form.Key("latent", form.Pointer(&t.Latent, latent), "Multi-head latent attention, as in DeepSeek-V3. head_dim is then without the rotary part."),
		form.Key("ffn", size(&t.FFN), "The width of the feed-forward block."),
		form.Key("gated", flag(&t.Gated), "Three matrices in the feed-forward block, as in SwiGLU, instead of two.").Default("false"),
		form.Key("vocab", size(&t.Vocab), "The number of tokens."),
		form.Key("tied", flag(&t.Tied), "The head uses the token embedding.").Default("false"),
		form.Key("sequence", size(&t.Sequence), "Tokens per example."),
		form.Key("biases", flag(&t.Biases), "Every matrix of a layer has a bias, except routers.").Default("false"),
		form.Key("qkv_biases", flag(&t.QKVBiases), "Query, key and value have biases.").Default("false"),
		form.Key("norm", form.Choice(&t.Norm, "a kind of norm", "rms", "layer"), "RMSNorm has a scale, LayerNorm also a bias.").Default(`"rms"`),
		form.Key("positions", form.Choice(&t.Positions, "a kind of positions", "rotary", "learned"), "Learned positions are an array of the model; rotary positions are not.").Default(`"rotary"`),
		form.Key("dropout", flag(&t.Dropout), "The backward pass keeps masks of dropout.").Default("false"),
		form.Key("causal", flag(&t.Causal), "Attention has a causal mask, so flash attention computes half of the scores.").Default("true"),
		form.Key("experts", form.Pointer(&t.Experts, experts), "A mixture of experts in place of the feed-forward block."),
	}
}

func latent(l *strategy.Latent) form.Value {
	return form.Object("latent attention",
		form.Key("query", width(&l.Query), "The width of the latent vector of queries; without one if left out."),
		form.Key("key_value", width(&l.KeyValue), "The width of the latent vector of keys and values.").Required(),
		form.Key("rotary", width(&l.Rotary), "The width of the rotary part of a query and of a key.").Required(),
		form.Key("value", width(&l.Value), "The width of a value; head_dim if left out."),
	)
}

func experts(e *strategy.Experts) form.Value {
	return form.Object("experts",
		form.Key("count", count(&e.Count), "Experts of a layer.").Required(),
		form.Key("active", count(&e.Active), "Experts that process a token.").Required(),
		form.Key("every", count(&e.Every), "Each n-th layer has experts.").Default("1"),
		form.Key("after", natural(&e.After), "How many of the first layers have no experts.").Default("0"),
		form.Key("ffn", count(&e.FFN), "The width of an expert; ffn of the transformer if left out."),
		form.Key("shared", natural(&e.Shared), "Further experts that process every token.").Default("0"),
		form.Key("capacity", form.Fixed(&e.Capacity, "a capacity", 1, 1<<30), "Places for tokens per routed token, with up to three decimals."),
	)
}

func array(a *strategy.Array) (*string, form.Value) {
	return &a.Name, form.Object("an array",
		form.Key("shape", layouts.Sizes(&a.Shape), "The size of every dimension.").Required(),
		form.Key("dtype", element(&a.Element), "The element type, as JAX spells it.").Required(),
		form.Key("spec", spec(&a.Spec), "How the array is split: per dimension null, an axis, or a list of axes with the most significant one first. If it is left out, fsdp splits any dimension that divides."),
	)
}

func inputArray(a *layout.ArraySpec) (*string, form.Value) {
	return &a.Name, form.Object("an array",
		form.Key("shape", inputShape{a}, `"B", then the shape of a row.`).Required(),
		form.Key("dtype", layouts.DType(&a.Type), "").Required(),
	)
}

func training(t *strategy.Training) form.Value {
	return form.With(`"oneOf":[{"required":["batch"]},{"required":["tokens"]}]`, form.Object("a training",
		form.Key("batch", form.Integer(&t.Batch, "a number of examples", 1, layout.MaxRecords), "Examples of the global batch."),
		form.Key("tokens", tokens(&t.Tokens), "Tokens of the global batch, instead of batch."),
		form.Key("total_tokens", tokens(&t.TotalTokens), "Tokens of the whole training of a transformer, for its days and device-hours."),
		form.Key("micro_batch", microBatch{form.Integer(&t.MicroBatch, microBatches, 1, layout.MaxRecords)}, "Examples that a replica computes at once; the rest is accumulated.").Default(`"auto"`),
		form.Key("optimizer", name(&t.Optimizer), "adamw, adafactor, lion, sgd, momentum or muon.").Default(`"adamw"`),
		form.Key("precision", precision(&t.Precision), "Element types, as JAX spells them."),
		form.Key("recomputation", form.Choice(&t.Recomputation, "a name", strategy.Auto, strategy.None, strategy.Dots, strategy.Selective, strategy.Full), "Which activations the backward pass computes again. "+
			"dots keeps the results of matrix products with weights, as jax.checkpoint does with the policy dots_with_no_batch_dims_saveable; selective keeps all but the scores of attention, as Megatron-LM does. "+
			"auto tries none, dots and full.").Default(`"auto"`),
		form.Key("attention", form.Choice(&t.Attention, "a name", strategy.Flash, strategy.Plain), "Whether the scores of all pairs of tokens are kept: plain keeps them, flash does not.").Default(`"flash"`),
		form.Key("schedule", name(&t.Schedule), "The schedule of a pipeline: 1f1b, interleaved, gpipe or zero-bubble. auto tries the first two.").Default(`"auto"`),
		form.Key("chunks", form.Described(`"type":"integer","minimum":1,"maximum":1024`, form.Integer(&t.Chunks, "a number of chunks", 1, layout.MaxInteger)), "Chunks of layers per stage, with schedule interleaved; the fewest and the most are tried if left out."),
		form.Key("sequence_parallel", flag(&t.SequenceParallel), "Split norms and dropout by the sequence over tensor.").Default("true"),
		form.Key("overlap", form.ByName(&t.Overlap, "an overlap", strategy.Axes(), len(strategy.Axes()), overlap), "Whether the communication of an axis runs during computation."),
		form.Key("efficiency", interval(&t.Efficiency), "The least and the most share of the peak FLOP/s that matrix products reach, with up to three decimals. The default depends on the kind of device."),
		form.Key("link_efficiency", interval(&t.LinkEfficiency), "The least and the most share of their bandwidth that links between devices reach, with up to three decimals.").Default("[0.35,1]"),
	))
}

func overlap(o *strategy.AxisOverlap) (*string, form.Value) { return &o.Axis, boolean(&o.Overlap) }

func precision(p *strategy.Precision) form.Value {
	return form.Object("a precision",
		form.Key("compute", element(&p.Compute), "The type of matrix products and activations.").Default(`"bfloat16"`),
		form.Key("weights", element(&p.Weights), "The type of the weights that matrix products use.").Default(`"bfloat16"`),
		form.Key("master", master{element(&p.Master), &p.Master}, "The type of the optimizer's copy of the weights; null for no copy.").Default(`"float32"`),
		form.Key("gradients", element(&p.Gradients), "The type of gradients; the type of the weights if left out.").Default(`"bfloat16"`),
		form.Key("moments", element(&p.Moments), "The type of the optimizer's states.").Default(`"float32"`),
	)
}

func cluster(c *strategy.Cluster) form.Value {
	const latencies = "Nanoseconds of one step of a collective; as usual for the links if left out."
	return form.Object("a cluster",
		form.Key("devices", devices(&c.Devices), "").Required(),
		form.Key("device", form.Word(&c.Device, "the name of a device"), "A kind of device that `meshfeed advise --list` names, or what a device of JAX has as device_kind."),
		form.Key("per_node", devices(&c.PerNode), "Devices of a node."),
		form.Key("memory_bytes", rate(&c.MemoryBytes), "Memory of a device, in bytes."),
		form.Key("flops_per_second", rate(&c.FLOPsPerSecond), "Dense, in the compute precision."),
		form.Key("hbm_bytes_per_second", rate(&c.HBMBytesPerSecond), "Between a device and its memory."),
		form.Key("node_bytes_per_second", rate(&c.NodeBytesPerSecond), "The rate of a device's links inside a node, one way."),
		form.Key("network_bytes_per_second", rate(&c.NetworkBytesPerSecond), "The rate of a device's links to other nodes, one way."),
		form.Key("node_latency_ns", latency(&c.NodeLatencyNs), latencies),
		form.Key("network_latency_ns", latency(&c.NetworkLatencyNs), latencies),
		form.Key("topology", form.Word(&c.Topology, "the name of a topology"), "The topology of the links inside a node."),
		form.Key("host_bytes", rate(&c.HostBytes), "Memory of a host."),
	)
}

func search(s *strategy.Search) form.Value {
	stage := func(to *int) form.Value { return form.Integer(to, "a stage", 0, 2) }
	margin := func(to *int) form.Value { return form.Fixed(to, "a margin", 0, strategy.MaxMargin) }
	return form.Object("a search",
		form.Key("axes", form.ByName(&s.Axes, "an object of axes", strategy.Axes(), len(strategy.Axes()), axisSizes), "The sizes that an axis may have: one, or a list. An axis that is left out takes all sizes."),
		form.Key("zero", form.List(&s.ZeRO, "a list of stages", 3, stage), "Stages of ZeRO over the replicas of the weights. Stage 3 is the axis fsdp.").Default("[0,1,2]"),
		form.Key("margin", form.Pointer(&s.Margin, margin), "The share of a device's memory that stays free, with up to three decimals.").Default("0.1"),
		form.Key("keep", form.Integer(&s.Keep, "a number of candidates", 1, strategy.MaxKeep), "The most candidates that the report lists.").Default("20"),
		form.Key("pruned", boolean(&s.Pruned), "Whether the report lists the meshes that were not evaluated.").Default("false"),
	)
}

func axisSizes(a *strategy.AxisSizes) (*string, form.Value) { return &a.Axis, sizes(&a.Sizes) }

func inputRate(i *strategy.Input) form.Value {
	return form.Object("an input",
		form.Key("rows_per_second", form.Integer(&i.RowsPerSecond, "a number of rows", 1, layout.MaxRecords), "Rows that all processes together deliver, as `meshfeed bench` measures them."),
		form.Key("processes", form.Integer(&i.Processes, "a number of processes", 1, layout.MaxProcesses), "Processes that read; one per node if left out."),
	)
}
