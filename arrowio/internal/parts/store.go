package parts

import (
	"context"
	"slices"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
)

// store implements table.Store over the parts of a set. Gathers ask for ready parts only.
type store set

// Columns implements table.Store for the fields of the set.
func (s *store) Columns(fields []int) ([]*buffers.Column, error) {
	list := make([]*buffers.Column, len(fields))
	for i, field := range fields {
		list[i] = s.columns[slices.Index(s.numbers, field)]
	}
	return list, nil
}

// Base implements table.Store.
func (s *store) Base(file int32) (uintptr, bool) {
	if p := s.parts[file]; p.ready.Load() {
		return p.content.Base()
	}
	return 0, false
}

// Acquire implements table.Store.
func (s *store) Acquire(ctx context.Context, spans []resident.Span, to []uintptr) (*resident.Lease, error) {
	return s.opened.Acquire(ctx, spans, to)
}

// Ahead implements table.Store.
func (s *store) Ahead(spans []resident.Span) { s.opened.Ahead(spans) }

// Arm implements table.Store.
func (s *store) Arm() { s.opened.Arm() }

// checkAfter is the shortest time between two checks of the files. No program writes to
// them, and the fault handler notices if one was made shorter all the same.
const checkAfter = time.Second

// Check implements table.Store.
func (s *store) Check(files []int32) error {
	now, last := time.Now().UnixNano(), s.checked.Load()
	all := now-last > int64(checkAfter) && s.checked.CompareAndSwap(last, now)
	for _, i := range files {
		content := s.parts[i].content
		if !all && !content.HasFaulted() {
			continue
		}
		if err := content.Check(); err != nil {
			return err
		}
	}
	return nil
}

// Named implements table.Store.
func (s *store) Named(batch int32, err error) error { return s.parts[s.of[batch]].file.Named(err) }
