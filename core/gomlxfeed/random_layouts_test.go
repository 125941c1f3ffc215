package gomlxfeed

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/tests/random"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// TestRandomLayouts places batches of 150 random layouts, or 5,000 with MESHFEED_DEEP=1.
// It compares every shard of every device, byte by byte, with a formula. The
// layouts vary device order, specs, types, ways of loading, masks and extras,
// shared and separate memory, and the ring: the loader's own or another one.
func TestRandomLayouts(t *testing.T) { random.Rounds(t, 150, 5000, testRandomLayout) }

func testRandomLayout(t *testing.T, r *rand.Rand) {
	devices := 1 + r.IntN(12)
	counts, d := newCountingBackend(t, devices, r.IntN(2) == 0)
	src, lay := randomLayout(r, devices)
	o := loader.Options{Layout: lay, Process: lay.Mesh().Processes()[0], Shuffle: true, Seed: r.Int64N(1 << 30), Epochs: 1 + r.IntN(2), Prefetch: r.IntN(4) - 1}
	if r.IntN(3) > 0 {
		ring, err := d.Ring(lay)
		if err != nil {
			t.Fatalf("%v\n%s", err, document.Canonical(lay.Document()))
		}
		o.Allocator = ring
	}
	l, err := loader.New(src, o)
	if err != nil {
		t.Fatalf("%v\n%s", err, document.Canonical(lay.Document()))
	}
	steps, held := int64(0), []*Batch(nil)
	for b, err := range Placed(context.Background(), l, d) {
		if err != nil {
			t.Fatalf("%v\n%s", err, document.Canonical(lay.Document()))
		}
		steps++
		held = append(held, b)
		if r.IntN(2) == 0 {
			held = compareAll(t, l, o.Seed, held)
		}
	}
	compareAll(t, l, o.Seed, held)
	if want := l.StepsPerEpoch() * int64(o.Epochs); steps != want {
		t.Errorf("%d steps, want %d", steps, want)
	}
	_ = l.Close()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	counts.nothingLives(t, d)
}

// compareAll compares batches that were kept for a while, and releases them.
func compareAll(t *testing.T, l *loader.Loader, seed int64, held []*Batch) []*Batch {
	for _, b := range held {
		compare(t, l, seed, b)
		b.Release()
	}
	return nil
}

func compare(t *testing.T, l *loader.Loader, seed int64, b *Batch) {
	t.Helper()
	records, err := l.Records(b.Step().Cursor)
	if err != nil {
		t.Fatal(err)
	}
	from := synthetic.Batch{Records: records, Seed: seed, Epoch: b.Step().Epoch}
	lay := l.Layout()
	var names []string
	for _, a := range lay.Arrays() {
		names = append(names, a.Name)
		shards := b.Tensor(a.Name).Shards()
		for i, shard := range shards {
			want := synthetic.Expect(a, a.Delivered.IndexAt(a.Shape, i), from)
			got := make([]byte, len(want))
			if err := b.Read(a.Name, i, got); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("step %d, array %q, position %d: got %x, want %x\n%s", b.Step().Index, a.Name, i, got, want, document.Canonical(lay.Document()))
			}
			if on, err := shard.Device(); err != nil || on != compute.DeviceNum(lay.Mesh().Device(i).ID) {
				t.Fatalf("position %d of %s is on device %d (%v)", i, lay.Mesh(), on, err)
			}
		}
		if got := b.Tensor(a.Name).Shape().Dimensions; !slices.Equal(got, a.Shape) {
			t.Fatalf("array %q has shape %v, want %v", a.Name, got, a.Shape)
		}
	}
	if !slices.Equal(b.Names(), names) || len(b.Tensors()) != len(names) {
		t.Fatalf("arrays %q, want %q", b.Names(), names)
	}
}

// randomLayout draws a layout for some of the devices, and a dataset for it.
func randomLayout(r *rand.Rand, devices int) (source.Source, *layout.Layout) {
	for {
		d := &layout.Document{Mesh: randomMesh(r, devices), Batch: randomBatch(r), Loading: random.One(r, "", "", layout.LoadGlobal, layout.LoadDevice, layout.LoadReshard)}
		fields := random.Fields(r, 0, 1, 2, 4, 6, 8, 12, 12, 12, 12, 12)
		for _, f := range fields {
			spec := random.Spec(r, d.Mesh.Axes, append(slices.Clone(d.Batch.Size), f.Shape...))
			spec = spec[:len(spec)-r.IntN(2)*countEmpty(spec)]
			d.Arrays = append(d.Arrays, layout.ArraySpec{Name: "a/" + f.Name, Field: f.Name, Type: f.Type, RowShape: f.Shape, Spec: spec})
		}
		lay, err := layout.Draft(d)
		if err != nil {
			panic(err)
		}
		if lay.Err() == nil {
			return synthetic.New(lay.BatchSize()+r.Int64N(40), fields...), lay
		}
	}
}

// randomMesh draws a mesh of some devices of one process, in random order, with
// at least one axis, as GoMLX requires.
func randomMesh(r *rand.Rand, devices int) layout.MeshSpec {
	axes, size := random.Axes(r, devices)
	s := layout.MeshSpec{Axes: append([]mesh.Axis{{Name: "only", Size: 1}}, axes...)}
	process := r.IntN(3)
	for _, id := range r.Perm(devices)[:size] {
		s.Devices = append(s.Devices, mesh.Device{ID: id, Process: process})
	}
	return s
}

func randomBatch(r *rand.Rand) *layout.BatchSpec {
	b := &layout.BatchSpec{Size: []int{random.One(r, 1, 2, 4, 6, 12, 24)}, Remainder: random.One(r, layout.Drop, layout.Pad)}
	if r.IntN(3) == 0 {
		b.Size = append(b.Size, 1+r.IntN(4))
	}
	b.Extras = random.Some(r, layout.ExtraKey, layout.ExtraRecord)
	return b
}

// countEmpty returns the number of trailing empty entries.
func countEmpty(spec sharding.PartitionSpec) (n int) {
	for n < len(spec) && len(spec[len(spec)-1-n]) == 0 {
		n++
	}
	return n
}

var _ batch.Allocator = (*Ring)(nil)
var _ batch.Counter = (*Ring)(nil)
