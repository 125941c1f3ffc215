package view_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/core/view/mixture"
	"github.com/meshfeed/meshfeed/tests/golden"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// weights is a schedule of one stage.
func weights(w ...float64) []mixture.Stage { return []mixture.Stage{{Weights: w}} }

// mixed returns the model of a mixture of models in the draw of all comparisons. It counts the rows of
// each dataset from the first draw on.
func mixed(t *testing.T, of []model, m view.Mixing, records int64) model {
	draws, err := mixture.New(m.Seed, m.Schedule)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]mixture.Draw, (draw.Epoch+1)*records)
	draws.Draws(0, all)
	out := model{fields: of[0].fields}
	for _, d := range all[draw.Epoch*records:] {
		rows := of[d.Source].rows
		n := int64(len(rows))
		order, err := sampler.New(cmp.Or(m.Order, sampler.Sequential), m.Seed, n)
		if err != nil {
			t.Fatal(err)
		}
		out.rows = append(out.rows, rows[order.Epoch(d.Number/n).At(d.Number%n)])
	}
	return out
}

// labelsOf returns the values of the field "label" of some records in an epoch.
func labelsOf(t *testing.T, src source.Source, epoch int64, records ...int64) []uint32 {
	t.Helper()
	g, err := src.Gatherer([]source.Part{src.Schema().Whole(0)})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	out := make([]byte, 4*len(records))
	jobs := []source.Job{{Rows: [2]int{0, len(records)}, Dst: out}}
	if err := g.Gather(t.Context(), source.Draw{Epoch: epoch}, records, jobs); err != nil {
		t.Fatal(err)
	}
	values := make([]uint32, len(records))
	for i := range values {
		values[i] = binary.LittleEndian.Uint32(out[4*i:])
	}
	return values
}

func upTo(n int64) (list []int64) {
	for k := range n {
		list = append(list, k)
	}
	return list
}

func labels(n int64) source.Source {
	return synthetic.New(n, source.Field{Name: "label", Type: dtype.Uint32})
}

