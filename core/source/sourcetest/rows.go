package sourcetest

import (
	"bytes"
	"context"
	"fmt"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// rows gathers whole rows together and one by one, and compares them with each
// other and with the reference.
func (r *run) rows() {
	for _, i := range r.fixed() {
		f := r.src.Schema().Fields[i]
		g, width := r.gatherer(r.whole(i)), f.RowBytes()
		records := r.sample(20)
		for k := range min(r.src.Len(), 20) {
			records = append(records, k, r.src.Len()-1-k)
		}
		all := r.read(g, width, records)
		for k, record := range records {
			got := all[k*width : (k+1)*width]
			want := make([]byte, width)
			if record >= 0 {
				want = r.read(g, width, []int64{record})
			}
			if !bytes.Equal(got, want) {
				r.Fatalf("field %q, record %d: %x in a batch, %x alone", f.Name, record, got, want)
			}
			if record >= 0 && r.Row != nil && !bytes.Equal(got, r.Row(i, record)) {
				r.Fatalf("field %q, record %d: %x instead of %x", f.Name, record, got, r.Row(i, record))
			}
		}
	}
}

// bounds checks that records outside the source fail with OutOfRange, and that a
// gather of no records succeeds.
func (r *run) bounds() {
	n := r.src.Len()
	for _, i := range r.fixed() {
		f := r.src.Schema().Fields[i]
		g := r.gatherer(r.whole(i))
		for _, bad := range []int64{n, n + 1, -2, -1 << 62, 1 << 62} {
			dst := make([]byte, 2*f.RowBytes())
			err := g.Gather(context.Background(), r.Draw, []int64{-1, bad}, []source.Job{{Rows: [2]int{0, 2}, Dst: dst}})
			r.expect(err, status.OutOfRange, fmt.Sprintf("record %d of %d", bad, n))
		}
		if err := g.Gather(context.Background(), r.Draw, nil, []source.Job{{}}); err != nil {
			r.Errorf("a gather of no records: %v", err)
		}
	}
}

// cancelled checks that a gather fails if its context has ended.
func (r *run) cancelled() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, i := range r.fixed() {
		f := r.src.Schema().Fields[i]
		g := r.gatherer(r.whole(i))
		err := g.Gather(ctx, r.Draw, []int64{-1}, []source.Job{{Rows: [2]int{0, 1}, Dst: make([]byte, f.RowBytes())}})
		r.expect(err, status.Cancelled, "a cancelled gather")
	}
}

// concurrency checks that gathers of one gatherer on several goroutines return the
// right rows.
func (r *run) concurrency() {
	for _, i := range r.fixed() {
		f := r.src.Schema().Fields[i]
		g, width := r.gatherer(r.whole(i)), f.RowBytes()
		records := r.sample(40)
		want := r.read(g, width, records)
		results := make(chan error, 6)
		for range cap(results) {
			guard.Go("sourcetest", func() error {
				for range 4 {
					g.Ahead(r.Draw, records)
					dst := make([]byte, len(want))
					if err := g.Gather(context.Background(), r.Draw, records, []source.Job{{Rows: [2]int{0, len(records)}, Dst: dst}}); err != nil {
						return err
					}
					if !bytes.Equal(dst, want) {
						return fmt.Errorf("field %q: rows of concurrent gathers are mixed up", f.Name)
					}
				}
				results <- nil
				return nil
			}, func(err error) { results <- err })
		}
		for range cap(results) {
			if err := <-results; err != nil {
				r.Error(err)
			}
		}
	}
}
