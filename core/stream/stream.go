// Package stream makes batches of records that arrive once, in their order.
//
// A loader needs a source with numbered records that can be read again. Records of a
// socket, a query or a pipe have neither a known length nor a second epoch. A [Stream]
// takes them from a [Feed], chunk by chunk, and delivers the batches that a loader with the
// order "sequential" would deliver of the same records:
//
//	s, err := stream.New(feed, stream.Options{Layout: plan})
//	if err != nil { … }
//	defer s.Close()
//	for b, err := range s.All(ctx) {
//		if err != nil { … }
//		… loader.Values[int32](b, "label") …
//		b.Release()
//	}
//
// One goroutine takes chunks and builds batches, a bounded number of them ahead. It keeps
// a chunk until its records are copied, and closes it then. A stream cannot be resumed:
// it has no state and no certificate. Records that have to be shuffled, or read in more
// than one epoch, belong in files or memory. A chunk costs 30 to 80 µs beside the copy of its
// records, and about 2 µs for each of its columns, so chunks of few records are slow.
//
// The functions FromReader of packages arrowio/records and arrowio/records18 make streams
// of the readers of Arrow's Go library.
package stream

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Feed has records that can be read once. A stream calls its methods one at a time.
type Feed interface {
	// Schema lists the fields. It is known before the first record.
	Schema() source.Schema

	// Next waits for the next chunk of records, with the fields of Schema. At the end it
	// returns nil. The stream closes the chunk. If Next ignores ctx, Close of the stream
	// returns after [source.Patience], and the feed is closed when Next returns.
	Next(ctx context.Context) (source.Source, error)

	// Close ends the feed. It is called once, after the last call of Next has returned.
	Close()
}

// Options select what a stream delivers.
type Options struct {
	// Layout defines the arrays and the devices that hold them. If the last records
	// are less than a batch, its remainder decides: "drop" leaves them out, "pad" delivers
	// them with padding and a mask, and "error" returns an error.
	// An order in its document is ignored.
	Layout *layout.Layout

	// Process is the process to deliver blocks for, counted from 0. All processes that
	// share a batch need a stream of the same records.
	Process int

	// Fill is the value that replaces nulls, by field: a bool or a number of any Go type.
	// A chunk with a null in another field is an error.
	Fill map[string]any

	// Prefetch is the number of batches that are built ahead. 0: the number in the layout
	// document, by default 2. -1: one, because there is always at least one.
	Prefetch int

	// Allocator provides the memory of batches. nil: a batch.Heap.
	Allocator batch.Allocator
}

// Stream delivers batches. Its methods are safe for concurrent use.
type Stream struct {
	feed    Feed
	builder builder
	ready   chan *batch.Batch
	stop    context.Context
	cancel  context.CancelFunc
	begin   sync.Once
	ended   chan struct{} // closed when the feed is closed, after failed was set
	failed  error         // why ready has no further batches
}

