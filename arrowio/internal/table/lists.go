package table

import (
	"errors"
	"fmt"
	"sort"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// Lists reads the offsets of a field's lists in one record batch, without their
// values. Read returns bytes of a level's data buffer, or of its validity bitmap,
// beginning with byte at. A nil bitmap means that no value is null. The bytes
// stay valid until the next Read of the same buffer.
type Lists struct {
	Field  *arrowtype.Field
	Column *buffers.Column
	Batch  int32
	Read   func(level int, validity bool, at, bytes int64) ([]byte, error)
}

// Uneven is the error for a list with another length than the shape of its field's rows has.
type Uneven struct {
	Field  *arrowtype.Field
	Record int64
	Level  int // the dimension of the row
	Length int64
}

func (e *Uneven) Error() string { return e.Status().Error() }

// Status returns the error of a call that needs the record.
func (e *Uneven) Status() *status.Error {
	return status.Errorf(status.InvalidArgument, "arrowio", "field %q: record %d has a list of %d values in dimension %d, where the shape %v of the rows needs %d",
		e.Field.Name, e.Record, e.Length, e.Level, e.Field.Shape, e.Field.List(e.Level).Length()).
		WithHint("pad or cut the lists to one length, or give the right shape").
		With("field", e.Field.Name).With("record", e.Record)
}

// Reason returns why the rows of the column have no common shape.
func (e *Uneven) Reason() string {
	return fmt.Sprintf("its lists differ in length: record %d has %d values in dimension %d, where the shape %v of the rows needs %d; pad or cut them to one length",
		e.Record, e.Length, e.Level, e.Field.Shape, e.Field.List(e.Level).Length())
}

// inMemory is the Read of a batch in memory, where positions are addresses.
func (l *Lists) inMemory(level int, validity bool, at, bytes int64) ([]byte, error) {
	p := &l.Column.Planes[level]
	if !validity {
		return bytesAt(uintptr(p.Data[l.Batch]+at), bytes), nil
	}
	if p.ValidOf(l.Batch) < 0 {
		return nil, nil
	}
	return bytesAt(uintptr(p.Valid[l.Batch]+at), bytes), nil
}

// FirstShape sets the unknown dimensions of a shape, which are negative, to the
// lengths of the lists in a row. Found is false if a list of the row is null or
// empty. Empty is the dimension of the empty list, or -1.
func (l *Lists) FirstShape(row int64, shape []int) (found bool, empty int, err error) {
	at := row
	for n := range l.Field.Levels {
		at += l.Column.Planes[n].ShiftOf(l.Batch)
		valid, err := l.Read(n, true, at>>3, 1)
		if err != nil || valid != nil && valid[0]>>(at&7)&1 == 0 {
			return false, -1, err
		}
		list, ok := l.Field.Levels[n].(arrowtype.List)
		if !ok {
			break
		}
		first, count, err := l.children(n, at, 1)
		switch {
		case err != nil:
			return false, -1, err
		case count == 0:
			return false, n, nil
		case list.Length() < 0 && shape[n] < 0:
			shape[n] = int(min(count, arrowtype.MaxRowBytes))
		}
		at = first
	}
	return true, -1, nil
}

// children returns the range of elements, in level n+1, of count lists of level n
// from list start on.
func (l *Lists) children(n int, start, count int64) (first, elements int64, err error) {
	list, offsets := l.Field.List(n), []byte(nil)
	if buffer := list.Buffer(); buffer.Bits > 0 {
		from, length := buffer.Bytes(start, count)
		if offsets, err = l.Read(n, false, from, length); err != nil {
			return 0, 0, err
		}
	}
	first, elements, err = list.Children(start, count, offsets)
	if err != nil || list.Direct() {
		return first, elements, err
	}
	if length := l.Column.Planes[n+1].Length[l.Batch]; first < 0 || elements < 0 || first > length-elements {
		return 0, 0, fmt.Errorf("its lists go from element %d to %d of %d", first, first+elements, length)
	}
	return first, elements, nil
}

// Check checks the lists of the rows [from, to) of the batch. Row from is record
// number first of the dataset. If a list has another length than the shape needs,
// the error is an *Uneven with the first such record. Invalid offsets are another
// error.
func (l *Lists) Check(from, to, first int64) error {
	err := l.check(0, from, to-from)
	if _, unread := errors.AsType[*status.Error](err); err == nil || unread {
		return err
	}
	// The checked rows have no error if and only if they end before the first wrong one.
	row := int64(sort.Search(int(to-from), func(k int) bool { return l.check(0, from, int64(k)+1) != nil }))
	err = l.check(0, from+row, 1)
	if wrong, ok := errors.AsType[*Uneven](err); ok {
		wrong.Record = first + row
	}
	return err
}

// listsAtOnce bounds the lists that are checked together.
const listsAtOnce = 64 << 10

// check checks count elements of a level, from element start on.
func (l *Lists) check(n int, start, count int64) error {
	if n > l.Field.LastOffsets() {
		return nil
	}
	start += l.Column.Planes[n].ShiftOf(l.Batch)
	for count > 0 {
		m := min(count, listsAtOnce)
		if err := l.checkSome(n, start, m); err != nil {
			return err
		}
		start, count = start+m, count-m
	}
	return nil
}

// checkSome checks the lists of a level that are not null, then their elements.
func (l *Lists) checkSome(n int, start, count int64) error {
	valid, err := l.Read(n, true, start>>3, (start+count+7)>>3-start>>3)
	if err != nil {
		return err
	}
	// Most writers store no elements for a null list. Then the elements of the lists
	// before and after it are adjacent, and are checked together.
	var from, to int64
	check := func(k, m int64) {
		if err != nil {
			return
		}
		var begin, elements int64
		if begin, elements, err = l.children(n, start+k, m); err != nil {
			if length, ok := errors.AsType[*arrowtype.LengthError](err); ok {
				err = &Uneven{Field: l.Field, Level: n, Length: length.Length}
			}
			return
		}
		if begin != to {
			if err = l.check(n+1, from, to-from); err != nil {
				return
			}
			from = begin
		}
		to = begin + elements
	}
	if valid == nil {
		check(0, count)
	} else {
		setRuns(valid, start&7, count, check)
	}
	if err != nil {
		return err
	}
	return l.check(n+1, from, to-from)
}
