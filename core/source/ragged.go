package source

import (
	"context"
	"fmt"
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
)

// IsText reports whether the rows of a ragged field, or the elements of their lists, are
// text in UTF-8. Data are not trusted: reading a row does not check its bytes.
func (f Field) IsText() bool { return f.Ragged > 0 && strings.Contains(f.Logical, "string") }

// TypeString returns the type of a row: "string", "list<int32>", "list<list<float32[3]>>".
func (f Field) TypeString() string {
	inner, lists := f.Type.String(), f.Ragged
	if len(f.Shape) > 0 {
		inner += strings.ReplaceAll(fmt.Sprint(f.Shape), " ", ", ")
	}
	if f.Logical != "" {
		inner = f.Logical
		if f.IsText() || f.IsBytes() {
			lists--
		}
	}
	return strings.Repeat("list<", lists) + inner + strings.Repeat(">", lists)
}

// IsBytes reports whether the innermost lists are values of Arrow's binary types.
func (f Field) IsBytes() bool { return f.Ragged > 0 && strings.Contains(f.Logical, "binary") }

// Why returns why the rows of a ragged field are not rows of an array, with a remedy. It is
// empty for a fixed field.
func (f Field) Why() string {
	pad := fmt.Sprintf("ds.pad(%q, length=…) in Python, view.Pad in Go, mf_dataset_pad in C", f.Name)
	what := "lists of different lengths; give them one length: " + pad
	switch {
	case f.Ragged == 0:
		return ""
	case f.Ragged > 1:
		what = "nested lists of different lengths; store them with one length"
	case strings.HasPrefix(f.Logical, "dictionary<"):
		what = "categories, given as text; store the indices instead: column.combine_chunks().indices in pyarrow, to_physical() in polars, cat.codes in pandas"
	case f.IsText():
		what = "text of different lengths; store token ids, or give the bytes one length: " + pad
	case f.IsBytes():
		what = fmt.Sprintf("bytes of different lengths; store decoded elements, give them a shape: ds.reshape(%q, …) in Python, view.Reshape in Go, mf_dataset_reshape in C, or give them one length: %s", f.Name, pad)
	}
	return "its rows are " + what
}

// HasLengths reports whether [Reader].Lengths reads the lengths of the rows, which are lists.
func (f Field) HasLengths() bool { return f.Ragged > 0 || f.Lists }

// CheckRow returns an error if a row does not have the shape of its fixed field: it is a list
// or a binary value of another length.
func (f *Field) CheckRow(s *Span) error {
	if f.Ragged > 0 || s.Row == nil || len(s.Row) == f.RowBytes() {
		return nil
	}
	if !f.Lists {
		return status.Errorf(status.InvalidArgument, "source", "field %q: record %d has %d bytes, but rows of shape %v and type %v have %d",
			f.Name, s.Record, len(s.Row), f.Shape, f.Type, f.RowBytes()).
			WithHint("give the shape that the rows have, or leave out this record (Go: view.FilterFunc; Python: ds.filter)").
			With("field", f.Name).With("record", s.Record)
	}
	return status.Errorf(status.InvalidArgument, "source", "field %q: record %d has a list of %d values in dimension 0, where the shape %v of the rows needs %d",
		f.Name, s.Record, len(s.Row)/(f.RowBytes()/f.Shape[0]), f.Shape, f.Shape[0]).
		WithHint("pad or cut the lists to one length, or give the right shape").
		With("field", f.Name).With("record", s.Record)
}

// lengthsAtOnce is the number of lengths that are read together.
const lengthsAtOnce = 64 << 10

// Lengths writes the lengths of the rows of a field in the zero Draw to out, from record start on.
// The error is InvalidArgument, also if out is empty, for a field that has one value in each
// record.
func Lengths(ctx context.Context, src Source, field int, start int64, out []int64) error {
	if err := Given("source", src); err != nil {
		return err
	}
	r, err := src.Reader([]int{field})
	if err != nil {
		return err
	}
	defer r.Close()
	records := make([]int64, min(lengthsAtOnce, len(out)))
	for from := 0; from == 0 || from < len(out); from += lengthsAtOnce {
		some := out[from:min(from+lengthsAtOnce, len(out))]
		for i := range some {
			records[i] = start + int64(from+i)
		}
		if err := RowLengths(ctx, Draw{}, r, src.Schema().Fields[field], field, records[:len(some)], some); err != nil {
			return err
		}
	}
	return nil
}

// RowLengths writes the lengths of the rows of a field of a reader, as [Reader].Lengths
// does, also if the rows have one shape. If some of these may be null, it reads their values.
func RowLengths(ctx context.Context, draw Draw, r Reader, f Field, field int, records, out []int64) error {
	switch {
	case f.HasLengths():
		return r.Lengths(ctx, draw, field, records, out)
	case len(f.Shape) == 0:
		return status.Errorf(status.InvalidArgument, "source", "field %q has one value in each record, and no lengths", f.Name).With("field", f.Name)
	}
	for i := range out {
		out[i] = int64(f.Shape[0])
	}
	if !f.Nullable {
		return nil
	}
	spans := make([]Span, 0, min(rowsAtOnce, len(records)))
	for from := 0; from < len(records); from += rowsAtOnce {
		spans = spans[:0]
		for _, record := range records[from:min(from+rowsAtOnce, len(records))] {
			spans = append(spans, Span{Field: field, Record: record})
		}
		err := r.Read(ctx, draw, spans, func() error {
			for i := range spans {
				if spans[i].Null() {
					out[from+i] = -1
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rowsAtOnce is the number of rows that are read together, which a reader may keep all.
const rowsAtOnce = 1 << 12
