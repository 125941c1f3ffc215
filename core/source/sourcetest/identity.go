package sourcetest

import (
	"context"
	"reflect"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// schema checks that two sources over the same data have the same fields and length.
func (r *run) schema() {
	a, b := r.src.Schema(), r.Open(r.T)
	defer b.Close()
	if !reflect.DeepEqual(a, r.src.Schema()) || !reflect.DeepEqual(a, b.Schema()) {
		r.Errorf("the schema changed: %v, then %v, in another source %v", a, r.src.Schema(), b.Schema())
	}
	if b.Len() != r.src.Len() || b.Len() < 0 {
		r.Errorf("Len() = %d, in another source %d", r.src.Len(), b.Len())
	}
	for i, f := range a.Fields {
		n, g, ok := a.Field(f.Name)
		if !ok || n > i || !f.Type.Valid() || g.RowBytes() < 0 {
			r.Errorf("field %d %+v is not found by its name, or has no type", i, f)
		}
	}
	for _, s := range a.Skipped {
		if s.Name == "" && s.Type == "" || s.Reason == "" {
			r.Errorf("a column is skipped without a reason: %+v", s)
		}
	}
}

// fingerprint checks that two sources over the same data have the same fingerprint.
func (r *run) fingerprint() {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if r.src.Len() > 0 && len(r.src.Schema().Fields) > 0 {
		if _, err := r.src.Fingerprint(cancelled); err != nil {
			r.expect(err, status.Cancelled, "a cancelled fingerprint")
		}
	}
	first, err := r.src.Fingerprint(context.Background())
	if err != nil {
		r.Fatal(err)
	}
	other := r.Open(r.T)
	defer other.Close()
	for name, s := range map[string]source.Source{"the same source": r.src, "another source": other} {
		again, err := s.Fingerprint(context.Background())
		if err != nil || again != first {
			r.Errorf("the fingerprint of %s is %v, %v instead of %v", name, again, err, first)
		}
		if units, total := s.Facts().Units, int64(0); units != nil {
			for _, n := range units() {
				total += n
			}
			if sizes := units(); sizes != nil && total != s.Len() {
				r.Errorf("the units of %s have %d of its %d records", name, total, s.Len())
			}
		}
		if root, err := source.ComponentsOf(context.Background(), s); err != nil || root.Hash != first || root.Label == "" {
			r.Errorf("the components of %s are %+v, %v, but its fingerprint is %v", name, root, err, first)
		}
	}
	if first == (source.Fingerprint{}) {
		r.Error("the fingerprint is empty")
	}
}
