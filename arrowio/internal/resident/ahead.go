package resident

import (
	"context"
	"sync"
)

// hints holds the regions of files that the latest call of Ahead requested. They
// replace regions that have not been passed to the kernel yet: the step that needs
// them has already begun.
type hints struct {
	mu      sync.Mutex
	running bool
	pending []region
}

// Ahead requests readahead for the spans of the next step. It returns at once. A
// goroutine then asks the kernel to read them, in file order.
func (s *Set) Ahead(spans []Span) {
	var missing []int
	for i, span := range spans {
		f := s.files[span.File]
		if f.mappable != nil && f.covers(span) && !f.resident(span) {
			missing = append(missing, i)
		}
	}
	if len(missing) == 0 {
		return
	}
	list, _ := s.regions(spans, missing, nil, nil)
	h := &s.ahead
	h.mu.Lock()
	h.pending = list
	start := !h.running
	h.running = true
	h.mu.Unlock()
	if start {
		s.background(s.passHints)
	}
}

// passHints passes pending regions to the kernel until none is left.
func (s *Set) passHints(ctx context.Context) error {
	for {
		s.ahead.mu.Lock()
		list := s.ahead.pending
		s.ahead.pending = nil
		s.ahead.running = list != nil
		s.ahead.mu.Unlock()
		if list == nil {
			return nil
		}
		for _, r := range list {
			if ctx.Err() != nil {
				return nil
			}
			r.file.mappable.WillNeed(r.from, r.to)
		}
	}
}
