package strategy

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/plan/internal/amount"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/form"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Validate checks a document before anything is computed. An error is
// InvalidArgument, with a JSON Pointer in its attribute "path".
func (d *Document) Validate() error {
	for _, check := range []func() error{d.Model.validate, d.Training.validate, d.Cluster.validate, d.Search.validate, d.Input.validate} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (m *Model) validate() error {
	described := "transformer"
	if m.Preset != "" && m.Transformer == nil {
		described = "preset"
	}
	var forms []string
	for _, f := range []struct {
		name  string
		given bool
	}{{described, m.Preset != "" || m.Transformer != nil}, {"parameters", m.Parameters != 0}, {"tree", m.Tree != nil}} {
		if f.given {
			forms = append(forms, f.name)
		}
	}
	switch {
	case len(forms) == 0:
		return form.Strategy.Invalid("/model", "there is no model").WithHint(`name a "preset", or give a "transformer", "parameters" or a "tree"`)
	case len(forms) > 1:
		return form.Strategy.Invalid("/model", "the model has %d forms: %s", len(forms), wording.QuotedList(forms)).WithHint("keep one of them")
	case m.Parameters < 0 || m.Parameters > layout.MaxInteger:
		return form.Strategy.Invalid("/model/parameters", "the model has %d parameters, but must have from 1 to 2^53", m.Parameters)
	}
	for _, check := range []func() error{func() error { return m.validateExample(forms[0]) }, m.validateTree, m.validateInputs} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// validateInputs checks the arrays of a batch by the rules for arrays of a layout.
func (m *Model) validateInputs() error {
	for _, a := range m.Inputs {
		path := "/model/inputs/" + jsontext.Escape(a.Name)
		if a.Static {
			return form.Strategy.Invalid(path+"/shape", "the array has no batch dimension").WithHint(`begin its shape with "B"`)
		}
		if a.Spec != nil {
			return form.Strategy.Invalid(path+"/spec", "the planner chooses the spec").WithHint("leave it out")
		}
	}
	d := layout.Document{Mesh: layout.MeshSpec{Axes: []mesh.Axis{{Name: Data, Size: 1}}}, Batch: &layout.BatchSpec{Size: []int{1}}, Arrays: m.Inputs}
	err := d.Validate()
	if e, ok := errors.AsType[*status.Error](err); ok {
		path, _ := e.Attr("path").(string)
		return form.Strategy.Invalid("/model/inputs"+strings.TrimPrefix(path, "/arrays"), "%s", strings.TrimPrefix(e.Msg, path+": ")).WithHint("%s", e.Hint)
	}
	return err
}

// validateExample checks the costs of an example. A transformer must not give them,
// because they follow from its sizes.
func (m *Model) validateExample(described string) error {
	for _, f := range []struct {
		key   string
		value *int64
	}{{"activation_bytes_per_example", m.ActivationBytesPerExample}, {"flops_per_example", m.FLOPsPerExample}} {
		path := "/model/" + f.key
		switch {
		case f.value == nil:
		case described == "transformer" || described == "preset":
			return form.Strategy.Invalid(path, "the number follows from the transformer").WithHint("leave it out")
		case *f.value < 0 || *f.value > layout.MaxInteger:
			return form.Strategy.Invalid(path, "the number is %d, but must be from 0 to 2^53", *f.value)
		}
	}
	return nil
}

func (m *Model) validateTree() error {
	if m.Tree != nil && len(m.Tree) == 0 {
		return form.Strategy.Invalid("/model/tree", "the tree has no array").WithHint("name at least one array")
	}
	seen, total := make(map[string]bool, len(m.Tree)), int64(0)
	for _, a := range m.Tree {
		path := "/model/tree/" + jsontext.Escape(a.Name)
		switch {
		case a.Name == "" || len(a.Name) > layout.MaxName:
			return form.Strategy.Invalid("/model/tree", "an array has a name of %d bytes, but needs from 1 to %d", len(a.Name), layout.MaxName)
		case seen[a.Name]:
			return form.Strategy.Invalid(path, "array %s occurs twice", wording.Quote(a.Name)).WithHint("name every array once")
		case len(a.Shape) > layout.MaxRank:
			return form.Strategy.Invalid(path+"/shape", "the shape has rank %d, but may have %d", len(a.Shape), layout.MaxRank)
		}
		for i, n := range a.Shape {
			if n < 0 || n > layout.MaxInteger {
				return form.Strategy.Invalid(jsontext.Element(path+"/shape", i), "the dimension is %d, but must be from 0 to 2^53", n)
			}
		}
		if total = amount.Sum(total, amount.Product(a.Shape...)); total > layout.MaxInteger {
			return form.Strategy.Invalid(path+"/shape", "the tree has more than 2^53 elements")
		}
		seen[a.Name] = true
		if err := a.validateSpec(path + "/spec"); err != nil {
			return err
		}
	}
	return nil
}

func (a *Array) validateSpec(path string) error {
	if len(a.Spec) > len(a.Shape) {
		return form.Strategy.Invalid(path, "the spec has %d entries, but the array has rank %d", len(a.Spec), len(a.Shape)).WithHint("remove entries")
	}
	var used []string
	for i, entry := range a.Spec {
		for _, axis := range entry {
			if axis == Pipe || axis == Data || axis == Context {
				return form.Strategy.Invalid(jsontext.Element(path, i), "axis %q splits the layers, the batch or the sequence, but no array of the model", axis).
					WithHint("use %q, %q or %q", FSDP, Expert, Tensor)
			}
			if err := checkAxis(jsontext.Element(path, i), axis, FSDP, Expert, Tensor); err != nil {
				return err
			}
			if slices.Contains(used, axis) {
				return form.Strategy.Invalid(jsontext.Element(path, i), "axis %s occurs twice in the spec", wording.Quote(axis)).WithHint("an axis can split one dimension only")
			}
			used = append(used, axis)
		}
	}
	return nil
}

// checkAxis checks that an axis is one of the given axes.
func checkAxis(path, axis string, axes ...string) error {
	if !slices.Contains(axes, axis) {
		return form.Strategy.Invalid(path, "%s is not an axis of the planner", wording.Quote(axis)).WithHint("%s", wording.Suggest(axis, axes))
	}
	return nil
}

func (t *Training) validate() error {
	switch {
	case t.Batch == 0 && t.Tokens == 0:
		return form.Strategy.Invalid("/training", "there is no global batch").WithHint(`give "batch", a number of examples, or "tokens"`)
	case t.Batch != 0 && t.Tokens != 0:
		return form.Strategy.Invalid("/training/tokens", "the global batch is given in examples and in tokens").WithHint("keep one of them")
	}
	for _, n := range []struct {
		key         string
		value, most int64
	}{
		{"batch", t.Batch, layout.MaxRecords}, {"tokens", t.Tokens, layout.MaxInteger}, {"total_tokens", t.TotalTokens, layout.MaxInteger},
		{"micro_batch", int64(t.MicroBatch), layout.MaxRecords}, {"chunks", int64(t.Chunks), 1 << 10},
	} {
		if n.value < 0 || n.value > n.most { // 0 stands for the default
			return form.Strategy.Invalid("/training/"+n.key, "the number is %d, but must be from 1 to %d", n.value, n.most)
		}
	}
	for _, w := range []struct {
		key, value string
		words      []string
	}{
		{"recomputation", t.Recomputation, []string{Auto, None, Dots, Selective, Full}},
		{"attention", t.Attention, []string{Flash, Plain}},
	} {
		if w.value != "" && !slices.Contains(w.words, w.value) {
			return form.Strategy.Invalid("/training/"+w.key, "%s is not known", wording.Quote(w.value)).WithHint("%s", wording.Suggest(w.value, w.words))
		}
	}
	return t.validateTime()
}

// validateTime checks the fields that change times only: overlap and efficiencies.
func (t *Training) validateTime() error {
	var seen []string
	for _, o := range t.Overlap {
		path := "/training/overlap/" + jsontext.Escape(o.Axis)
		if err := checkAxis(path, o.Axis, Axes()...); err != nil {
			return err
		}
		if slices.Contains(seen, o.Axis) {
			return form.Strategy.Invalid(path, "axis %s occurs twice", wording.Quote(o.Axis)).WithHint("name it once")
		}
		seen = append(seen, o.Axis)
	}
	if err := checkInterval("/training/efficiency", "efficiency", t.Efficiency); err != nil {
		return err
	}
	return checkInterval("/training/link_efficiency", "efficiency of links", t.LinkEfficiency)
}

// checkInterval checks two shares in thousandths. Zeros stand for the default.
func checkInterval(path, name string, e [2]int) error {
	if e == [2]int{} || 1 <= e[0] && e[0] <= e[1] && e[1] <= 1000 {
		return nil
	}
	return form.Strategy.Invalid(path, "the %s is from %s to %s, but must be an interval between 0.001 and 1", name, thousandths(e[0]), thousandths(e[1])).
		WithHint("give [least, most], such as [0.4, 0.6]")
}

// thousandths writes an integer of thousandths as a decimal number.
func thousandths(n int) string { return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) }

// leastBytes is far below the memory and the bytes per second of every device. A smaller
// number has another unit, such as GB.
const leastBytes = 1_000_000

func (c *Cluster) validate() error {
	if c.Devices < 1 || c.Devices > MaxDevices {
		return form.Strategy.Invalid("/cluster/devices", "there are %d devices, but must be from 1 to %d", c.Devices, MaxDevices)
	}
	for _, n := range []struct {
		key         string
		value, most int64
	}{
		{"per_node", int64(c.PerNode), MaxDevices}, {"memory_bytes", c.MemoryBytes, layout.MaxInteger}, {"flops_per_second", c.FLOPsPerSecond, 1 << 62},
		{"hbm_bytes_per_second", c.HBMBytesPerSecond, layout.MaxInteger}, {"node_bytes_per_second", c.NodeBytesPerSecond, layout.MaxInteger},
		{"network_bytes_per_second", c.NetworkBytesPerSecond, layout.MaxInteger}, {"host_bytes", c.HostBytes, layout.MaxInteger},
	} {
		if n.value < 0 || n.value > n.most { // 0 stands for the number of the kind
			return form.Strategy.Invalid("/cluster/"+n.key, "the number is %d, but must be from 1 to %d", n.value, n.most)
		}
		if strings.Contains(n.key, "bytes") && 0 < n.value && n.value < leastBytes {
			return form.Strategy.Invalid("/cluster/"+n.key, "the number is %d, but no device has less than 1 MB", n.value).
				WithHint("write bytes: 80 GB are 80000000000")
		}
	}
	for _, n := range []struct {
		key   string
		value *int64
	}{{"node_latency_ns", c.NodeLatencyNs}, {"network_latency_ns", c.NetworkLatencyNs}} {
		if n.value != nil && (*n.value < 0 || *n.value > MaxLatencyNs) {
			return form.Strategy.Invalid("/cluster/"+n.key, "the latency is %d ns, but must be from 0 to %d", *n.value, int64(MaxLatencyNs))
		}
	}
	return nil
}

func (s *Search) validate() error {
	var seen []string
	for _, a := range s.Axes {
		path := "/search/axes/" + jsontext.Escape(a.Axis)
		if err := checkAxis(path, a.Axis, Axes()...); err != nil {
			return err
		}
		switch i := slices.IndexFunc(a.Sizes, func(n int) bool { return n < 1 || n > MaxDevices }); {
		case slices.Contains(seen, a.Axis):
			return form.Strategy.Invalid(path, "axis %s occurs twice", wording.Quote(a.Axis)).WithHint("name it once")
		case len(a.Sizes) == 0:
			return form.Strategy.Invalid(path, "axis %s has no size", wording.Quote(a.Axis)).WithHint("leave it out to try all sizes")
		case i >= 0:
			return form.Strategy.Invalid(path, "axis %s has size %d, but must have from 1 to %d", wording.Quote(a.Axis), a.Sizes[i], MaxDevices)
		}
		seen = append(seen, a.Axis)
	}
	if i := slices.IndexFunc(s.ZeRO, func(n int) bool { return n < 0 || n > 2 }); i >= 0 {
		return form.Strategy.Invalid(jsontext.Element("/search/zero", i), "ZeRO stage %d is not known", s.ZeRO[i]).WithHint(`use 0, 1 or 2; stage 3 is the axis "fsdp"`)
	}
	if s.Margin != nil && (*s.Margin < 0 || *s.Margin > MaxMargin) {
		return form.Strategy.Invalid("/search/margin", "the margin is %s, but must be from 0 to 0.9", thousandths(*s.Margin))
	}
	if s.Keep < 0 || s.Keep > MaxKeep {
		return form.Strategy.Invalid("/search/keep", "the report keeps %d candidates, but must keep from 1 to %d", s.Keep, MaxKeep)
	}
	return nil
}

func (i *Input) validate() error {
	if i.RowsPerSecond < 0 || i.RowsPerSecond > layout.MaxRecords {
		return form.Strategy.Invalid("/input/rows_per_second", "the input delivers %d rows per second, but must deliver from 1 to 2^40", i.RowsPerSecond)
	}
	if i.Processes < 0 || i.Processes > layout.MaxProcesses {
		return form.Strategy.Invalid("/input/processes", "there are %d processes, but must be from 1 to %d", i.Processes, layout.MaxProcesses)
	}
	return nil
}
