package stream_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/stream"
	"github.com/meshfeed/meshfeed/tests/random"
)

// plan makes a layout of two processes for records with one number, "x".
func plan(t *testing.T, size int, remainder string, prefetch int) *layout.Layout {
	t.Helper()
	text := fmt.Sprintf(`{"meshfeed": 1, "mesh": {"axes": [["a", 2]], "devices": [[0, 0], [1, 1]]}, "prefetch": %d,
		"batch": {"size": %d, "remainder": %q}, "arrays": {"x": {"shape": ["B"], "dtype": "int32", "spec": ["a"]}}}`, prefetch, size, remainder)
	doc, err := document.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	lay, err := layout.New(doc)
	if err != nil {
		t.Fatal(err)
	}
	return lay
}

// numbers makes a source of the numbers from one on.
func numbers(from, n int64) source.Source {
	list := make([]int64, n)
	for i := range list {
		list[i] = from + int64(i)
	}
	src, err := arrowio.FromSlices(arrowio.Slice("x", list))
	if err != nil {
		panic(err)
	}
	return src
}

// feed delivers chunks of numbers, and counts what is open.
type feed struct {
	sizes  []int64
	then   func(ctx context.Context) (source.Source, error) // after the chunks; nil: the end
	chunks int                                              // calls of Next
	at     int64
	open   int // chunks that are not closed
	closed int // calls of Close
}

func (f *feed) Schema() source.Schema { return numbers(0, 0).Schema() }
func (f *feed) Close()                { f.closed++ }

func (f *feed) Next(ctx context.Context) (source.Source, error) {
	if f.chunks++; f.chunks > len(f.sizes) {
		if f.then != nil {
			return f.then(ctx)
		}
		return nil, nil
	}
	n := f.sizes[f.chunks-1]
	f.at, f.open = f.at+n, f.open+1
	return &chunk{numbers(f.at-n, n), f}, nil
}

type chunk struct {
	source.Source
	feed *feed
}

func (c *chunk) Close() error {
	c.feed.open--
	return c.Source.Close()
}

// begin returns a stream of a feed, with a heap that counts batches.
func begin(t *testing.T, f stream.Feed, o stream.Options) (*stream.Stream, *batch.Heap) {
	t.Helper()
	heap := batch.NewHeap(0)
	o.Allocator = heap
	s, err := stream.New(f, o)
	if err != nil {
		t.Fatal(err)
	}
	return s, heap
}

