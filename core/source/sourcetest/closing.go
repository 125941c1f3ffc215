package sourcetest

import (
	"context"
	"runtime"
	"time"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// hang bounds the wait for a gather that should end at once.
const hang = 20 * time.Second

// closeWhileGathering closes the source during gathers. They may succeed, or fail
// because the source is closed.
func (r *run) closeWhileGathering() {
	fixed := r.fixed()
	if len(fixed) == 0 {
		return // no fixed fields
	}
	g, f := r.gatherer(r.whole(fixed[0])), r.src.Schema().Fields[fixed[0]]
	records := r.sample(64)
	running, ended := make(chan struct{}, 4), make(chan error, 4)
	for range cap(running) {
		guard.Go("sourcetest", func() error {
			dst := make([]byte, len(records)*f.RowBytes())
			job := []source.Job{{Rows: [2]int{0, len(records)}, Dst: dst}}
			for first := true; ; first = false {
				if err := g.Gather(context.Background(), r.Draw, records, job); err != nil {
					return err
				}
				if first {
					running <- struct{}{}
				}
				runtime.Gosched() // else Close waits until each of these goroutines is preempted
			}
		}, func(err error) { ended <- err })
	}
	for range cap(running) {
		select {
		case <-running:
		case err := <-ended:
			r.Fatalf("a gather before Close: %v", err)
		}
	}
	if err := r.src.Close(); err != nil {
		r.Errorf("Close: %v", err)
	}
	for range cap(ended) {
		select {
		case err := <-ended:
			if code := status.CodeOf(err); code != status.InvalidState && code != status.Cancelled {
				r.Errorf("a gather during Close: %v", err)
			}
		case <-time.After(hang):
			r.Fatal("a gather goes on after Close")
		}
	}
}

// closed checks the calls after Close: another Close succeeds, Ahead does nothing, and
// all others fail with InvalidState.
func (r *run) closed() {
	var g source.Gatherer
	if fixed := r.fixed(); len(fixed) > 0 {
		g = r.gatherer(r.whole(fixed[0]))
	}
	reader := r.reader(r.all()...)
	for range 2 {
		if err := r.src.Close(); err != nil {
			r.Errorf("Close: %v", err)
		}
	}
	if g != nil {
		g.Ahead(r.Draw, []int64{-1})
		r.expect(g.Gather(context.Background(), r.Draw, nil, nil), status.InvalidState, "a gather after Close")
	}
	reader.Ahead(r.Draw, []int64{0})
	for i, f := range r.src.Schema().Fields {
		if r.src.Len() == 0 {
			break
		}
		err := reader.Read(context.Background(), r.Draw, []source.Span{{Field: i}}, func() error { return nil })
		r.expect(err, status.InvalidState, "a read after Close")
		if f.HasLengths() {
			err = reader.Lengths(context.Background(), r.Draw, i, []int64{0}, make([]int64, 1))
			r.expect(err, status.InvalidState, "lengths after Close")
		}
	}
	_, err := r.src.Reader(nil)
	r.expect(err, status.InvalidState, "Reader after Close")
	_, err = r.src.Gatherer(nil)
	r.expect(err, status.InvalidState, "Gatherer after Close")
	_, err = r.src.Fingerprint(context.Background())
	r.expect(err, status.InvalidState, "Fingerprint after Close")
}
