package selfcheck

import (
	"context"
	"fmt"
	"math/rand/v2"
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
)

// field is a field of random elements. Its bytes are compared with the shards later.
type field struct {
	name  string
	typ   dtype.Type
	shape []int // of a row
	bytes []byte
	value arrowio.Values
}

// newField makes a field with random rows.
func newField(r *rand.Rand, name string, typ dtype.Type, rows int, shape ...int) field {
	n := rows
	for _, size := range shape {
		n *= size
	}
	f := field{name: name, typ: typ, shape: shape}
	switch typ.Size() {
	case 1:
		f.value, f.bytes = drawn[uint8](r, f, n)
	case 2:
		f.value, f.bytes = drawn[uint16](r, f, n)
	case 4:
		f.value, f.bytes = drawn[uint32](r, f, n)
	case 8:
		f.value, f.bytes = drawn[uint64](r, f, n)
	default:
		f.value, f.bytes = drawn[complex128](r, f, n)
	}
	return f
}

// drawn makes n random elements of a field, and returns them also as bytes. T is a Go
// type of the size of one element.
func drawn[T dtype.Element](r *rand.Rand, f field, n int) (arrowio.Values, []byte) {
	values := make([]T, n)
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), n*f.typ.Size())
	for i := range raw {
		raw[i] = byte(r.Uint32())
		if f.typ == dtype.Bool {
			raw[i] &= 1
		}
	}
	return arrowio.Slice(f.name, values, f.shape...).As(f.typ), raw
}

// shard returns the bytes of one shard of a batch, in C order. Records are those of
// the batch's rows, and -1 for padding.
func (f field) shard(index sharding.Index, records []int64) []byte {
	row := f.typ.Size()
	for _, size := range f.shape {
		row *= size
	}
	var out []byte
	for _, record := range records[index[0][0]:index[0][1]] {
		whole := make([]byte, row) // zeros for padding
		if record >= 0 {
			whole = f.bytes[int(record)*row:][:row]
		}
		for start, n := range index[1:].Runs(f.shape) {
			out = append(out, whole[start*f.typ.Size():][:n*f.typ.Size()]...)
		}
	}
	return out
}

// workload is a random dataset with a layout over some of the devices.
type workload struct {
	fields map[string]field // by array
	source source.Source
	layout *layout.Layout
}

// newWorkload builds a workload with one array per field.
func newWorkload(mesh layout.MeshSpec, batch layout.BatchSpec, fields []field, specs []sharding.PartitionSpec) (*workload, error) {
	doc := &layout.Document{Mesh: mesh, Batch: &batch}
	w := &workload{fields: map[string]field{}}
	values := make([]arrowio.Values, len(fields))
	for i, f := range fields {
		doc.Arrays = append(doc.Arrays, layout.ArraySpec{Name: f.name, Type: f.typ, RowShape: f.shape, Spec: specs[i]})
		w.fields[f.name], values[i] = f, f.value
	}
	var err error
	if w.layout, err = layout.New(doc); err != nil {
		return nil, err
	}
	w.source, err = arrowio.FromSlices(values...)
	return w, err
}

// oneAxis returns a mesh with one axis over all devices.
func (s *session) oneAxis() layout.MeshSpec {
	return layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: s.d.Num()}}}
}

// draw builds a random workload. Its mesh has some of the devices, in random order.
func (s *session) draw() (*workload, error) {
	r, n := s.random, s.d.Num()
	rows := max(1, n/2)
	if r.IntN(2) == 0 {
		rows = n
	}
	columns := n / rows
	on := layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: rows}, {Name: "model", Size: columns}}}
	for _, id := range r.Perm(n)[:rows*columns] {
		on.Devices = append(on.Devices, mesh.Device{ID: id})
	}
	batch := layout.BatchSpec{
		Size:      []int{rows * columns * (1 + r.IntN(3))},
		Remainder: []string{layout.Drop, layout.Pad}[r.IntN(2)],
	}
	choices := []sharding.PartitionSpec{
		sharding.P("data"), sharding.P("data", "model"), sharding.P(nil, "model"), sharding.P([]string{"model", "data"}), nil,
	}
	types := s.d.Facts().DTypes
	records := 2*batch.Size[0] + r.IntN(20)
	var fields []field
	var specs []sharding.PartitionSpec
	for i := range 1 + r.IntN(3) {
		shape := []int{columns * (1 + r.IntN(20)), 1 + r.IntN(3)}
		fields = append(fields, newField(r, fmt.Sprintf("f%d", i), types[r.IntN(len(types))], records, shape...))
		specs = append(specs, choices[r.IntN(len(choices))])
	}
	return newWorkload(on, batch, fields, specs)
}

// feed is a loader whose batches are gathered into memory of a gomlxfeed.Ring.
type feed struct {
	*workload
	*loader.Loader
	ring *gomlxfeed.Ring
}

// open makes the ring and the loader of a workload.
func (s *session) open(w *workload, o loader.Options) (*feed, error) {
	ring, err := s.d.Ring(w.layout)
	if err != nil {
		return nil, err
	}
	o.Layout, o.Shuffle, o.Allocator = w.layout, true, ring
	l, err := loader.New(w.source, o)
	if err != nil {
		_ = ring.Close()
		return nil, err
	}
	return &feed{w, l, ring}, nil
}

// close closes the loader and the ring. It fails if the ring still counts batches,
// because the check has released all of them.
func (f *feed) close() error {
	err := f.Close()
	if batches, _ := f.ring.Live(); err == nil && batches != 0 {
		err = fmt.Errorf("%w: the ring counts %d batches, but all are released", errMismatch, batches)
	}
	_ = f.ring.Close()
	return err
}

// compare reads every shard of a batch back and compares it with the source.
func (f *feed) compare(b *gomlxfeed.Batch) error {
	records, err := f.Records(b.Step().Cursor)
	if err != nil {
		return err
	}
	for _, a := range f.layout.Arrays() {
		if a.Kind != layout.Data {
			continue
		}
		for i, shard := range b.Tensor(a.Name).Shards() {
			want := f.fields[a.Name].shard(a.Delivered.IndexAt(a.Shape, i), records)
			got := make([]byte, len(want))
			if err := b.Read(a.Name, i, got); err != nil {
				return err
			}
			if string(got) != string(want) {
				return fmt.Errorf("%w: array %q at mesh position %d differs from the source, step %d of %s", errMismatch, a.Name, i, b.Step().Index, document.Canonical(f.layout.Document()))
			}
			if on, err := shard.Device(); err != nil || int(on) != f.layout.Mesh().Device(i).ID {
				return fmt.Errorf("%w: the shard of mesh position %d is on device %d (%v)", errMismatch, i, on, err)
			}
		}
	}
	return nil
}

// all compares every batch of the loader's epochs and returns their number. Every
// batch is kept until held later batches have arrived. Then it is compared and
// released. So memory that is reused too early causes a difference.
func (f *feed) all(ctx context.Context, d *gomlxfeed.Devices, held int) (n int, err error) {
	var window []*gomlxfeed.Batch
	defer func() {
		for _, b := range window {
			b.Release()
		}
	}()
	oldest := func() error {
		b := window[0]
		window = window[1:]
		defer b.Release()
		return f.compare(b)
	}
	for b, err := range gomlxfeed.Placed(ctx, f.Loader, d) {
		if err != nil {
			return n, err
		}
		n++
		window = append(window, b)
		if len(window) > held {
			if err := oldest(); err != nil {
				return n, err
			}
		}
	}
	for len(window) > 0 {
		if err := oldest(); err != nil {
			return n, err
		}
	}
	return n, nil
}
