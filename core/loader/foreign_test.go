package loader_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// An error without a code, of a program's own source, is not called a bug in
// meshfeed. errors.Is finds it.
func TestErrorOfAForeignSource(t *testing.T) {
	mine := errors.New("the source is broken")
	src := digits(64)
	src.Hook = func(context.Context, []int64) error { return mine }
	l := newLoader(t, src, loader.Options{Layout: newLayout(t, document(16))})
	_, err := l.Next(t.Context())
	if status.CodeOf(err) != status.IO || !errors.Is(err, mine) || strings.Contains(err.Error(), "bug") {
		t.Errorf("%v: %v", status.CodeOf(err), err)
	}
}

// broken is a source. One of its methods panics, or returns an error without a code.
type broken struct {
	*synthetic.Source
	method string
	err    error // nil: it panics
}

func (s *broken) fail(method string) error {
	if method != s.method {
		return nil
	}
	if s.err == nil {
		panic("no " + method)
	}
	return s.err
}

func (s *broken) Schema() source.Schema {
	_ = s.fail("Schema")
	return s.Source.Schema()
}

func (s *broken) Len() int64 {
	_ = s.fail("Len")
	return s.Source.Len()
}

func (s *broken) Fingerprint(ctx context.Context) (source.Fingerprint, error) {
	if err := s.fail("Fingerprint"); err != nil {
		return source.Fingerprint{}, err
	}
	return s.Source.Fingerprint(ctx)
}

func (s *broken) Facts() source.Facts {
	return source.Facts{Check: func(context.Context, []int, int64, int64) error { return s.fail("Check") }}
}

func (s *broken) Gatherer(parts []source.Part) (source.Gatherer, error) {
	if err := s.fail("Gatherer"); err != nil {
		return nil, err
	}
	if s.method == "nothing" {
		return nil, nil
	}
	return s.Source.Gatherer(parts)
}

func TestSourceFailsInNew(t *testing.T) {
	const bug = "; this is a bug in meshfeed: please report it with the file and the options that led here"
	mine := errors.New("the source is broken")
	lay := newLayout(t, document(16))
	for _, test := range []struct {
		method string
		err    error
		code   status.Code
		text   string
	}{
		{"Schema", nil, status.Internal, "loader: panic: no Schema" + bug},
		{"Len", nil, status.Internal, "loader: panic: no Len" + bug},
		{"Fingerprint", nil, status.Internal, "loader: panic: no Fingerprint" + bug},
		{"Check", nil, status.Internal, "loader: panic: no Check" + bug},
		{"Gatherer", nil, status.Internal, "loader: panic: no Gatherer" + bug},
		{"Fingerprint", mine, status.IO, "loader: the source failed: the source is broken"},
		{"Check", mine, status.IO, "loader: the source failed: the source is broken"},
		{"Gatherer", mine, status.IO, "loader: the source failed: the source is broken"},
		{"Fingerprint", context.Canceled, status.Cancelled, "loader: the source failed: context canceled"},
		{"nothing", nil, status.IO, "loader: the source returned neither a gatherer nor an error; correct the source's method Gatherer"},
	} {
		src := &broken{digits(64), test.method, test.err}
		made, err := loader.New(src, loader.Options{Layout: lay})
		wantError(t, err, test.code, test.text)
		if made != nil || test.err != nil && !errors.Is(err, test.err) {
			t.Errorf("%s: a loader %v with %v", test.method, made != nil, err)
		}
	}
	for _, none := range []source.Source{nil, (*broken)(nil)} {
		_, err := loader.New(none, loader.Options{Layout: lay})
		wantError(t, err, status.InvalidArgument, "loader: there is no source; give a dataset; arrowio.Open, which opens one, returns nil with an error")
	}

	src := &broken{Source: digits(64)}
	l := newLoader(t, src, loader.Options{Layout: lay})
	src.method = "Gatherer"
	_, err := l.Remesh(lay, 0, nil)
	wantError(t, err, status.Internal, "loader: panic: no Gatherer"+bug)
	_, err = l.OneEpoch(0)
	wantError(t, err, status.Internal, "loader: panic: no Gatherer"+bug)
	src.method = ""
	next(t, l) // the loader itself still works
}

// A panic of a program's own source names the function that panicked. The program is
// of another module.
func TestPanicOfAForeignSource(t *testing.T) {
	program := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(program, []byte(foreignProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := exec.Command("go", "run", program).CombinedOutput()
	const want = "loader: panic: runtime error: index out of range [3] with length 0; main.(*foreign).Gatherer panicked, which is not part of meshfeed; the attribute \"stack\" has the trace\n"
	if err != nil || string(output) != want {
		t.Errorf("%v\n%s", err, output)
	}
}

const foreignProgram = `package main

import (
	"fmt"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/source"
)

type foreign struct{ source.Source }

func (f *foreign) Gatherer(parts []source.Part) (source.Gatherer, error) {
	var none []error
	return nil, none[len(parts)+2]
}

func main() {
	ds, err := arrowio.FromSlices(arrowio.Slice("x", make([]int32, 8)))
	if err != nil {
		panic(err)
	}
	doc, err := document.Parse([]byte(text))
	if err != nil {
		panic(err)
	}
	lay, err := layout.New(doc)
	if err != nil {
		panic(err)
	}
	_, err = loader.New(&foreign{ds}, loader.Options{Layout: lay})
	fmt.Println(err)
}

const text = "{\"meshfeed\":1,\"mesh\":{\"axes\":[[\"data\",1]]},\"arrays\":{\"x\":{\"shape\":[\"B\"],\"dtype\":\"int32\"}},\"batch\":{\"size\":4}}"
`
