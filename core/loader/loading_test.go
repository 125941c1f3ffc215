package loader_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	layoutjson "github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

var loadings = []string{layout.LoadProcess, layout.LoadGlobal, layout.LoadDevice, layout.LoadReshard}

// On random meshes, the four ways of loading deliver the same global arrays and
// gather as many bytes as the layout says.
func TestLoadings(t *testing.T) {
	r := random.New(t)
	for range random.Count(200, 2000) {
		d, records := randomRun(r)
		var first []map[string][]byte
		for _, how := range loadings {
			d.Loading = how
			c := cluster{t: t, lay: newLayout(t, d), text: string(layoutjson.Canonical(d)), records: records}
			if err := c.lay.Err(); err != nil {
				t.Fatalf("%s: %v", c.text, err)
			}
			all := c.run()
			if first == nil {
				first = all
			}
			if !slices.EqualFunc(all, first, equalArrays) {
				t.Fatalf("%s: the global arrays differ from loading %q", c.text, loadings[0])
			}
		}
	}
}

// randomRun returns a document with a batch that fits every way of loading, and the number
// of records of its dataset.
func randomRun(r *rand.Rand) (*layout.Document, int64) {
	d := &layout.Document{Batch: &layout.BatchSpec{Remainder: layout.Pad}}
	axes, size := random.Axes(r, 27)
	d.Mesh.Axes = axes
	processes := 1 + r.IntN(min(size, 4))
	for _, id := range r.Perm(size) {
		d.Mesh.Devices = append(d.Mesh.Devices, mesh.Device{ID: 3*id + 1, Process: 2 * r.IntN(processes)})
	}
	d.Batch.Size = []int{size * (1 + r.IntN(2))}
	if r.IntN(3) == 0 {
		d.Batch.Size = slices.Insert(d.Batch.Size, r.IntN(2), 1+r.IntN(3))
	}
	d.Batch.Extras = []string{layout.ExtraKey, layout.ExtraRecord}[:r.IntN(3)]
	if r.IntN(3) == 0 {
		d.Batch.Remainder = layout.Drop
	}
	for i, f := range fields() {
		a := layout.ArraySpec{Name: fmt.Sprint("a", i), Field: f.Name, Type: f.Type.Narrow(), RowShape: slices.Clone(f.Shape)}
		if len(f.Shape) > 0 && r.IntN(2) == 0 {
			a.Columns, a.RowShape[0] = [][2]int{{5, 9}, {0, 2}}, 6
		}
		a.Spec = random.Spec(r, d.Mesh.Axes, append(slices.Clone(d.Batch.Size), a.RowShape...))
		d.Arrays = append(d.Arrays, a)
	}
	rows := int64(1)
	for _, n := range d.Batch.Size {
		rows *= int64(n)
	}
	return d, rows + r.Int64N(2*rows)
}

func fields() []source.Field {
	return []source.Field{
		{Name: "image", Type: dtype.Float32, Shape: []int{12, 6}},
		{Name: "label", Type: dtype.Int64},
		{Name: "bits", Type: dtype.Bool, Shape: []int{12}},
	}
}

// cluster runs all processes of a layout.
type cluster struct {
	t       *testing.T
	lay     *layout.Layout
	text    string
	records int64
	steps   []map[string][]byte // the global arrays, assembled from the devices' parts
	given   []map[string]int    // how many devices have their part
}

// run returns the global arrays of every step of two epochs.
func (c *cluster) run() []map[string][]byte {
	for _, process := range c.lay.Mesh().Processes() {
		src := &counted{Source: synthetic.New(c.records, fields()...)}
		l := newLoader(c.t, src, loader.Options{Layout: c.lay, Process: process, Shuffle: true, Seed: 5, Epochs: 2, Workers: 1 + process/2})
		n := 0
		for b, err := range l.All(context.Background()) {
			if err != nil {
				c.t.Fatalf("%s: process %d: %v", c.text, process, err)
			}
			checkBytes(c.t, l, b)
			c.assemble(n, l, b)
			b.Release()
			n++
		}
		c.compare(process, int64(n), src.bytes.Load(), l.Stats())
	}
	for n, step := range c.given {
		for name, devices := range step {
			if devices != c.lay.Mesh().Size() {
				c.t.Fatalf("%s: step %d: %d devices have a part of %s", c.text, n, devices, name)
			}
		}
	}
	return c.steps
}

// assemble copies the blocks of a process into the global arrays.
func (c *cluster) assemble(n int, l *loader.Loader, b *batch.Batch) {
	if n == len(c.steps) {
		c.steps, c.given = append(c.steps, map[string][]byte{}), append(c.given, map[string]int{})
	}
	for i, block := range c.lay.Process(l.Process()).Blocks {
		a := c.lay.Arrays()[block.Array]
		for _, device := range block.Holders {
			if !a.Delivered.IndexAt(a.Shape, device).Equal(block.Index) || c.lay.Mesh().Device(device).Process != l.Process() {
				c.t.Fatalf("%s: device %d gets %v of %s", c.text, device, block.Index, a.Name)
			}
			c.given[n][a.Name]++
		}
		if c.lay.Loading() == layout.LoadDevice && len(block.Holders) != 1 {
			c.t.Fatalf("%s: the devices %v share a block", c.text, block.Holders)
		}
		if c.steps[n][a.Name] == nil {
			c.steps[n][a.Name] = bytes.Repeat([]byte{0xee}, bytesOf(a, wholeOf(a)))
		}
		put(c.steps[n][a.Name], b.Memory().Dst(i), a.Shape, block.Index)
	}
}