// end closes a stream, and checks that everything of it is freed.
func end(t *testing.T, s *stream.Stream, f *feed, heap *batch.Heap) {
	t.Helper()
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if live, _ := heap.Live(); live != 0 || f.open != 0 || f.closed != 1 {
		t.Errorf("%d batches are live, %d chunks are open, and the feed was closed %d times", live, f.open, f.closed)
	}
	if _, err := s.Next(t.Context()); status.CodeOf(err) != status.InvalidState || !errors.Is(err, status.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// take returns the text of the next batch, which it releases.
func take(s *stream.Stream) (string, error) {
	b, err := s.Next(context.Background())
	if err != nil {
		return "", err
	}
	defer b.Release()
	return describe(b), nil
}

func describe(b *batch.Batch) string {
	text := fmt.Sprintf("step %d at %d, %d rows:", b.Step().Index, b.Step().Position, b.Step().Valid)
	for i := range b.Blocks() {
		text += fmt.Sprintf(" %x", b.Memory().Dst(i))
	}
	return text
}

// TestStream compares a stream with a loader of the same records, whatever the chunks are.
func TestStream(t *testing.T) {
	random.Rounds(t, 100, 5000, func(t *testing.T, r *rand.Rand) {
		f, n := &feed{}, int64(0)
		for range r.IntN(10) {
			f.sizes = append(f.sizes, random.One(r, int64(0), 1, 2, 7, 40))
			n += f.sizes[len(f.sizes)-1]
		}
		lay := plan(t, 2*(1+r.IntN(8)), random.One(r, "drop", "pad", "error"), r.IntN(3))
		process := r.IntN(2)
		s, heap := begin(t, f, stream.Options{Layout: lay, Process: process, Prefetch: r.IntN(5) - 1})
		var got, want []string
		var failed, expected error
		for failed == nil {
			var text string
			if text, failed = take(s); failed == nil {
				got = append(got, text)
			}
		}
		l, expected := loader.New(numbers(0, n), loader.Options{Layout: lay, Process: process, Order: sampler.Sequential})
		if expected == nil {
			defer l.Close()
			for b, err := range l.All(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, describe(b))
				b.Release()
			}
		}
		if lay.Remainder() == "error" && n%lay.BatchSize() != 0 { // the loader refuses all of it
			if status.CodeOf(failed) != status.InvalidArgument || int64(len(got)) != n/lay.BatchSize() {
				t.Errorf("%d records in steps of %d: %d batches, then %v", n, lay.BatchSize(), len(got), failed)
			}
		} else if !errors.Is(failed, status.ErrEnd) || !slices.Equal(got, want) {
			t.Errorf("%v\ngot  %q\nwant %q", failed, got, want)
		}
		end(t, s, f, heap)
	})
}

// TestAhead: as many batches are built ahead as the options say, and no chunk is taken for
// further ones.
func TestAhead(t *testing.T) {
	for _, c := range []struct{ option, layout, ahead int }{{0, 3, 3}, {0, 0, 1}, {-1, 3, 1}, {1, 3, 1}, {5, 1, 5}} {
		synctest.Test(t, func(t *testing.T) {
			f := &feed{sizes: slices.Repeat([]int64{2}, 20)}
			s, heap := begin(t, f, stream.Options{Layout: plan(t, 2, "drop", c.layout), Prefetch: c.option})
			synctest.Wait()
			if f.chunks != 0 {
				t.Error("a chunk was taken before the first call of Next")
			}
			for taken := 1; taken < 4; taken++ {
				if _, err := take(s); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if live, _ := heap.Live(); f.chunks != taken+c.ahead || live != int64(c.ahead) {
					t.Errorf("prefetch %d, layout %d: %d chunks were taken and %d batches are live after %d batches", c.option, c.layout, f.chunks, live, taken)
				}
			}
			end(t, s, f, heap)
		})
	}
}

// TestFails: every error comes after the batches before it, has its whole message, and stays.
func TestFails(t *testing.T) {
	broken := errors.New("the line is cut")
	returns := func(src source.Source, err error) func(context.Context) (source.Source, error) {
		return func(context.Context) (source.Source, error) { return src, err }
	}
	holey := arrowio.Slice("y", []int32{1})
	for _, c := range []struct {
		name    string
		then    func(context.Context) (source.Source, error)
		batches int
		code    status.Code
		want    string
	}{
		{"an error", returns(nil, broken), 2, status.Internal, "the line is cut"},
		{"a panic", func(context.Context) (source.Source, error) { panic("lost") }, 2, status.Internal, "stream: panic: lost"},
		{"other fields", returns(arrowio.FromSlices(holey)), 2, status.InvalidArgument, `"x"`},
		{"a value", returns(numbers(1<<31-2, 4), nil), 3, status.OutOfRange, `loader: step 3 of epoch 0: the chunk after 5 records: field "x": record 2 holds 2147483648, which int32 cannot; deliver the field as int64 (in JAX: jax.config.update("jax_enable_x64", True)), or store smaller values`},
		{"nulls", returns(&nullable{numbers(5, 1)}, nil), 2, status.InvalidArgument, `stream: the chunk after 5 records: field "x" holds nulls, and arrays cannot; give the field a fill value (Go: Fill, C: fill; Python: fill={"x": -1}), or leave out the records that have nulls (Go: view.FilterFunc; Python: ds.filter)`},
		{"an error of a gather", returns(&foreign{numbers(5, 1), broken}, nil), 2, status.IO, "loader: step 2 of epoch 0: the chunk after 5 records: the line is cut"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &feed{sizes: []int64{3, 2}, then: c.then}
			s, heap := begin(t, f, stream.Options{Layout: plan(t, 2, "pad", 2), Process: 1})
			for range c.batches {
				if _, err := take(s); err != nil {
					t.Fatal(err)
				}
			}
			_, err := take(s)
			if err == nil || status.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v (%v)\nwant %s (%v)", err, status.CodeOf(err), c.want, c.code)
			}
			if _, again := take(s); again != err {
				t.Errorf("%v, then %v", err, again)
			}
			if cause := new(status.Error); c.code == status.OutOfRange && (!errors.As(err, &cause) || cause.Attr("record") != int64(7)) {
				t.Errorf("the attribute has record %v of the stream, want 7", cause.Attr("record"))
			}
			if f.open > 0 {
				t.Errorf("%d chunks are open after the error", f.open)
			}
			end(t, s, f, heap)
		})
	}
}

