// Package document reads and writes the planner's documents as JSON ([Parse],
// [Canonical]). It writes the planner's report as JSON ([Report]) and text ([Text]).
// Go, C, Python, the command and the browser share these forms.
package document

import (
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/internal/form"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Version is the version of the format.
const Version = form.Version

// Limits of a document's text, beside the limits of package strategy. Parse checks every
// limit before it allocates memory in proportion to the limited number.
const (
	MaxBytes  = form.MaxBytes
	MaxArrays = 1 << 16 // arrays of a model's tree
)

// Parse reads a document. Text that is not JSON in UTF-8, keys that repeat, are unknown
// or differ in case, and integers in other spellings, such as 1e3, are errors. So is
// everything that [strategy.Document.Validate] refuses. An error is InvalidArgument, with
// a JSON Pointer in its attribute "path".
func Parse(text []byte) (*strategy.Document, error) {
	var p parser
	if err := form.Strategy.Read(text, p.top); err != nil {
		return nil, err
	}
	if err := p.doc.Validate(); err != nil {
		return nil, err
	}
	return &p.doc, nil
}

// parser fills a document from its text.
type parser struct {
	*jsontext.Reader
	doc strategy.Document
}

func (p *parser) top(r *jsontext.Reader, key string) (err error) {
	p.Reader = r
	switch key {
	case "model":
		err = p.misplaced(p.Members("a model", 0, modelKeys, p.model))
	case "training":
		err = p.Members("a training", 0, trainingKeys, p.training)
	case "cluster":
		err = p.Members("a cluster", 1, clusterKeys, p.cluster)
	case "search":
		err = p.Members("a search", 0, []string{"axes", "zero", "margin", "keep", "pruned"}, p.search)
	case "input":
		err = p.Members("an input", 0, []string{"rows_per_second", "processes"}, p.input)
	}
	return err
}

var trainingKeys = []string{
	"batch", "tokens", "total_tokens", "micro_batch", "optimizer", "precision", "recomputation", "attention",
	"schedule", "chunks", "sequence_parallel", "overlap", "efficiency", "link_efficiency",
}

func (p *parser) training(key string) (err error) {
	t := &p.doc.Training
	switch key {
	case "batch":
		t.Batch, err = p.Integer("a number of examples", 1, layout.MaxRecords)
	case "tokens":
		t.Tokens, err = p.Integer("a number of tokens", 1, layout.MaxInteger)
	case "total_tokens":
		t.TotalTokens, err = p.Integer("a number of tokens", 1, layout.MaxInteger)
	case "micro_batch":
		if p.Kind() != jsontext.String {
			t.MicroBatch, err = p.Int(`a number of examples or "auto"`, 1, layout.MaxRecords)
			return err
		}
		var word string
		if word, err = p.Text(`a number of examples or "auto"`); err == nil && word != strategy.Auto {
			return p.Fail("expected a number of examples or %q, but found %s", strategy.Auto, wording.Quote(word))
		}
	case "precision":
		err = p.Members("a precision", 0, []string{"compute", "weights", "master", "gradients", "moments"}, p.precision)
	case "chunks":
		t.Chunks, err = p.Int("a number of chunks", 1, layout.MaxInteger)
	case "sequence_parallel":
		t.SequenceParallel, err = p.flag()
	case "overlap":
		err = p.Members("an overlap", 0, strategy.Axes(), func(axis string) error {
			overlap, err := p.Bool("true or false")
			t.Overlap = append(t.Overlap, strategy.AxisOverlap{Axis: axis, Overlap: overlap})
			return err
		})
	case "efficiency":
		err = p.interval(&t.Efficiency)
	case "link_efficiency":
		err = p.interval(&t.LinkEfficiency)
	default:
		to := map[string]*string{"optimizer": &t.Optimizer, "recomputation": &t.Recomputation, "attention": &t.Attention, "schedule": &t.Schedule}[key]
		*to, err = p.Word("a name")
	}
	return err
}

func (p *parser) interval(to *[2]int) error {
	return p.Tuple("an efficiency as [least, most]", 2, func(i int) error {
		n, err := p.Fixed("an efficiency", 1, 1000)
		to[i] = int(n)
		return err
	})
}

func (p *parser) precision(key string) (err error) {
	t := &p.doc.Training.Precision
	if key == "master" && p.Null() {
		t.Master = strategy.NoMaster
		return nil
	}
	to := map[string]*string{"compute": &t.Compute, "weights": &t.Weights, "master": &t.Master, "gradients": &t.Gradients, "moments": &t.Moments}[key]
	*to, err = p.Word("an element type")
	return err
}

var clusterKeys = []string{
	"devices", "device", "per_node", "memory_bytes", "flops_per_second", "hbm_bytes_per_second",
	"node_bytes_per_second", "network_bytes_per_second", "node_latency_ns", "network_latency_ns", "topology", "host_bytes",
}

func (p *parser) cluster(key string) (err error) {
	c := &p.doc.Cluster
	rates := map[string]*int64{
		"memory_bytes": &c.MemoryBytes, "flops_per_second": &c.FLOPsPerSecond, "hbm_bytes_per_second": &c.HBMBytesPerSecond,
		"node_bytes_per_second": &c.NodeBytesPerSecond, "network_bytes_per_second": &c.NetworkBytesPerSecond, "host_bytes": &c.HostBytes,
	}
	switch {
	case rates[key] != nil:
		*rates[key], err = p.Integer("a number", 1, layout.MaxInteger)
	case key == "device":
		c.Device, err = p.Word("the name of a device")
	case key == "topology":
		c.Topology, err = p.Word("the name of a topology")
	case key == "devices":
		c.Devices, err = p.Int("a number of devices", 1, strategy.MaxDevices)
	case key == "per_node":
		c.PerNode, err = p.Int("a number of devices", 1, strategy.MaxDevices)
	case key == "node_latency_ns":
		c.NodeLatencyNs, err = p.optional("a number of nanoseconds", strategy.MaxLatencyNs)
	case key == "network_latency_ns":
		c.NetworkLatencyNs, err = p.optional("a number of nanoseconds", strategy.MaxLatencyNs)
	}
	return err
}

// maxSizes bounds the sizes of an axis in a search.
const maxSizes = 1 << 10

func (p *parser) search(key string) (err error) {
	s := &p.doc.Search
	switch key {
	case "axes":
		err = p.Members("an object of axes", 0, strategy.Axes(), func(axis string) error {
			sizes, err := p.sizes()
			s.Axes = append(s.Axes, strategy.AxisSizes{Axis: axis, Sizes: sizes})
			return err
		})
	case "zero":
		s.ZeRO = []int{}
		err = p.List("a list of stages", 3, func(int) error {
			n, err := p.Int("a stage", 0, 2)
			s.ZeRO = append(s.ZeRO, n)
			return err
		})
	case "margin":
		var n int64
		n, err = p.Fixed("a margin", 0, strategy.MaxMargin)
		s.Margin = new(int(n))
	case "keep":
		s.Keep, err = p.Int("a number of candidates", 1, strategy.MaxKeep)
	case "pruned":
		s.Pruned, err = p.Bool("true or false")
	}
	return err
}

// sizes reads a size, or a list of sizes.
func (p *parser) sizes() (sizes []int, err error) {
	if p.Kind() != jsontext.List {
		n, err := p.Int("a size or a list of sizes", 1, strategy.MaxDevices)
		return []int{n}, err
	}
	err = p.List("a list of sizes", maxSizes, func(int) error {
		n, err := p.Int("a size", 1, strategy.MaxDevices)
		sizes = append(sizes, n)
		return err
	})
	return sizes, err
}

func (p *parser) input(key string) (err error) {
	i := &p.doc.Input
	if key == "processes" {
		i.Processes, err = p.Int("a number of processes", 1, layout.MaxProcesses)
	} else {
		i.RowsPerSecond, err = p.Integer("a number of rows", 1, layout.MaxRecords)
	}
	return err
}

// flag reads a boolean for a field that may be missing.
func (p *parser) flag() (*bool, error) {
	v, err := p.Bool("true or false")
	return &v, err
}

// optional reads an integer from 0 to most for a field that may be missing.
func (p *parser) optional(want string, most int64) (*int64, error) {
	n, err := p.Integer(want, 0, most)
	return &n, err
}
