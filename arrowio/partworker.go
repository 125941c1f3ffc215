package arrowio

import (
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/meshfeed/meshfeed/arrowio/internal/diskcache"
	"github.com/meshfeed/meshfeed/arrowio/internal/part"
	"github.com/meshfeed/meshfeed/arrowio/internal/spare"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// worker makes parts of a set until none is left to make.
type worker struct {
	*partSet
	current *partState
}

// othersAfter is how long a worker waits if other processes make all parts that are left.
const othersAfter = 20 * time.Millisecond

func (w *worker) run() error {
	passed := 0 // parts in a row that other processes are making
	for w.next() {
		if w.make(w.current) {
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
			case <-w.d.life.Done():
			}
		}
	}
	return nil
}

// next takes the first part of the queue. If there is none, it counts the end of the worker.
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

// end ends the attempt to make a part. After an error of the folder, or of a close, it ends
// the attempts of all parts in the queue, and a later gather may try again.
func (s *partSet) end(p *partState, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := []*partState{p}
	if again := err != nil && !isDecoding(err); again {
		ended, s.queue = append(ended, s.queue...), nil
		defer func() {
			for _, p := range ended {
				p.attempt = nil
			}
		}()
	}
	for _, p := range ended {
		p.attempt.err = err
		close(p.attempt.done)
	}
}

// failed ends a worker that panicked.
func (w *worker) failed(err error) {
	w.end(w.current, &decodingError{err})
	w.mu.Lock()
	w.workers--
	w.mu.Unlock()
	w.start(nil)
}

// make makes a part, or takes that of another process, and ends the attempt. It returns false
// if another process is making the part.
func (s *partSet) make(p *partState) (ended bool) {
	if err := s.d.table.Calls.Enter(); err != nil {
		s.end(p, err)
		return true
	}
	committing := false
	defer func() {
		if !committing {
			s.d.table.Calls.Leave()
		}
	}()
	scratch, found, err := s.written(p)
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

// written writes a part to a scratch file. Found reports that the part was made before. If it
// was not, and another process is making it, there is no scratch file.
func (s *partSet) written(p *partState) (scratch *diskcache.Scratch, found bool, err error) {
	if found, err := s.find(p); found || err != nil {
		return nil, found, err
	}
	to, err := s.folder.Create(p.key)
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
func (s *partSet) commit(scratch *diskcache.Scratch, p *partState) {
	finish := func() error {
		defer s.d.table.Calls.Leave()
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

// find takes a part that was made before. It removes a damaged one.
func (s *partSet) find(p *partState) (found bool, err error) {
	entry, err := s.folder.Find(p.key)
	if entry == nil || err != nil {
		return false, err
	}
	if err = s.install(p, entry); err == part.ErrDamaged {
		return false, s.folder.Remove(p.key)
	}
	return err == nil, err
}

// write decodes the units of a part.
func (s *partSet) write(to *diskcache.Scratch, p *partState) error {
	w := part.NewWriter(to)
	for batch := p.first; batch < p.last; batch++ {
		which, _ := s.held(p)
		for _, k := range which {
			if err := s.d.life.Err(); err != nil {
				return gatherEnded(err)
			}
			decoded, err := s.d.decodeOnce(s.d.life, int32(batch), s.fields[k], s.d.columns[s.numbers[k]], false)
			if err != nil {
				return &decodingError{err}
			}
			if err := w.Column(decoded); err != nil {
				return err
			}
			spare.Give(decoded.Levels[len(decoded.Levels)-1].Data)
		}
	}
	if err := p.file.content.Check(); err != nil {
		return &decodingError{p.file.named(err)}
	}
	return w.Finish(p.key, s.about)
}
