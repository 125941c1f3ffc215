package parts

import (
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/meshfeed/meshfeed/arrowio/internal/diskcache"
	"github.com/meshfeed/meshfeed/arrowio/internal/part"
	"github.com/meshfeed/meshfeed/arrowio/internal/spare"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// worker writes parts of a set until none is left.
type worker struct {
	*set
	current *state
}

// othersAfter is how long a worker waits if other processes write all parts that are left.
const othersAfter = 20 * time.Millisecond

func (w *worker) run() error {
	passed := 0 // parts in a row that other processes are writing
	for w.next() {
		if w.produce(w.current) {
			passed = 0
			continue
		}
		w.mu.Lock()
		w.queue = append(w.queue, w.current)
		all := passed >= len(w.queue)
		w.mu.Unlock()
		if passed++; all {
			select {
			case <-time.After(othersAfter):
			case <-w.cache.life.Done():
			}
		}
	}
	return nil
}

// next takes the first part of the queue. If the queue is empty, it counts the end of the worker.
func (w *worker) next() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		w.workers--
		return false
	}
	w.current, w.queue = w.queue[0], w.queue[1:]
	return true
}

// failed ends a worker that panicked.
func (w *worker) failed(err error) {
	w.end(w.current, &decodingError{err})
	w.mu.Lock()
	w.workers--
	w.mu.Unlock()
	w.start(nil)
}

// produce writes a part, or takes the part that another process has written, and ends the attempt.
// It returns false if another process is writing the part.
func (s *set) produce(p *state) (ended bool) {
	if err := s.onDisk.Calls.Enter(); err != nil {
		s.end(p, err)
		return true
	}
	committing := false
	defer func() {
		if !committing {
			s.onDisk.Calls.Leave()
		}
	}()
	scratch, found, err := s.newScratch(p)
	switch {
	case scratch != nil:
		committing = true
		s.commit(scratch, p)
	case found || err != nil:
		s.end(p, err)
	default:
		return false
	}
	return true
}

// newScratch writes a part to a scratch file. Found reports that the part was written before. If
// another process is writing the part, scratch is nil.
func (s *set) newScratch(p *state) (scratch *diskcache.Scratch, found bool, err error) {
	if found, err := s.find(p); found || err != nil {
		return nil, found, err
	}
	to, err := s.create(p)
	if to == nil || err != nil {
		return nil, false, err
	}
	defer func() {
		if scratch == nil { // an error or a panic
			to.Abort()
		}
	}()
	if err := s.write(to, p); err != nil {
		return nil, false, err
	}
	return to, false, nil
}

// maxCommits bounds the parts of a process that wait for the disk while others are decoded.
const maxCommits = 8

var commits = semaphore.NewWeighted(maxCommits)

var commitScratch = (*diskcache.Scratch).Commit // tests replace it

// commit makes a part ready after its bytes are on the disk. It returns before that, so that
// the worker can decode the next part, unless many other parts wait for the disk.
func (s *set) commit(scratch *diskcache.Scratch, p *state) {
	finish := func() error {
		defer s.onDisk.Calls.Leave()
		entry, err := commitScratch(scratch)
		if err == nil {
			err = s.install(p, entry)
		}
		s.end(p, err)
		return nil
	}
	if !commits.TryAcquire(1) {
		_ = finish()
		return
	}
	guard.Go("arrowio", func() error {
		defer commits.Release(1)
		return finish()
	}, func(err error) { s.end(p, &decodingError{err}) })
}

// find takes a part that was written before. It removes a damaged one.
func (s *set) find(p *state) (found bool, err error) {
	entry, err := s.cache.folder.Find(p.key)
	if entry == nil || err != nil {
		return false, err
	}
	if err = s.install(p, entry); err == part.ErrDamaged {
		return false, s.cache.folder.Remove(p.key)
	}
	return err == nil, err
}

// write decodes the units of a part.
func (s *set) write(to *diskcache.Scratch, p *state) error {
	w := part.NewWriter(to)
	which, _ := s.held(p)
	for batch := p.first; batch < p.last; batch++ {
		for _, k := range which {
			if err := s.cache.life.Err(); err != nil {
				return status.Ended("arrowio", "the gather", err)
			}
			values, err := s.cache.decoded.Once(s.cache.life, int32(batch), s.cache.files.Fields[s.numbers[k]], false)
			if err != nil {
				return &decodingError{err}
			}
			if err := w.Column(values); err != nil {
				return err
			}
			spare.Give(values.Levels[len(values.Levels)-1].Data)
		}
	}
	if err := p.file.Content.Check(); err != nil {
		return &decodingError{p.file.Named(err)}
	}
	return w.Finish(p.key, s.about)
}
