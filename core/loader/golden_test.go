package loader_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/status"
)

// TestGolden runs the scripts in testdata. Their commands:
//
//	new records=N batch=B remainder=drop|pad|error epochs=none|K|-1
//	     opens a loader; batch may be a list (b0,b1)
//	positions     for every position of an epoch, the cursor after a seek to it
//	              and the number of batches of a loop from there
//	loop [break=n] [show=n]   one for loop, left after n batches; shows the first n
//	next [n=1]    calls of Next
//	seek epoch=E position=P
//	continue batch=B remainder=… epochs=…   a new loader from the old one's state
//	state         the saved state
//	records epoch=E position=P
//
// A line is "epoch.step [first row, last row) of the epoch, number of records; then
// the state after the batch, as epoch.position".
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{t: t}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			s.out, s.t = &out, t
			if err := s.run(d); err != nil {
				fmt.Fprintf(&out, "%v: %v\n", status.CodeOf(err), err)
			}
			return out.String()
		})
		s.close()
	})
}

type script struct {
	t       *testing.T
	out     *strings.Builder
	records int64
	l       *loader.Loader
}

func (s *script) close() {
	if s.l != nil {
		closeLoader(s.t, s.l)
	}
	s.l = nil
}

func (s *script) run(d *datadriven.TestData) error {
	switch d.Cmd {
	case "new":
		s.close()
		d.ScanArgs(s.t, "records", &s.records)
		return s.open(d, nil)
	case "continue":
		state := s.l.State().JSON()
		s.close()
		return s.open(d, state)
	case "positions":
		s.positions()
	case "loop":
		s.loop(d)
	case "next":
		n := 1
		d.MaybeScanArgs(s.t, "n", &n)
		for range n {
			s.next()
		}
	case "seek":
		if err := s.l.Seek(cursorOf(s.t, d)); err != nil {
			return err
		}
		s.where()
	case "state":
		fmt.Fprintln(s.out, s.l.State())
	case "records":
		list, err := s.l.Records(cursorOf(s.t, d))
		if err != nil {
			return err
		}
		fmt.Fprintln(s.out, list)
	default:
		s.t.Fatalf("unknown command %s", d.Cmd)
	}
	return nil
}

func cursorOf(t *testing.T, d *datadriven.TestData) (c batch.Cursor) {
	d.ScanArgs(t, "epoch", &c.Epoch)
	d.ScanArgs(t, "position", &c.Position)
	return c
}

func (s *script) open(d *datadriven.TestData, state []byte) (err error) {
	var epochs string
	spec := &layout.BatchSpec{}
	for _, a := range d.CmdArgs {
		if a.Key == "batch" {
			for _, v := range a.Vals {
				var n int
				if _, err := fmt.Sscan(v, &n); err != nil {
					return err
				}
				spec.Size = append(spec.Size, n)
			}
		}
	}
	d.ScanArgs(s.t, "remainder", &spec.Remainder)
	d.ScanArgs(s.t, "epochs", &epochs)
	doc := document(spec.Size...)
	doc.Batch = spec
	o := loader.Options{Layout: newLayout(s.t, doc), State: state, Shuffle: true}
	if epochs != "none" {
		if _, err := fmt.Sscan(epochs, &o.Epochs); err != nil {
			return err
		}
	}
	if s.l, err = loader.New(digits(s.records), o); err != nil {
		return err
	}
	s.where()
	return nil
}

func (s *script) where() {
	fmt.Fprintf(s.out, "at %d.%d position %d, %d steps per epoch, len %d\n",
		s.l.Epoch(), s.l.Step(), s.l.State().Position, s.l.StepsPerEpoch(), s.l.Len())
}

// positions prints the cursor and the length for every position of an epoch.
func (s *script) positions() {
	for p := range s.records + 2 {
		if err := s.l.Seek(batch.Cursor{Epoch: 1, Position: p}); err != nil {
			var e *status.Error
			errors.As(err, &e)
			fmt.Fprintf(s.out, "%d: %v: %s\n", p, e.Code, e.Msg)
			continue
		}
		at := s.l.State()
		fmt.Fprintf(s.out, "%d: %d.%d len %d\n", p, at.Epoch, at.Position, s.l.Len())
	}
}

func (s *script) loop(d *datadriven.TestData) {
	stop, show, n := -1, 1<<30, 0
	d.MaybeScanArgs(s.t, "break", &stop)
	d.MaybeScanArgs(s.t, "show", &show)
	for b, err := range s.l.All(s.t.Context()) {
		if err != nil {
			s.t.Fatal(err)
		}
		if n++; n <= show {
			s.batch(b)
		}
		b.Release()
		if n == stop {
			fmt.Fprintf(s.out, "break\n")
			break
		}
	}
	fmt.Fprintf(s.out, "%d batches\n", n)
	s.where()
}

func (s *script) next() {
	b, err := s.l.Next(s.t.Context())
	if err != nil {
		fmt.Fprintf(s.out, "%v\n", status.CodeOf(err))
		return
	}
	s.batch(b)
	b.Release()
}

func (s *script) batch(b *batch.Batch) {
	checkBytes(s.t, s.l, b)
	p := b.Step()
	after := s.l.StateAfter(b)
	fmt.Fprintf(s.out, "%d.%d [%d, %d) %d records; then %d.%d\n",
		p.Epoch, p.Index, p.Position, p.Position+s.l.Layout().BatchSize(), p.Valid, after.Epoch, after.Position)
}
