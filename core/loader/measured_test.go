package loader_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshfeed/meshfeed/core/diagnosis"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/tests/documents"
)

// The loop waits for a source that takes a second for a row, and its step takes two. So a
// loop over four rows a batch takes four seconds a batch, and waits for two of them.
func TestMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := digits(80)
		src.Hook = func(_ context.Context, records []int64) error {
			time.Sleep(time.Duration(len(records)) * time.Second)
			return nil
		}
		l := newLoader(t, src, loader.Options{Layout: newLayout(t, document(8)), Workers: 1})
		next(t, l)
		before, began := l.Stats(), time.Now()
		for range 8 {
			time.Sleep(2 * time.Second)
			next(t, l)
		}
		m := l.Measured(before, time.Since(began))
		time.Sleep(time.Minute) // the producer rests
		if m.Batches != 8 || m.Wall != 32*time.Second || m.Wait != 16*time.Second || m.Build != 32*time.Second || m.Gather != 32*time.Second || m.Rows != 32 || m.BatchSize != 8 || m.Records != 80 || m.Prefetch != 2 {
			t.Errorf("got %+v", m)
		}
		if r := diagnosis.Diagnose(m); r.Bound != diagnosis.Gather || r.Faster != 2 || r.Waited != 0.5 {
			t.Errorf("bound by %s, %v times as fast, waited %v", r.Bound, r.Faster, r.Waited)
		}
	})
}

// Fields of equal type, shape and partition can be one array. The mask is not a field.
func TestCombinableArrays(t *testing.T) {
	const text = `{"meshfeed":1,"mesh":{"axes":[["data",2]]},"arrays":{` +
		`"a":{"field":"image","shape":["B",2,4],"dtype":"float32","spec":["data"]},"b":{"field":"image","shape":["B",2,4],"dtype":"float32","spec":["data"]},` +
		`"whole":{"field":"image","shape":["B",2,4],"dtype":"float32"},` +
		`"label":{"shape":["B"],"dtype":"int32","spec":["data"]}},"batch":{"size":8,"remainder":"pad","mask":"valid"},"dataset":{"records":20}}`
	l := newLoader(t, digits(20), loader.Options{Layout: documents.Layout(t, text)})
	if m := l.Measured(loader.Stats{}, time.Second); m.Arrays != 5 || m.Combinable != 1 {
		t.Errorf("%d of %d arrays can be combined", m.Combinable, m.Arrays)
	}
	month := view.Constant{Field: source.Field{Name: "month", Type: dtype.Int32, Shape: []int{}}, Rows: [][]byte{make([]byte, 4)}}
	src, err := view.Constants(digits(20), []int64{20}, month) // in no file
	if err != nil {
		t.Fatal(err)
	}
	const computed = `{"meshfeed":1,"mesh":{"axes":[["data",2]]},"arrays":{"label":{"shape":["B"],"dtype":"int32"},"month":{"shape":["B"],"dtype":"int32"}},"batch":{"size":4},"dataset":{"records":20}}`
	l, err = loader.New(src, loader.Options{Layout: documents.Layout(t, computed)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if n := l.Combinable(); n != 0 {
		t.Errorf("%d arrays can be combined with one that no file has", n)
	}
}
