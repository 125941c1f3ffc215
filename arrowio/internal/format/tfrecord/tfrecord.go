// Package tfrecord reads files of TFRecord as a format of a dataset. A file is one record after the other,
// each with its length and checksums (frames.go). A record is a tf.Example, a message of protobuf
// (example.go): lists of bytes, floats or integers by name, the features.
//
// The file has no index and does not say which features there are. So all of it is read when it is first
// opened, and the caller keeps what is found (index.go). The records of all files of a dataset give the
// columns their types ([Agree]). If each record has one value of a feature, the column has single values.
// If each has as many, it has lists of that size. Otherwise it has lists. A record without the feature is
// null.
//
// A unit is a run of records of about 1 MiB. They are parsed once for all columns (column.go).
package tfrecord

import (
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// bytesPerByte bounds the memory of a decoding: an integer of one byte becomes 8 bytes, in a buffer that
// may have twice its bytes.
const bytesPerByte = 16

// File is the contents of a file.
type File struct {
	format.Runs
	content  *resident.File
	index    *Index
	chosen   []string // the features that are read; nil for all
	features []Feature
	columns  map[string]int // the number of each feature
}

// Open returns the contents of a file with an index. Features that are not chosen are columns too, but
// their values are not read; nil chooses all.
func Open(content *resident.File, index *Index, chosen []string) (*File, error) {
	c := &File{content: content, index: index, chosen: chosen}
	c.SetRuns(index.Runs)
	c.Passes.Decode, c.As, c.PerByte = c.decode, "tf.Example", bytesPerByte
	c.NullsOf = func(column int) buffers.Nulls {
		null := c.features[column].Records < c.total()
		return buffers.Nulls{May: null, Has: null}
	}
	c.Facts.Format, c.Facts.Sampled, c.Facts.Mixed = "tfrecord", true, true
	kept, err := index.Append()
	if err != nil {
		return nil, err
	}
	c.Facts.Digest = sha256.Sum256(append([]byte("tfrecord 1\n"), kept...))
	return c, Agree([]*File{c})
}

// total returns the number of records.
func (c *File) total() int64 { return c.List[len(c.List)-1].Number }

// chooses reports whether a feature is read.
func (c *File) chooses(name string) bool { return c.chosen == nil || slices.Contains(c.chosen, name) }

// Agree gives all files of a dataset the same columns, which follow from the records of all of them. The error is
// Incompatible if a chosen feature has values of two kinds in one file.
func Agree(files []*File) error {
	all, total := map[string]Feature{}, int64(0)
	for _, c := range files {
		total += c.total()
		for _, f := range c.index.Features {
			if f.Other != "" && c.chooses(f.Name) {
				return status.Errorf(status.Incompatible, "arrowio", "%s: %s", c.content.Name(), f.Other).
					WithHint("write the file again with one type for each feature, or choose the other columns (columns=; Go: Columns)").
					With("path", c.content.Name()).With("field", f.Name)
			}
			if known, ok := all[f.Name]; ok {
				f = known.with(f)
			}
			all[f.Name] = f
		}
	}
	if len(all) > maxFeatures {
		return status.Errorf(status.Unsupported, "arrowio", "the files have more than %d features together", maxFeatures).
			WithHint("open the files apart")
	}
	for _, c := range files {
		c.set(all, total)
	}
	return nil
}

// set sets the columns to the features of all files, which have a number of records together. A feature keeps
// the kind that it has in this file, so that kinds are compared as types are.
func (c *File) set(all map[string]Feature, total int64) {
	c.features, c.columns, c.Facts.Schema, c.Facts.Located = nil, map[string]int{}, &arrowmeta.Schema{}, nil
	for _, f := range slices.SortedFunc(maps.Values(all), byName) {
		own, found := slices.BinarySearchFunc(c.index.Features, f, byName)
		here := Feature{Kind: f.Kind}
		if found {
			here = c.index.Features[own]
		}
		f.Kind = here.Kind
		c.columns[f.Name] = len(c.features)
		c.Facts.Schema.Fields = append(c.Facts.Schema.Fields, f.column(total))
		c.Facts.Located = append(c.Facts.Located, true)
		f.Records = here.Records
		c.features = append(c.features, f)
	}
}

// decode parses the records of a unit, and returns all columns.
func (c *File) decode(ctx context.Context, unit int) ([]*buffers.Decoded, error) {
	began, e := time.Now(), c.Facts.Units[unit]
	text := make([]byte, e.Length)
	if err := c.content.ReadFull(ctx, text, e.Offset); err != nil {
		return nil, err
	}
	parsing := time.Now()
	columns := make([]*column, len(c.features))
	for i := range columns {
		columns[i] = newColumn(&c.Facts.Schema.Fields[i], c.features[i].Kind)
	}
	first, rows := c.Before(unit), c.List[unit].Records
	whole, _, err := records(text, first, e.Offset, func(number int64, record []byte) error {
		return values(record, func(v value) error {
			i, known := c.columns[string(v.name)]
			if v.kind == nothing || known && !c.chooses(string(v.name)) {
				return nil
			}
			if !known || number-first >= rows || !columns[i].add(number-first, &v) {
				return changed()
			}
			return nil
		})
	})
	if err == nil && whole < e.Length {
		err = changed()
	}
	if err != nil {
		return nil, err
	}
	out := make([]*buffers.Decoded, len(columns))
	for i, column := range columns {
		if out[i] = (&buffers.Decoded{}); !c.chooses(c.features[i].Name) {
			continue
		}
		if !column.fill(rows) {
			return nil, changed()
		}
		out[i] = column.decoded()
		out[i].Reading, out[i].Unpacking = parsing.Sub(began), time.Since(parsing)
	}
	return out, nil
}

func changed() error {
	return format.Recounted("the records are not those that the file had when they were counted")
}