// TestAMixtureOfMixtures checks that the draws of a mixture in a mixture continue, and that each row of
// each dataset comes once in each of its epochs.
func TestAMixtureOfMixtures(t *testing.T) {
	a, b, c := labels(7), labels(11), labels(5)
	mix := func(o view.Mixing, sources ...source.Source) source.Source {
		v, err := view.Mix(sources, o)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	inner := mix(view.Mixing{Schedule: weights(1, 2), Shuffle: true}, a, b)
	outer := mix(view.Mixing{Schedule: weights(1, 3), Shuffle: true, Records: 100}, c, inner)
	var drawn []uint32
	for epoch := range int64(4) {
		drawn = append(drawn, labelsOf(t, outer, epoch, upTo(100)...)...)
	}
	first := make([]mixture.Draw, 400)
	draws, _ := mixture.New(0, weights(1, 3))
	draws.Draws(0, first)
	var fromInner []uint32
	for k, d := range first {
		if d.Source == 1 {
			fromInner = append(fromInner, drawn[k])
		}
	}
	for epoch, n := int64(0), inner.Len(); int64(len(fromInner)) >= n; epoch, fromInner = epoch+1, fromInner[n:] {
		if expected := labelsOf(t, inner, epoch, upTo(n)...); !slices.Equal(fromInner[:n], expected) {
			t.Fatalf("epoch %d of the inner mixture gave %d, not %d", epoch, fromInner[:n], expected)
		}
	}
}

// TestBlocksOfAMixture checks that each dataset is in its own order in blocks.
func TestBlocksOfAMixture(t *testing.T) {
	sources := []source.Source{labels(17), labels(40)}
	for given, full := range map[string]string{"blocks:2:3": "blocks.1:2:3:0", "blocks.1:3:2:0": "blocks.1:3:2:0"} {
		v := must(view.Mix(sources, view.Mixing{Schedule: weights(1, 2), Order: given, Seed: 5, Records: 90}))
		draws := make([]mixture.Draw, 90)
		m, _ := mixture.New(5, weights(1, 2))
		m.Draws(0, draws)
		values := [][]uint32{labelsOf(t, sources[0], 0, upTo(17)...), labelsOf(t, sources[1], 0, upTo(40)...)}
		for k, value := range labelsOf(t, v, 0, upTo(90)...) {
			d, n := draws[k], sources[draws[k].Source].Len()
			order, err := sampler.New(full, 5, n)
			if err != nil {
				t.Fatal(err)
			}
			if want := values[d.Source][order.Epoch(d.Number/n).At(d.Number%n)]; value != want {
				t.Fatalf("%s: draw %d gave %d, not %d", given, k, value, want)
			}
		}
	}
}

// TestAppendedStages checks that a mixture knows what it was before its later stages, also if these add a
// dataset, and under other views.
func TestAppendedStages(t *testing.T) {
	a, b, c := labels(7), labels(11), labels(5)
	mix := func(of []source.Source, stages ...mixture.Stage) source.Source {
		return must(view.Mix(of, view.Mixing{Schedule: stages, Shuffle: true, Records: 20}))
	}
	two := mix([]source.Source{a, b}, weights(1, 2)...)
	three := mix([]source.Source{a, b}, append(weights(1, 2), mixture.Stage{Start: 50, Weights: []float64{1, 1}})...)
	all := mix([]source.Source{a, b, c}, append(weights(1, 2, 0), mixture.Stage{Start: 50, Weights: []float64{1, 1, 0}},
		mixture.Stage{Start: 90, Weights: []float64{1, 1, 1}})...)
	cut := func(src source.Source) source.Source { return must(view.Slice(src, 5, 15)) }
	named := func(src source.Source) source.Source {
		return must(view.Rename(src, map[string]string{"label": "x"}))
	}
	same := func(src source.Source) source.Source { return src }
	for i, c := range []struct {
		over          func(source.Source) source.Source
		first, second int64
	}{{same, 50, 90}, {named, 50, 90}, {cut, 20, 40}} {
		changes, err := c.over(all).Facts().Changes(t.Context())
		want := []source.Change{{Record: c.first, Before: fingerprint(t, c.over(two))}, {Record: c.second, Before: fingerprint(t, c.over(three))}}
		if err != nil || !slices.Equal(changes, want) {
			t.Errorf("case %d: got %v and %v, want %v", i, changes, err, want)
		}
	}
	outer := func(inner source.Source) source.Source {
		return must(view.Mix([]source.Source{a, inner}, view.Mixing{Schedule: append(weights(3, 1), mixture.Stage{Start: 300, Weights: []float64{1, 1}}), Records: 20}))
	}
	draws, err := mixture.New(0, append(weights(3, 1), mixture.Stage{Start: 300, Weights: []float64{1, 1}}))
	if err != nil {
		t.Fatal(err)
	}
	joined := func(inner source.Source) source.Source { return must(view.Concat(a, inner, b, inner)) }
	at := func(number int64) int64 { draw, _ := draws.Position(1, number); return draw }
	for name, c := range map[string]struct {
		over  func(source.Source) source.Source
		first func(record int64) int64
	}{
		"mixture": {outer, at}, "concatenation": {joined, func(record int64) int64 { return record/20*58 + 7 + record%20 }},
	} {
		changes, err := c.over(all).Facts().Changes(t.Context())
		want := []source.Change{{Record: c.first(50), Before: fingerprint(t, c.over(two))}, {Record: c.first(90), Before: fingerprint(t, c.over(three))}}
		for _, w := range want {
			i := slices.IndexFunc(changes, func(got source.Change) bool { return got.Before == w.Before })
			if err != nil || i < 0 || changes[i] != w {
				t.Errorf("%s: got %v and %v, want %v", name, changes, err, w)
			}
		}
		now, before := c.over(all), c.over(three)
		epoch, record := c.first(90)/now.Len(), c.first(90)%now.Len()
		if !slices.Equal(labelsOf(t, now, epoch, upTo(record)...), labelsOf(t, before, epoch, upTo(record)...)) {
			t.Errorf("%s: records before %d of epoch %d have changed", name, record, epoch)
		}
	}
	if other := mix([]source.Source{a, b}, weights(1, 3)...); fingerprint(t, other) == fingerprint(t, two) {
		t.Error("other weights have the same fingerprint")
	}
}

// TestTheEndOfAnEpoch checks the lengths of all rules.
func TestTheEndOfAnEpoch(t *testing.T) {
	sources := []source.Source{labels(10), labels(1000), labels(50)}
	for stop, check := range map[view.Stop]func(counts []int64) bool{
		view.StopSum:      func(c []int64) bool { return c[0]+c[1] == 1060 },
		view.StopShortest: func(c []int64) bool { return c[0] == 10 && c[1] < 1000 },
		view.StopLongest:  func(c []int64) bool { return c[0] > 10 && c[1] == 1000 },
	} {
		v, err := view.Mix(sources, view.Mixing{Schedule: weights(1, 3, 0), Stop: stop})
		if err != nil {
			t.Fatal(err)
		}
		draws, _ := mixture.New(0, weights(1, 3, 0))
		if counts := []int64{draws.Count(0, v.Len()), draws.Count(1, v.Len())}; !check(counts) {
			t.Errorf("stop %q: an epoch of %d draws has %d", stop, v.Len(), counts)
		}
	}
}

func TestMixErrors(t *testing.T) {
	mixture, err := view.Mix([]source.Source{labels(5)}, view.Mixing{Schedule: weights(1)})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, f := range []func() (source.Source, error){
		func() (source.Source, error) { return view.Mix(nil, view.Mixing{}) },
		func() (source.Source, error) { return view.Mix([]source.Source{nil}, view.Mixing{}) },
		func() (source.Source, error) { return view.Mix([]source.Source{labels(5)}, view.Mixing{}) },
		func() (source.Source, error) {
			return view.Mix([]source.Source{labels(5)}, view.Mixing{Schedule: weights(1, 2)})
		},
		func() (source.Source, error) {
			return view.Mix([]source.Source{labels(5), labels(0)}, view.Mixing{Schedule: weights(1, 2)})
		},
		func() (source.Source, error) {
			other := synthetic.New(5, source.Field{Name: "other", Type: dtype.Uint32})
			return view.Mix([]source.Source{labels(5), other}, view.Mixing{Schedule: weights(1, 2)})
		},
		func() (source.Source, error) {
			return view.Mix([]source.Source{labels(5)}, view.Mixing{Schedule: weights(1), Stop: "soon"})
		},
		func() (source.Source, error) {
			return view.Mix([]source.Source{labels(5)}, view.Mixing{Schedule: weights(1), Records: -1})
		},
		func() (source.Source, error) {
			return view.Mix([]source.Source{labels(5)}, view.Mixing{Schedule: weights(1), Seed: 1 << 60, Shuffle: true})
		},
		func() (source.Source, error) {
			return view.Mix([]source.Source{labels(5)}, view.Mixing{Schedule: weights(1), Shuffle: true, Order: "blocks"})
		},
		func() (source.Source, error) {
			return view.Mix([]source.Source{labels(5)}, view.Mixing{Schedule: weights(1), Order: "local"})
		},
		func() (source.Source, error) {
			return view.Mix([]source.Source{labels(5)}, view.Mixing{Schedule: weights(1), Order: "soon"})
		},
		func() (source.Source, error) { return view.Mix(make([]source.Source, 1<<17), view.Mixing{}) },
		func() (source.Source, error) { return view.Filter(mixture, make([]bool, 5)) },
		func() (source.Source, error) {
			return view.Window(t.Context(), mixture, view.Windows{Length: 2, Within: "label"})
		},
		func() (source.Source, error) {
			_, err := view.Split(t.Context(), mixture, view.Division{Parts: []view.Share{{Of: 1}}})
			return nil, err
		},
		func() (source.Source, error) {
			return view.Pack(t.Context(), mixture, "label", view.Packing{})
		},
	} {
		_, err := f()
		if code := status.CodeOf(err); code != status.InvalidArgument {
			t.Errorf("%v: %v", code, err)
		}
		fmt.Fprintln(&text, err)
	}
	golden.Compare(t, "testdata/mix-errors.txt", text.String())
}
