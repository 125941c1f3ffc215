package loader

import (
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// plan lists which rows of the global batch one process needs at every step, which
// parts of them, and which bytes of which block they become. It depends on the
// layout and the schema alone, so all batches of all passes share it.
type plan struct {
	blocks   []batch.Block // in the order of layout.Process.Blocks
	filled   []batch.Block // what is gathered and computed: the blocks, or whole arrays that hold them
	cuts     []cut         // cuts of each block, if filled are whole arrays; else nil
	slab     int64         // bytes of one batch with the gaps between blocks
	staged   int64         // bytes of filled, if these are whole arrays; else 0
	bytes    int64         // bytes of the blocks without gaps
	loaded   int64         // bytes of filled without gaps
	rows     rows          // rows of the global batch that are gathered
	all      rows          // rows, and further rows that only the mask or the extras of this process have
	parts    []source.Part
	jobs     []job           // for all rows
	computed []computed      // filled blocks that are not gathered
	run      certificate.Run // run of certificates, without a batch

	certified, certifiedComputed []certifiedRows // in the record lists of rows and all
}

// job is a source.Job without its memory.
type job struct {
	part  int
	rows  [2]int // rows of the record list
	block int    // index in filled
	bytes [2]int // bytes of the block
}

// planner makes a plan.
type planner struct {
	plan
	lay    *layout.Layout
	schema source.Schema
	fill   map[string]any
	known  map[string]int // numbers of parts by their text
}

// newPlan makes the plan of a process. The layout must fit the schema.
func newPlan(lay *layout.Layout, process int, schema source.Schema, fill map[string]any) (*plan, error) {
	p := &planner{lay: lay, schema: schema, fill: fill, known: map[string]int{}}
	mine := lay.Process(process)
	p.all = rowsOf(mine.Rows)
	if mine.Whole != nil {
		p.all = rowsOf([][2]int{{0, int(lay.BatchSize())}})
	}
	if err := p.checkSize(mine); err != nil {
		return nil, err
	}
	p.rows = p.gathered(mine)
	p.addCertified(mine)
	for _, b := range mine.Gathered() {
		if err := p.addBlock(lay.Arrays()[b.Array], b); err != nil {
			return nil, err
		}
	}
	p.blocks = p.filled
	if mine.Whole != nil {
		p.addCuts(mine)
	}
	for _, b := range p.blocks {
		p.bytes += int64(b.Bytes)
	}
	p.slab = batch.SlabBytes(p.blocks)
	p.run = certificate.Run{
		Mesh:      certificate.ProcessesOf(lay.Mesh().Processes()),
		Processes: certificate.ProcessesOf([]int{process}),
		Parts:     lay.Parts(),
	}
	return &p.plan, nil
}

// need returns the bytes of memory that one batch and its building take.
func (p *plan) need() int64 { return p.slab + p.staged }

// gathered returns the rows with data that the process needs. A mask or an extra may have
// more rows, but their data is not read.
func (p *planner) gathered(mine layout.Process) rows {
	var runs [][2]int
	for _, b := range mine.Gathered() {
		if a := p.lay.Arrays()[b.Array]; a.Kind == layout.Data && blockBytes(a, b) > 0 {
			runs = append(runs, runsOf(a.Shape[:a.BatchDims], b.Index)...)
		}
	}
	return rowsOf(runs)
}

// maxRuns bounds the number of runs of rows in all blocks of a process. Each
// takes a job at every step.
const maxRuns = 1 << 18

// checkSize returns an error if the plan or a batch would take too much memory. It
// runs before anything of that size is allocated. The layout bounds the sizes of
// arrays, so the sums fit in 63 bits.
func (p *planner) checkSize(mine layout.Process) error {
	bytes, runs := 8*int64(p.all.count), int64(0)
	for _, b := range append(mine.Whole, mine.Blocks...) {
		a := p.lay.Arrays()[b.Array]
		bytes += blockBytes(a, b) + batch.Align
		runs += countRuns(a.Shape[:a.BatchDims], b.Index)
	}
	if bytes > batch.MaxSlab {
		return fail(status.ResourceExhausted, "one batch takes %d bytes in process %d, but may take %d", bytes, mine.Process, int64(batch.MaxSlab)).
			WithHint("use a smaller batch, or more processes").With("bytes", bytes)
	}
	if runs > maxRuns {
		return fail(status.ResourceExhausted, "the blocks of process %d take their rows from %d separate runs, but may take them from %d", mine.Process, runs, maxRuns).
			WithHint("partition the first batch dimension rather than a later one, or make the first one smaller").With("runs", runs)
	}
	return nil
}

func blockBytes(a layout.Array, b layout.Block) int64 {
	n := int64(a.Type.Size())
	for _, d := range b.Index.Shape() {
		n *= int64(d)
	}
	return n
}

func memoryOf(a layout.Array, b layout.Block) batch.Block {
	return batch.Block{Name: a.Name, Array: b.Array, Type: a.Type, Shape: b.Index.Shape(), Bytes: int(blockBytes(a, b)), Holders: b.Holders}
}

// addBlock plans how a block is filled.
func (p *planner) addBlock(a layout.Array, b layout.Block) error {
	bytes, number := int(blockBytes(a, b)), len(p.filled)
	p.filled = append(p.filled, memoryOf(a, b))
	p.loaded += int64(bytes)
	if bytes == 0 {
		return nil
	}
	runs := runsOf(a.Shape[:a.BatchDims], b.Index)
	if a.Kind != layout.Data {
		p.computed = append(p.computed, computed{block: number, kind: a.Kind, runs: p.all.locate(runs)})
		return nil
	}
	runs = p.rows.locate(runs)
	part, err := p.part(a, b.Index[a.BatchDims:])
	if err != nil {
		return err
	}
	p.addJobs(part, number, runs, bytes/rowsIn(runs))
	return nil
}

func rowsIn(runs [][2]int) int {
	n := 0
	for _, r := range runs {
		n += r[1] - r[0]
	}
	return n
}

// addJobs adds a job for every run of rows. The runs fill the block in order.
func (p *planner) addJobs(part, block int, runs [][2]int, rowBytes int) {
	start := 0
	for _, r := range runs {
		stop := start + (r[1]-r[0])*rowBytes
		p.jobs = append(p.jobs, job{part: part, rows: r, block: block, bytes: [2]int{start, stop}})
		start = stop
	}
}

// part returns the number of the part of every row that a block needs. Blocks that
// need the same part share it.
func (p *planner) part(a layout.Array, index sharding.Index) (int, error) {
	number, field, ok := p.schema.Field(a.Field)
	if !ok {
		return 0, fail(status.NotFound, "array %q takes field %q, which the dataset does not have", a.Name, a.Field)
	}
	if err := field.CheckFill(p.fill[a.Field]); err != nil {
		return 0, err
	}
	part := source.Part{Field: number, To: a.Type, Boxes: boxes(index, a.Columns), Fill: p.fill[a.Field]}
	if part.To == field.Type {
		part.To = dtype.Invalid // no conversion
	}
	key := fmt.Sprint(part.Field, part.To, part.Boxes)
	if n, ok := p.known[key]; ok {
		return n, nil
	}
	p.known[key] = len(p.parts)
	p.parts = append(p.parts, part)
	return len(p.parts) - 1, nil
}

// fields returns the numbers of the loaded fields.
func (p *plan) fields() []int {
	var list []int
	for _, part := range p.parts {
		if !slices.Contains(list, part.Field) {
			list = append(list, part.Field)
		}
	}
	return list
}

// boxes returns the parts of a field's row that make up a part of an array's row.
// Columns are ranges of the field's first dimension. The array's first dimension
// is their concatenation, so a part of it may begin and end within any of them.
func boxes(index sharding.Index, columns [][2]int) [][][2]int {
	if columns == nil {
		return [][][2]int{append([][2]int{}, index...)}
	}
	var list [][][2]int
	first := 0 // index in the array where the range begins
	for _, c := range columns {
		start := max(index[0][0], first)
		stop := min(index[0][1], first+c[1]-c[0])
		if start < stop {
			r := [2]int{c[0] + start - first, c[0] + stop - first}
			list = appendBox(list, r, index[1:])
		}
		first += c[1] - c[0]
	}
	return list
}

// appendBox appends a box, or extends the last one if the box continues it.
func appendBox(list [][][2]int, r [2]int, rest sharding.Index) [][][2]int {
	if last := len(list) - 1; last >= 0 && list[last][0][1] == r[0] {
		list[last][0][1] = r[1]
		return list
	}
	return append(list, append([][2]int{r}, rest...))
}