// put copies a part of an array, in C order, into the array.
func put(array, part []byte, shape []int, index sharding.Index) {
	if len(shape) == 0 {
		copy(array, part)
		return
	}
	n := index[0][1] - index[0][0]
	for i := range n {
		row := array[(index[0][0]+i)*len(array)/shape[0]:][:len(array)/shape[0]]
		put(row, part[i*len(part)/n:][:len(part)/n], shape[1:], index[1:])
	}
}

// compare compares what was gathered with the layout's prediction.
func (c *cluster) compare(process int, batches, gathered int64, s loader.Stats) {
	var report struct {
		Processes []struct {
			Process      int   `json:"process"`
			BytesPerStep int64 `json:"bytes_per_step"`
		} `json:"processes"`
	}
	if err := json.Unmarshal(layoutjson.Report(c.lay, layoutjson.ReportOptions{}), &report); err != nil {
		c.t.Fatal(err)
	}
	made := int64(0) // bytes of masks, keys and record numbers, which are not gathered
	for _, b := range c.lay.Process(process).Gathered() {
		if a := c.lay.Arrays()[b.Array]; a.Kind != layout.Data {
			made += int64(bytesOf(a, b.Index))
		}
	}
	for _, p := range report.Processes {
		if p.Process == process && (p.BytesPerStep*batches != gathered+made*batches || s.GatheredBytes != p.BytesPerStep*batches) {
			c.t.Fatalf("%s: process %d: %d bytes per step are predicted; in %d steps %d were gathered and %d computed, and the statistics say %d",
				c.text, process, p.BytesPerStep, batches, gathered, made*batches, s.GatheredBytes)
		}
	}
}

func wholeOf(a layout.Array) sharding.Index {
	x := make(sharding.Index, len(a.Shape))
	for d, n := range a.Shape {
		x[d][1] = n
	}
	return x
}

func bytesOf(a layout.Array, index sharding.Index) int {
	n := a.Type.Size()
	for _, size := range index.Shape() {
		n *= size
	}
	return n
}

func equalArrays(a, b map[string][]byte) bool {
	for name := range a {
		if !bytes.Equal(a[name], b[name]) {
			return false
		}
	}
	return len(a) == len(b)
}

// counted is a source that counts the gathered bytes.
type counted struct {
	source.Source
	bytes atomic.Int64
}

func (s *counted) Gatherer(parts []source.Part) (source.Gatherer, error) {
	g, err := s.Source.Gatherer(parts)
	return countedGatherer{g, s}, err
}

type countedGatherer struct {
	source.Gatherer
	s *counted
}

func (g countedGatherer) Gather(ctx context.Context, draw source.Draw, records []int64, jobs []source.Job) error {
	for _, j := range jobs {
		g.s.bytes.Add(int64(len(j.Dst)))
	}
	return g.Gatherer.Gather(ctx, draw, records, jobs)
}

// With loading "device" every device has a block of its own.
func TestDeviceLoading(t *testing.T) {
	d := document(8)
	d.Loading = layout.LoadDevice
	d.Arrays[0].Spec = sharding.P("data") // both devices of a process hold the same
	l := newLoader(t, digits(8), loader.Options{Layout: newLayout(t, d)})
	b, err := l.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	if len(b.Blocks()) != 4 || !bytes.Equal(b.Memory().Dst(0), b.Memory().Dst(1)) || &b.Memory().Dst(0)[0] == &b.Memory().Dst(1)[0] {
		t.Errorf("%d blocks; the first two are at %p and %p", len(b.Blocks()), b.Memory().Dst(0), b.Memory().Dst(1))
	}
}

// A process without devices gets batches without blocks, with every way of loading.
func TestIdleLoading(t *testing.T) {
	for _, how := range loadings {
		d := document(8)
		d.Loading = how
		src := &counted{Source: digits(16)}
		l := newLoader(t, src, loader.Options{Layout: newLayout(t, d), Process: 7, Processes: 8, Epochs: 1})
		for range 2 {
			next(t, l)
		}
		if s := l.Stats(); s.Batches != 2 || s.Bytes+s.GatheredBytes+src.bytes.Load() != 0 {
			t.Errorf("loading %q: %+v, and %d bytes were gathered", how, s, src.bytes.Load())
		}
	}
}

// A run may continue with another way of loading.
func TestLoadingMayChange(t *testing.T) {
	for _, before := range loadings {
		for _, after := range loadings {
			d := document(8)
			d.Loading = before
			o := loader.Options{Layout: newLayout(t, d), Process: 1, Shuffle: true, Seed: 3}
			l := newLoader(t, digits(40), o)
			next(t, l)
			d.Loading = after
			o.Layout, o.State = newLayout(t, d), l.State().JSON()
			if step := next(t, newLoader(t, digits(40), o)); step.Position != 8 || step.Index != 1 {
				t.Errorf("from %q to %q: the next batch is %+v", before, after, step)
			}
		}
	}
}

// MaxHostBytes includes the memory of a whole batch, once for all batches that are
// built ahead.
func TestGlobalMemory(t *testing.T) {
	d := document(8)
	d.Loading = layout.LoadGlobal
	lay := newLayout(t, d)
	const whole, part = 8*32 + 64, 2*64 + 64 // slots of 64 bytes: images, then labels
	_, err := loader.New(digits(8), loader.Options{Layout: lay, MaxHostBytes: whole + part - 1})
	wantError(t, err, status.ResourceExhausted, "loader: one batch takes 512 bytes in process 0, but Options.MaxHostBytes is 511; raise it: reading ahead takes 2 batches more")
	l := newLoader(t, digits(8), loader.Options{Layout: lay, MaxHostBytes: whole + part})
	next(t, l)
	if s := l.Stats(); s.Bytes != 2*64+16 || s.GatheredBytes != 8*32+32 {
		t.Errorf("%d bytes delivered, %d gathered", s.Bytes, s.GatheredBytes)
	}
}
