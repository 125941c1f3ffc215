package strategy

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/plan/internal/amount"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// processes returns the number of processes that load data.
func (p *planner) processes() int {
	c := p.cluster
	switch n := p.doc.Input.Processes; {
	case n > 0:
		return n
	case c.Host > 0 && c.PerNode%c.Host == 0:
		return c.Devices / c.Host
	}
	return c.Nodes()
}

// layout returns the layout document of the current candidate, or nil if the arrays of
// a batch are not known. Rows are split over data, fsdp and expert, and the sequence
// over context.
func (e *evaluator) layout() *layout.Document {
	p := e.planner
	arrays := p.inputs()
	if len(arrays) == 0 {
		return nil
	}
	d := &layout.Document{
		Mesh:   layout.MeshSpec{Axes: e.sizes.mesh(), Processes: p.processes()},
		Arrays: arrays, Batch: &layout.BatchSpec{Size: []int{int(p.batch)}},
	}
	if len(d.Mesh.Axes) == 0 {
		d.Mesh.Axes = []mesh.Axis{{Name: Data, Size: 1}}
	}
	rows, sequence := e.sizes.entry(dataAxis, fsdpAxis, expertAxis), e.sizes.entry(contextAxis)
	for i := range d.Arrays {
		a := &d.Arrays[i]
		a.Spec = sharding.PartitionSpec{rows}
		if len(sequence) > 0 && len(a.RowShape) > 0 && int64(a.RowShape[0]) == p.model.sequence {
			a.Spec = append(a.Spec, sequence)
		}
	}
	return d
}

// entry returns one entry of a partition spec: the given axes that have a size above 1.
func (s sizes) entry(axes ...axis) []string {
	var names []string
	for _, a := range axes {
		if s[a] > 1 {
			names = append(names, a.String())
		}
	}
	return names
}

// inputs returns the arrays of a batch.
func (p *planner) inputs() []layout.ArraySpec {
	if own := p.doc.Model.Inputs; own != nil {
		return slices.Clone(own)
	}
	if p.model.shape == nil {
		return nil
	}
	return []layout.ArraySpec{{Name: "tokens", RowShape: []int{int(p.model.sequence)}, Type: dtype.Int32}}
}

// needs computes the rows and bytes that the input must deliver to the loaders of a
// layout for candidate c.
func (p *planner) needs(l *layout.Layout, c *Candidate) *InputNeeds {
	t := l.Totals()
	n := &InputNeeds{
		RowsPerStep: p.batch, RowsPerSecond: -1, BytesPerStep: t.BatchBytes, ReadBytes: t.ReadBytes, Processes: len(l.Mesh().Processes()),
		HostBytes: t.HostBytes, HostCapacity: p.doc.Cluster.HostBytes, Available: p.doc.Input.RowsPerSecond,
	}
	members := make([]int, n.Processes+1) // number of processes in each group; index 0 is for rows that are not known
	for i := range n.Processes {
		costs := l.ProcessCosts(i)
		rows := int64(0)
		for _, r := range costs.Rows {
			rows += int64(r[1] - r[0])
		}
		n.ProcessRows, n.ProcessBytes = max(n.ProcessRows, rows), max(n.ProcessBytes, costs.ReadBytes)
		g := costs.Group + 1
		if members[g]++; members[g] == 1 {
			n.Groups++
		}
		n.Sharing = max(n.Sharing, members[g])
	}
	if c.Time == nil {
		return n
	}
	n.RowsPerSecond = c.Time.ExamplesPerSecond
	if n.Available > 0 {
		n.KeepsUp = amount.Product(n.Available, 1000) >= n.RowsPerSecond
		n.Margin = round(float64(n.Available) * 1e6 / float64(max(1, n.RowsPerSecond)))
	}
	return n
}
