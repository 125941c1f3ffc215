// Package jsonl reads JSON Lines as a format of a dataset: a text with one object per line. A record
// is a line, and a key is a column.
//
// A unit is a run of lines of about 1 MiB (lines.go). Its lines are parsed once for all columns
// (column.go). The lines of the first unit are the sample that gives the columns their types
// (sample.go). A later line that does not fit is an error, which names the line.
//
// A compressed text is decompressed as a whole before it is opened here, because its lines cannot be
// found otherwise.
package jsonl

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// bom is a byte order mark, which may begin the text.
const bom = "\ufeff"

// file is the contents of a text.
type file struct {
	format.Runs
	content *resident.File
	keys    []key
	places  map[string]int // by name: the number of the key
	chosen  []string       // the keys that are read; nil for all
}

// chooses reports whether a key is read.
func (c *file) chooses(name string) bool { return c.chosen == nil || slices.Contains(c.chosen, name) }

// Open opens a text, which is divided into lines. It reads the first unit. Keys that are not chosen are
// columns too, but their values are not read; nil chooses all keys.
func Open(ctx context.Context, content *resident.File, lines []format.Run, chosen []string) (format.Contents, error) {
	c := &file{content: content, places: map[string]int{}, chosen: chosen}
	c.SetRuns(lines)
	c.Passes.Decode, c.As, c.NullsOf, c.PerByte = c.decode, "json", c.nulls, bytesPerByte
	digest := sha256.New()
	for _, l := range lines {
		fmt.Fprintln(digest, l.End, l.Records)
	}
	if err := c.sample(ctx); err != nil {
		return nil, err
	}
	schema := &arrowmeta.Schema{}
	for i := range c.keys {
		k := &c.keys[i]
		column := k.column()
		_, refused := arrowtype.Of(&column)
		k.unread = !c.chooses(k.name) || refused != "" && !arrowtype.OnlyNulls(&column)
		schema.Fields = append(schema.Fields, column)
		fmt.Fprintf(digest, "%q %s\n", column.Name, column.TypeString())
	}
	c.Facts.Format, c.Facts.Schema, c.Facts.Sampled, c.Facts.Mixed = "jsonl", schema, true, true
	c.Facts.Located = slices.Repeat([]bool{true}, len(c.keys))
	digest.Sum(c.Facts.Digest[:0])
	return c, nil
}

// nulls returns that a column may have nulls, because only the sample is known.
func (c *file) nulls(column int) buffers.Nulls {
	return buffers.Nulls{May: true, Has: c.keys[column].records < c.List[0].Records}
}

// bytesPerByte bounds the memory of a decoding: "1," becomes a number of 8 bytes, in a buffer that may
// have twice its bytes.
const bytesPerByte = 8

// decode parses the lines of a unit, and returns all columns.
func (c *file) decode(ctx context.Context, unit int) ([]*buffers.Decoded, error) {
	columns := make([]*column, len(c.keys))
	for i := range columns {
		columns[i] = newColumn(&c.keys[i])
	}
	began, name := time.Now(), []byte(nil)
	var parsing time.Time
	err := c.read(ctx, unit, func() { parsing = time.Now() }, func(record int64, object jsontext.Value) (err error) {
		for quoted, value := range object.Quoted() {
			name = quoted.AppendText(name[:0])
			number, known := c.places[string(name)]
			switch {
			case known && !c.keys[number].unread:
				err = columns[number].add(record, value)
			case !known && value.Kind() != jsontext.Null && c.chooses(string(name)):
				err = unknown(string(name))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]*buffers.Decoded, len(columns))
	for i, column := range columns {
		out[i] = column.decoded(c.List[unit].Records)
		out[i].Reading, out[i].Unpacking = parsing.Sub(began), time.Since(parsing)
	}
	return out, nil
}

// read visits the objects of a unit. It calls ready when the text is read.
func (c *file) read(ctx context.Context, unit int, ready func(), visit func(record int64, object jsontext.Value) error) error {
	e := c.Facts.Units[unit]
	text := make([]byte, e.Length)
	if err := c.content.ReadFull(ctx, text, e.Offset); err != nil {
		return err
	}
	ready()
	if e.Offset == 0 {
		text = bytes.TrimPrefix(text, []byte(bom))
	}
	number, record := c.Before(unit), int64(0)
	for line := range bytes.Lines(text) {
		number++
		object := jsontext.Value(line).Trim()
		if len(object) == 0 {
			continue
		}
		if fault := jsontext.Check(object, jsontext.MaxDepth); fault != nil {
			return damaged(number, fault)
		}
		if object.Kind() != jsontext.Object {
			return status.Errorf(status.DataLoss, "arrowio", "line %d: expected an object, but found %s", number, object.Kind()).
				WithHint("write one object per line").With("line", number)
		}
		if err := visit(record, object); err != nil {
			return format.InEntry("line", number, err)
		}
		record++
	}
	if record != c.List[unit].Records {
		return format.Recounted("the lines up to %d have %d records, but had %d when they were counted", number, record, c.List[unit].Records)
	}
	return nil
}

// damaged returns the error for a line that is not JSON.
func damaged(number int64, fault *jsontext.Error) error {
	return status.Errorf(status.DataLoss, "arrowio", "line %d is not JSON: %w", number, fault).
		WithHint("write one object per line, in UTF-8; NaN and Infinity are no JSON: write null").With("line", number)
}