// New returns a stream of the records of a feed, which it closes. It checks everything
// that the schema and the layout show, and reports all errors at once. After an error the
// feed is closed. Nothing is read before the first call of Next.
func New(feed Feed, o Options) (*Stream, error) {
	if feed == nil {
		return nil, fail(status.InvalidArgument, "there is no feed; give one that delivers the records")
	}
	s := &Stream{feed: feed, builder: builder{o: o}, ended: make(chan struct{})}
	if err := guard.Call("stream", func() error { return s.builder.check(feed.Schema()) }); err != nil {
		feed.Close()
		return nil, err
	}
	ahead := o.ahead()
	if o.Allocator == nil {
		s.builder.o.Allocator = batch.NewHeap(ahead + 3)
	}
	s.ready = make(chan *batch.Batch, ahead-1) // the goroutine holds one more
	s.stop, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// ahead returns how many batches are built ahead.
func (o *Options) ahead() int {
	if o.Prefetch == 0 {
		return max(o.Layout.Prefetch(), 1)
	}
	return max(o.Prefetch, 1)
}

// Next waits for the next batch and returns it. The caller owns the batch and releases it.
//
// After the last batch the error has code End. An error of the feed, or of a chunk, is
// returned after all whole batches of the records before it. That of a single record comes
// after the batches before its own, or before its chunk. Every later call returns it again.
// If ctx is canceled, the error is Cancelled. If its deadline passes, the error is
// Timeout. Either way, the next call returns the batch.
func (s *Stream) Next(ctx context.Context) (*batch.Batch, error) {
	if s.stop.Err() != nil {
		return nil, closed()
	}
	s.begin.Do(func() { guard.Go("stream", s.run, func(error) {}) })
	select {
	case b, ok := <-s.ready:
		return s.received(b, ok)
	default:
	}
	select {
	case b, ok := <-s.ready:
		return s.received(b, ok)
	case <-s.stop.Done():
		return nil, fail(status.Cancelled, "the stream was closed while this call waited for a batch")
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, fail(status.Timeout, "no batch was ready in time: %w", ctx.Err()).WithHint("ask again: nothing is lost")
		}
		return nil, fail(status.Cancelled, "the wait for a batch was cancelled: %w", ctx.Err())
	}
}

func (s *Stream) received(b *batch.Batch, ok bool) (*batch.Batch, error) {
	if ok {
		return b, nil
	}
	return nil, s.failed
}

// All yields the batches up to the end of the records. After a break, the next loop
// continues with the next batch. The loop body must release each batch. An error is
// yielded and ends the loop.
func (s *Stream) All(ctx context.Context) iter.Seq2[*batch.Batch, error] {
	return func(yield func(*batch.Batch, error) bool) {
		for {
			b, err := s.Next(ctx)
			if status.CodeOf(err) == status.End || !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// Layout returns the layout.
func (s *Stream) Layout() *layout.Layout { return s.builder.o.Layout }

// Process returns the process that this stream delivers blocks for.
func (s *Stream) Process() int { return s.builder.o.Process }

// Close ends the stream, frees the batches that were built ahead, and closes the feed.
// Delivered batches stay valid. Calls of Next under way fail with Cancelled, later calls
// with InvalidState. A second Close does nothing.
func (s *Stream) Close() error {
	s.cancel()
	s.begin.Do(s.end)
	select {
	case <-s.ended:
	case <-time.After(source.Patience):
	}
	return nil
}

// end closes the feed, and frees batches that were not delivered.
func (s *Stream) end() {
	defer close(s.ended)
	s.feed.Close()
	close(s.ready)
	if s.stop.Err() == nil {
		return
	}
	for b := range s.ready {
		b.Release()
	}
}

// run takes chunks and builds batches until the end, an error or Close.
func (s *Stream) run() error {
	defer s.end()
	defer s.builder.close()
	s.failed = guard.Call("stream", func() error {
		for {
			chunk, err := s.feed.Next(s.stop)
			if err != nil {
				return err
			}
			if chunk == nil {
				return s.finish()
			}
			if err := s.builder.add(chunk); err != nil {
				return err
			}
			if err := s.builder.whole(s.stop, s.deliver); err != nil {
				return err
			}
		}
	})
	return nil
}

// finish delivers the last batch, and returns the error with code End.
func (s *Stream) finish() error {
	if err := s.builder.rest(s.stop, s.deliver); err != nil {
		return err
	}
	return fail(status.End, "the records have ended")
}

// deliver waits until Next takes an earlier batch. It frees the batch if the stream is
// closed meanwhile.
func (s *Stream) deliver(b *batch.Batch) error {
	select {
	case s.ready <- b:
		return nil
	case <-s.stop.Done():
		b.Release()
		return closed()
	}
}

func closed() error { return status.Closed("stream", "the stream is closed") }

func fail(code status.Code, format string, args ...any) *status.Error {
	return status.Errorf(code, "stream", format, args...)
}
