package table

import (
	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/core/source"
)

// storedIn returns the field as the file of a record batch stores it. It has no column if all rows are
// null.
func (f *readField) storedIn(batch int32) *readField {
	if f.column.Variants == nil || f.column.Variants[batch] == nil {
		return f
	}
	v := f.column.Variants[batch]
	if v.Column == nil {
		return &readField{}
	}
	return newReadField(f.number, v.Field, v.Column)
}

// rows sets the rows of the spans, which are of one field.
func (s *readState) rows(f *readField, spans []source.Span, at []located) error {
	if f.column.Variants == nil {
		return s.traversal.rows(f, spans, at)
	}
	return divided(f, spans, at, func(f *readField, of []int, some []source.Span, at []located) error {
		err := s.traversal.rows(f, some, at)
		for k, i := range of {
			spans[i] = some[k]
		}
		return err
	})
}

// lengths writes the lengths of the rows of a ragged field.
func (s *readState) lengths(f *readField, spans []source.Span, at []located, out []int64) error {
	if f.column.Variants == nil {
		return s.traversal.lengths(f, spans, at, out)
	}
	for i := range out {
		out[i] = -1
	}
	return divided(f, spans, at, func(f *readField, of []int, some []source.Span, at []located) error {
		lengths := make([]int64, len(of))
		err := s.traversal.lengths(f, some, at, lengths)
		for k, i := range of {
			out[i] = lengths[k]
		}
		return err
	})
}

// divided calls do for the spans in files that store the field in one way, together with their
// indices. It leaves out null rows of files that have nothing but nulls.
func divided(f *readField, spans []source.Span, at []located, do func(f *readField, of []int, spans []source.Span, at []located) error) error {
	ways, order := map[*buffers.Variant][]int{}, []*buffers.Variant(nil)
	for i := range at {
		v := f.column.Variants[at[i].batch]
		if ways[v] == nil {
			order = append(order, v)
		}
		ways[v] = append(ways[v], i)
	}
	for _, v := range order {
		of := ways[v]
		stored := f.storedIn(at[of[0]].batch)
		if stored.column == nil {
			continue
		}
		some, places := make([]source.Span, len(of)), make([]located, len(of))
		for k, i := range of {
			some[k], places[k] = spans[i], at[i]
		}
		if err := do(stored, of, some, places); err != nil {
			return err
		}
	}
	return nil
}
