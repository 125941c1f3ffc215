package gomlxfeed

import (
	"context"
	"errors"
	"testing"

	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/stream"
	"github.com/meshfeed/meshfeed/core/view"
)

// arriving has records in chunks that do not end with batches.
type arriving struct {
	source.Source
	ends []int64
	at   int64
}

func (a *arriving) Close() {}

func (a *arriving) Next(context.Context) (source.Source, error) {
	if len(a.ends) == 0 {
		return nil, nil
	}
	from := a.at
	a.at, a.ends = a.ends[0], a.ends[1:]
	return view.Slice(a.Source, from, a.at)
}

// TestPlacedStream: the batches of a stream and of a loader are on the same devices, from a
// ring and from other memory.
func TestPlacedStream(t *testing.T) {
	bothKinds(t, func(t *testing.T, counts *countingBackend, d *Devices) {
		like := squareLoader(t, nil, loader.Options{Order: sampler.Sequential})
		ring := ringOf(t, d, like.Layout())
		for _, o := range []stream.Options{{Allocator: ring}, {}} {
			o.Layout = like.Layout()
			s, err := stream.New(&arriving{Source: squareSource(24), ends: []int64{3, 11, 12, 24}}, o)
			if err != nil {
				t.Fatal(err)
			}
			steps := int64(0)
			for range 3 { // two loops of two batches, and the rest
				for b, err := range Placed(t.Context(), s, d) {
					if err != nil {
						t.Fatal(err)
					}
					if b.Step().Index != steps {
						t.Fatalf("step %d comes after %d others", b.Step().Index, steps)
					}
					compare(t, like, 0, b)
					b.Release()
					if steps++; steps%2 == 0 && steps < 5 {
						break
					}
				}
			}
			if steps != 6 {
				t.Errorf("%d steps", steps)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		_ = ring.Close()
		counts.nothingLives(t, d)
	})
}

// TestPlacedStreamFails: an error of the stream and one of the devices are yielded once.
func TestPlacedStreamFails(t *testing.T) {
	_, d := newCountingBackend(t, 4, true)
	var none *stream.Stream
	for _, err := range Placed(t.Context(), none, d) {
		wantText(t, err, status.InvalidArgument, "gomlxfeed: a loader and devices are needed")
	}
	s, err := stream.New(&arriving{Source: squareSource(24), ends: []int64{24}}, stream.Options{Layout: squareLayout(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for b, err := range Placed(t.Context(), s, d) {
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
		break
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, err := range Placed(t.Context(), s, d) {
		if !errors.Is(err, status.ErrClosed) {
			t.Error(err)
		}
	}
}
