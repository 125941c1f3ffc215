package parts

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// ahead begins to write the parts of records that will be needed. If none is missing, or none can
// be written, it announces the records to the gatherer or reader that will be used.
func (s *set) ahead(draw source.Draw, records []int64, onDisk, inMemory interface {
	Ahead(draw source.Draw, records []int64)
}) {
	switch {
	case s.missing.Load() == 0:
		onDisk.Ahead(draw, records)
	case s.cache.disabled():
		inMemory.Ahead(draw, records)
	default:
		s.start(s.needed(len(records), func(i int) int64 { return records[i] }))
	}
}

// ready makes the parts of some records ready. It returns false if they have to be decoded
// in memory instead: because of damage, or because the folder has no room and the caller
// has not chosen it.
func (s *set) ready(ctx context.Context, n int, record func(i int) int64) (bool, error) {
	if s.missing.Load() == 0 {
		return true, nil
	}
	if s.cache.disabled() {
		return false, nil
	}
	list := s.needed(n, record)
	if len(list) == 0 {
		return true, nil
	}
	ctx, stop := s.onDisk.Calls.Join(ctx)
	defer stop()
	began := time.Now()
	defer func() { source.TimesOf(ctx).AddDecode(time.Since(began)) }()
	s.prioritize(list)
	for _, p := range list {
		for !s.stored.Ready(p.number) {
			if err := s.wait(ctx, p); err != nil {
				return false, s.explain(ctx, err)
			}
		}
	}
	return true, nil
}

// explain returns the error of a part for a gather, or nil if the gather can decode its
// units in memory.
func (s *set) explain(ctx context.Context, err error) error {
	switch {
	case isDecoding(err):
		return nil
	case ctx.Err() != nil:
		return status.Ended("arrowio", "the gather", ctx.Err())
	}
	missing := int64(0)
	for _, p := range s.parts {
		if !s.stored.Ready(p.number) {
			missing += p.bytes
		}
	}
	what, code := err.Error(), status.IO
	if known, ok := errors.AsType[*status.Error](err); ok {
		what, code = known.Msg, known.Code
	}
	failed := status.Errorf(code, "arrowio", "%s; about %d bytes more are needed", what, missing).
		WithHint("make room, or give another folder (cache) or limit (cache_bytes); or set cache to memory").With("path", s.cache.folder.Path())
	if !s.cache.auto() {
		return failed
	}
	s.cache.disable(failed)
	s.remove()
	return nil
}

// start begins to write parts, and returns at once.
func (s *set) start(list []*state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(list)
	s.work()
}

// prioritize begins to write parts before all others that were only announced.
func (s *set) prioritize(list []*state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(list)
	waiting := s.queue
	s.queue = make([]*state, 0, len(waiting))
	for _, p := range list {
		if slices.Contains(waiting, p) {
			s.queue = append(s.queue, p)
		}
	}
	for _, p := range waiting {
		if !slices.Contains(list, p) {
			s.queue = append(s.queue, p)
		}
	}
	s.work()
}

// add adds parts to the queue. The caller holds the lock.
func (s *set) add(list []*state) {
	for _, p := range list {
		if p.attempt == nil {
			p.attempt = &attempt{done: make(chan struct{})}
			s.queue = append(s.queue, p)
		}
	}
}

// work begins to fetch the bytes of parts in the queue, and starts workers. The caller holds the lock.
func (s *set) work() {
	s.fetch()
	for s.workers < min(len(s.queue), runtime.GOMAXPROCS(0)) {
		s.workers++
		w := worker{set: s}
		guard.Go("arrowio", w.run, w.failed)
	}
}

// wait waits for a part, which it starts unless it was started. The error may be an error of the
// decoding.
func (s *set) wait(ctx context.Context, p *state) error {
	s.prioritize([]*state{p})
	s.mu.Lock()
	a := p.attempt
	s.mu.Unlock()
	if a == nil {
		return nil // it has just failed, and is not ready
	}
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return status.Ended("arrowio", "the gather", ctx.Err())
	}
}

// end ends the attempt to write a part. After an error of the folder, or of a close, it ends
// the attempts of all parts in the queue, and a later gather may try again.
func (s *set) end(p *state, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := []*state{p}
	if again := err != nil && !isDecoding(err); again {
		ended, s.queue = append(ended, s.queue...), nil
		defer func() {
			for _, p := range ended {
				p.attempt = nil
			}
		}()
	}
	for _, p := range ended {
		s.unclaim(p)
		p.attempt.err = err
		close(p.attempt.done)
	}
	s.fetch()
}

// decodingError is the error of a decoding for a part. It is left to the gathers that decode
// the unit in memory.
type decodingError struct{ error }

func (e *decodingError) Unwrap() error { return e.error }

func isDecoding(err error) bool {
	_, ok := errors.AsType[*decodingError](err)
	return ok
}
