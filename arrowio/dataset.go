package arrowio

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/core/arrowmeta"
	"github.com/meshfeed/meshfeed/core/source"
)

// Dataset is Arrow data as a source.Source.
type Dataset struct {
	files []*file
	table *table.Table
	tops  []int // column of the files' schema for each field
}

var _ source.Source = (*Dataset)(nil)

// patience is how long Close waits for a read that the kernel does not answer.
const patience = time.Second

func newDataset(files []*file, o Options) (*Dataset, error) {
	d := &Dataset{files: files}
	d.table = &table.Table{Gate: table.NewGate(func() error { return closeFiles(files) }), Store: d, Load: d.load}
	schema := &files[0].meta.Schema
	for i := range schema.Fields {
		f := &schema.Fields[i]
		field, reason := table.Describe(f)
		if reason == "" && field.Open() {
			reason = "lists of variable length are not read yet"
		}
		if reason != "" {
			d.table.Schema.Skipped = append(d.table.Schema.Skipped, source.Skipped{Name: f.Name, Type: f.TypeString(), Reason: reason})
			continue
		}
		d.tops = append(d.tops, i)
		d.table.Fields = append(d.table.Fields, field)
		d.table.Schema.Fields = append(d.table.Schema.Fields, field.Source(false))
	}
	var rows []int64
	for i, f := range files {
		err := f.meta.Scan(f.os, 0, len(f.meta.Batches), func(_ int, b *arrowmeta.RecordBatch) error {
			rows = append(rows, b.Length)
			d.table.Files = append(d.table.Files, int32(i))
			return nil
		})
		if err != nil {
			return nil, f.named(err)
		}
	}
	d.table.Index = table.NewIndex(rows)
	return d, nil
}

// load finds the buffers of a field in every record batch.
func (d *Dataset) load(field int) (*table.Column, error) {
	nodes := d.table.Fields[field].Nodes
	c := &table.Column{Planes: make([]table.Plane, len(nodes))}
	for _, f := range d.files {
		err := f.meta.Scan(f.os, 0, len(f.meta.Batches), func(i int, b *arrowmeta.RecordBatch) error {
			col := &f.meta.Columns[d.tops[field]]
			body := f.meta.Batches[i].Body()
			for n := range nodes {
				if nodes[n].Kind == table.Values {
					buffers := b.Buffers(col)
					c.Planes[n].Data = append(c.Planes[n].Data, body+buffers[len(buffers)-1].Offset)
				} else {
					col = &col.Children[0]
				}
			}
			return nil
		})
		if err != nil {
			return nil, f.named(err)
		}
	}
	return c, nil
}

// Schema implements source.Source.
func (d *Dataset) Schema() source.Schema { return d.table.Schema }

// Len implements source.Source.
func (d *Dataset) Len() int64 { return d.table.Index.Len() }

// Gatherer implements source.Source.
func (d *Dataset) Gatherer(parts []source.Part) (source.Gatherer, error) {
	g, err := d.table.Gatherer(parts)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Fingerprint implements source.Source.
func (d *Dataset) Fingerprint(context.Context) (source.Fingerprint, error) {
	h := sha256.New()
	for _, f := range d.files {
		h.Write(f.meta.Digest[:])
	}
	return source.Fingerprint(h.Sum(nil)[:16]), nil
}

// Close implements source.Source.
func (d *Dataset) Close() error { return d.table.Gate.Close(patience) }

// Base implements table.Store.
func (d *Dataset) Base(file int32) (uintptr, bool) { return d.files[file].base, true }

// Acquire implements table.Store.
func (d *Dataset) Acquire(context.Context, []table.Span, []uintptr) (table.Lease, error) {
	return nil, nil
}

// Check implements table.Store.
func (d *Dataset) Check([]int32) error { return nil }