// nullable is a source with a field that may hold nulls.
type nullable struct{ source.Source }

func (n *nullable) Schema() source.Schema {
	s := n.Source.Schema()
	s.Fields = slices.Clone(s.Fields)
	s.Fields[0].Nullable, s.Fields[0].HasNulls = true, true
	return s
}

// foreign is a program's own source. Its gathers fail with an error without a code.
type foreign struct {
	source.Source
	err error
}

func (f *foreign) Gatherer([]source.Part) (source.Gatherer, error) { return f, nil }
func (f *foreign) Gather(context.Context, source.Draw, []int64, []source.Job) error {
	return f.err
}
func (f *foreign) Ahead(source.Draw, []int64) {}

// TestRefused: what the schema and the layout show is an error of New, which closes the feed.
func TestRefused(t *testing.T) {
	lay := plan(t, 2, "drop", 2)
	for _, c := range []struct {
		o    stream.Options
		want string
	}{
		{stream.Options{}, "stream: there is no layout; set Options.Layout"},
		{stream.Options{Layout: lay, Process: 2}, "loader: Options.Process is 2, but the layout has processes 0 to 1; number processes from 0; if the run has processes outside the mesh, say in Options.Processes how many it has"},
		{stream.Options{Layout: lay, Prefetch: 1 << 60}, "loader: Options.Prefetch is 1152921504606846976, but must be from -1 to 65536"},
		{stream.Options{Layout: lay, Fill: map[string]any{"x": 1 << 40}}, `source: 1099511627776 cannot replace the nulls of field "x": int32 cannot hold it`},
	} {
		f := &feed{}
		if s, err := stream.New(f, c.o); s != nil || err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
		if f.closed != 1 || f.chunks != 0 {
			t.Errorf("the feed was closed %d times after %d chunks", f.closed, f.chunks)
		}
	}
	const want = "stream: there is no feed; give one that delivers the records"
	if _, err := stream.New(nil, stream.Options{Layout: lay}); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestWaits: a call that waits for the feed ends with its context and loses nothing.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proceed := make(chan struct{})
		f := &feed{sizes: []int64{1}}
		f.then = func(ctx context.Context) (source.Source, error) {
			select {
			case <-proceed:
				return numbers(1, 1), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		s, heap := begin(t, f, stream.Options{Layout: plan(t, 2, "pad", 2)})
		canceled, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := s.Next(canceled); status.CodeOf(err) != status.Cancelled || !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		late, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Next(late); status.CodeOf(err) != status.Timeout || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		go func() { proceed <- struct{}{} }()
		if text, err := take(s); err != nil || text != "step 0 at 0, 2 rows: 00000000 01" {
			t.Error(text, err)
		}
		under := make(chan error)
		go func() {
			_, err := s.Next(context.Background())
			under <- err
		}()
		synctest.Wait()
		end(t, s, f, heap)
		if err := <-under; status.CodeOf(err) != status.Cancelled {
			t.Error(err)
		}
	})
}

// TestFeedIgnoresContext: Close returns after a second, and the feed is closed when its Next
// returns.
func TestFeedIgnoresContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proceed := make(chan struct{})
		f := &feed{sizes: []int64{4}, then: func(context.Context) (source.Source, error) {
			<-proceed
			return nil, nil
		}}
		s, heap := begin(t, f, stream.Options{Layout: plan(t, 2, "drop", 3)})
		if _, err := take(s); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		began := time.Now()
		if err := s.Close(); err != nil || time.Since(began) != source.Patience || f.closed != 0 {
			t.Errorf("%v after %v; the feed was closed %d times during its Next", err, time.Since(began), f.closed)
		}
		close(proceed)
		synctest.Wait()
		end(t, s, f, heap)
	})
}

// TestUnused: a stream that is closed before its first batch takes no chunk.
func TestUnused(t *testing.T) {
	f := &feed{sizes: []int64{4}}
	s, heap := begin(t, f, stream.Options{Layout: plan(t, 2, "drop", 3)})
	end(t, s, f, heap)
	if f.chunks != 0 {
		t.Error("a chunk was taken")
	}
}
