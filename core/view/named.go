package view

import (
	"errors"
	"slices"

	"github.com/meshfeed/meshfeed/core/status"
)

// A reader of files adds the name of a file to an error of use with the attribute "record": the file that
// has its own record with that number. A view over it has other numbers, or other datasets beside it.

// hidden is an error about a record that a reader does not have. The reader finds no status.Error in it.
type hidden struct{ error }

// named calls read, which calls use. If use fails, the reader of read sees the number that its own record
// has, which number returns, and names the file of that record. If number returns false, the record is in
// another dataset, and the reader sees no record.
func named(read func(use func() error) error, use func() error, number func(record int64) (int64, bool)) error {
	moved := false
	err := read(func() error {
		err := use()
		record, ok := recordOf(err)
		if !ok {
			return err
		}
		below, ok := number(record)
		if !ok {
			return hidden{err}
		}
		e, _ := errors.AsType[*status.Error](err)
		there := *e
		there.Attrs = append([]status.Attr{{Key: "record", Value: below}}, e.Attrs...)
		moved = true
		return &there
	})
	if h, ok := errors.AsType[hidden](err); ok {
		return h.error
	}
	if e, ok := errors.AsType[*status.Error](err); ok && moved {
		own := *e
		at := slices.IndexFunc(own.Attrs, func(a status.Attr) bool { return a.Key == "record" })
		own.Attrs = slices.Delete(slices.Clone(own.Attrs), at, at+1)
		return &own
	}
	return err
}

// recordOf returns the record that an error is about.
func recordOf(err error) (record int64, ok bool) {
	if e, known := errors.AsType[*status.Error](err); known {
		record, ok = e.Attr("record").(int64)
	}
	return record, ok
}
