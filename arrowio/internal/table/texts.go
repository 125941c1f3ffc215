package table

import (
	"fmt"

	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// texts sets the rows of a column. Its last level, n, holds views or indices into a
// dictionary of text. A row that is one text is used in place.
func (t *traversal) texts(n int) error {
	if err := t.findTexts(n); err != nil {
		return err
	}
	if err := t.acquire(t.found); err != nil {
		return err
	}
	if n == t.field.Structs() {
		for i := range t.runs {
			t.spans[t.runs[i].span].Row = t.found[i]
		}
		return nil
	}
	for _, span := range t.begun {
		switch size := t.elements[span]; {
		case size > arrowtype.MaxRowBytes:
			return t.failed(&run{span: span, batch: t.located[span].batch}, n, fmt.Errorf("its texts have %d bytes, more than %d", size, arrowtype.MaxRowBytes))
		case size == 0:
			t.spans[span].Row = none
		case size > 0:
			t.spans[span].Row = t.scratch.take(int(size))[:0]
		}
	}
	found := t.found
	for i := range t.runs {
		r := &t.runs[i]
		row := &t.spans[r.span].Row
		for _, text := range found[:r.count] {
			*row = append(*row, text...)
		}
		found = found[r.count:]
	}
	return nil
}

// findTexts sets the lengths of the texts of level n, and t.found to the texts. Those that
// must be acquired are wanted instead.
func (t *traversal) findTexts(n int) error {
	if err := t.fetchData(n, t.field.Values().Buffer()); err != nil {
		return err
	}
	t.restart()
	t.found, t.wanted, t.pieces = t.found[:0], t.wanted[:0], t.pieces[:0]
	find := t.view
	if t.field.TextDictionary() != nil {
		find = t.entry
	}
	for i := range t.runs {
		r := &t.runs[i]
		t.useBatch(r.batch)
		t.data.Bytes = t.bytes[i]
		lengths := t.listsOf(n, r)
		for k := range r.count {
			length, err := find(n, r, k)
			if err != nil {
				return t.failed(r, n, err)
			}
			lengths[k] = length
			t.elements[r.span] += length
		}
	}
	return nil
}

// entry finds the text of index k of a run.
func (t *traversal) entry(_ int, _ *run, k int64) (length int64, err error) {
	text, err := t.field.TextDictionary().Text(&t.data, k)
	if text == nil {
		text = none
	}
	t.found = append(t.found, text)
	return int64(len(text)), err
}

// view finds the text of view k of a run.
func (t *traversal) view(n int, r *run, k int64) (length int64, err error) {
	v, err := arrowtype.ViewAt(t.data.Bytes, k)
	if err != nil {
		return 0, err
	}
	text := v.Short
	switch {
	case text != nil:
	case t.decoded != nil:
		buffers := t.decoded.Levels[n].Buffers
		if buffers == nil {
			break // the caller wants no more than lengths
		}
		if err := v.Within(len(buffers), func(b int) int64 { return int64(len(buffers[b])) }); err != nil {
			return 0, err
		}
		text = buffers[v.Buffer][v.Offset : v.Offset+v.Length : v.Offset+v.Length]
	default:
		buffers := t.column.Planes[n].Buffers[r.batch]
		if err := v.Within(len(buffers), func(b int) int64 { return buffers[b].Bytes }); err != nil {
			return 0, err
		}
		at := buffers[v.Buffer].At + v.Offset
		if base := t.located[r.span].base; base != 0 || t.table.Store == nil {
			text = bytesAt(base+uintptr(at), v.Length)
			break
		}
		t.wanted = append(t.wanted, len(t.found))
		t.pieces = append(t.pieces, resident.Span{File: int(t.table.file(r.batch)), Offset: at, Length: int(v.Length)})
	}
	t.found = append(t.found, text)
	return v.Length, nil
}
