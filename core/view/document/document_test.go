package document_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/core/view/document"
	"github.com/meshfeed/meshfeed/core/view/mixture"
	"github.com/meshfeed/meshfeed/core/view/packing"
	"github.com/meshfeed/meshfeed/core/view/raster"
	"github.com/meshfeed/meshfeed/tests/golden"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

var src = synthetic.New(20,
	source.Field{Name: "a", Type: dtype.Float32}, source.Field{Name: "b", Type: dtype.Float32},
	source.Field{Name: "x", Type: dtype.Int32, Shape: []int{4}}, source.Field{Name: "z", Type: dtype.Int8, Shape: []int{4}}, source.Field{Name: "tokens", Type: dtype.Int64, Ragged: 1}, source.Field{Name: "photo", Type: dtype.Uint8, Ragged: 1, Logical: "binary"})

// views makes the views of a document.
func views(kind, text string, values document.Values, n int, below ...source.Source) ([]source.Source, error) {
	k, err := document.Find(kind)
	if err != nil {
		return nil, err
	}
	v, err := k.Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	return v.Make(context.Background(), below, values, n)
}

// TestViews: each document makes the view that its function makes, with the same fingerprint.
func TestViews(t *testing.T) {
	only := func(v source.Source, err error) []source.Source {
		if err != nil {
			t.Fatal(err)
		}
		return []source.Source{v}
	}
	indices, bits := []int64{3, 1, 3}, []byte{0xf0, 0x0f, 0x01}
	parts, err := view.Split(t.Context(), src, view.Division{Parts: []view.Share{{Of: 0.7}, {Of: 0.3}}, Seed: 3, Within: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind, text string
		values     document.Values
		want       []source.Source
	}{
		{"slice", `{"start":2,"stop":9}`, document.Values{}, only(view.Slice(src, 2, 9))},
		{"select", `{"fields":["b","a"]}`, document.Values{}, only(view.Select(src, "b", "a"))},
		{"rename", `{"names":{"a":"b","b":"a"}}`, document.Values{}, only(view.Rename(src, map[string]string{"a": "b", "b": "a"}))},
		{"take", "", document.Values{Records: indices, Count: 3}, only(view.Take(src, indices))},
		{"filter", "{}", document.Values{Bits: bits, Count: 20}, only(view.FilterFunc(src, func(k int64) bool { return k >= 4 && k < 12 || k == 16 }))},
		{"window", `{"length":3}`, document.Values{}, only(view.Window(t.Context(), src, view.Windows{Length: 3}))},
		{"window", `{"length":3,"stride":2}`, document.Values{}, only(view.Window(t.Context(), src, view.Windows{Length: 3, Stride: 2}))},
		{"split", `{"parts":[{"name":"train","share":0.7},{"share":3e-1}],"seed":3,"within":"a"}`, document.Values{}, parts},
		{"stack", `{"stacks":[{"name":"c","fields":["a","b"]}]}`, document.Values{}, only(view.Stack(src, view.Stacked{Name: "c", Columns: []string{"a", "b"}}))},
		{"pad", `{"field":"tokens","length":9}`, document.Values{}, only(view.Pad(src, "tokens", view.Padding{Length: 9}))},
		{
			"pad", `{"field":"tokens","length":9,"value":-9223372036854775808,"side":"left","too_long":"truncate"}`, document.Values{},
			only(view.Pad(src, "tokens", view.Padding{Length: 9, Value: int64(-1 << 63), Left: true, Truncate: true})),
		},
		{"pack", `{"field":"tokens","length":8}`, document.Values{}, only(view.Pack(t.Context(), src, "tokens", view.Packing{Options: packing.Options{Length: 8}}))},
		{
			"pack", `{"field":"x","length":6,"too_long":"drop","group":7,"max_documents":1,"separator":3,"labels":"y","ignored_label":-1}`, document.Values{},
			only(view.Pack(t.Context(), src, "x", view.Packing{Options: packing.Options{Length: 6, TooLong: packing.Drop, Group: 7, MaxDocuments: 1}, Separator: 3, Labels: "y", Ignored: -1})),
		},
		{
			"pack", `{"field":"x","fields":["z"],"length":6,"method":"split","overlap":2}`, document.Values{},
			only(view.Pack(t.Context(), src, "x", view.Packing{Options: packing.Options{Length: 6, Method: packing.Split, Overlap: 2}, Fields: []string{"z"}})),
		},
		{"reshape", `{"field":"x","shape":[2,2]}`, document.Values{}, only(view.Reshape(src, "x", view.Shape{Dims: []int{2, 2}}))},
		{"decode_image", `{"field":"photo","size":[2,3]}`, document.Values{}, only(view.DecodeImage(src, "photo", raster.Options{Height: 2, Width: 3}))},
		{
			"decode_image", `{"field":"photo","size":[2,3],"resize":"area","crop":"random","flip":"random","color":"gray"}`, document.Values{},
			only(view.DecodeImage(src, "photo", raster.Options{Height: 2, Width: 3, Gray: true, RandomCrop: true, RandomFlip: true})),
		},
	} {
		got, err := views(c.kind, c.text, c.values, len(c.want), src)
		if err != nil {
			t.Errorf("%s %s: %v", c.kind, c.text, err)
			continue
		}
		for i := range got {
			if a, b := fingerprint(t, got[i]), fingerprint(t, c.want[i]); a != b || got[i].Len() != c.want[i].Len() {
				t.Errorf("%s %s: %d records, fingerprint %v, want %d, %v", c.kind, c.text, got[i].Len(), a, c.want[i].Len(), b)
			}
		}
	}
	kept := document.Values{Cache: func(_ context.Context, src source.Source, folder string, bytes int64) (source.Source, error) {
		if folder != "memory" || bytes != 7 {
			t.Errorf("the cache is in %q, with %d bytes", folder, bytes)
		}
		return src, nil
	}}
	if _, err := views("cache", `{"folder":"memory","cache_bytes":7}`, kept, 1, src); err != nil {
		t.Error(err)
	}
	half := []mixture.Stage{{Weights: []float64{0.5, 1}}, {Start: 10, Weights: []float64{1, 0}}}
	mixing := view.Mixing{Schedule: half, Shuffle: true, Seed: 3, Stop: view.StopLongest, Source: "from", Names: []string{"x", "y"}}
	mixed, err := view.Mix([]source.Source{src, src}, mixing)
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := views("mix", `{"schedule":[{"weights":[0.5,1]},{"start":10,"weights":[1,0]}],"shuffle":true,"seed":3,"stop":"longest","source":"from","names":["x","y"]}`,
		document.Values{}, 1, src, src)
	if err != nil || fingerprint(t, drawn[0]) != fingerprint(t, mixed) || drawn[0].Schema().Fields[0].Name != mixed.Schema().Fields[0].Name {
		t.Errorf("mix: %v, %v", drawn, err)
	}
	joined, err := views("concat", "", document.Values{}, 1, src, src)
	if err != nil || joined[0].Len() != 40 {
		t.Errorf("concat: %v, %v", joined, err)
	}
}

func fingerprint(t *testing.T, s source.Source) source.Fingerprint {
	t.Helper()
	f, err := s.Fingerprint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestValues: padding has a value of any type.
func TestValues(t *testing.T) {
	real := synthetic.New(3, source.Field{Name: "x", Type: dtype.Float64, Ragged: 1}, source.Field{Name: "z", Type: dtype.Complex64, Ragged: 1},
		source.Field{Name: "f", Type: dtype.Bool, Ragged: 1}, source.Field{Name: "u", Type: dtype.Uint64, Ragged: 1})
	for text, want := range map[string]string{
		`"x","value":"nan"`: "", `"x","value":-1e-3`: "", `"x","value":"-inf"`: "", `"z","value":[1,"inf"]`: "", `"f","value":true`: "", `"u","value":18446744073709551615`: "",
		`"u","value":-1`:        `view: field "u" cannot be padded with -1: uint64 cannot hold it; give a value of the type of the field`,
		`"x","value":"NaN"`:     `view: /value: expected a number, "nan", "inf" or "-inf", but found "NaN"`,
		`"x","value":1e999`:     `view: /value: the number is too large`,
		`"x","value":[1]`:       `view: /value: expected the two parts of a complex number, but the list has 1`,
		`"x","value":null`:      `view: /value: expected a number, but found null`,
		`"x","side":"top"`:      `view: /side: expected "right" or "left", but found "top"`,
		`"x","too_long":"drop"`: `view: /too_long: expected "error" or "truncate", but found "drop"`,
	} {
		_, err := views("pad", `{"length":9,"field":`+text+`}`, document.Values{}, 1, real)
		if got := fmt.Sprint(err); got != want && (want != "" || err != nil) {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestErrors compares the messages for documents that ask for no view.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		kind, text string
		n          int
		below      []source.Source
		want       string
	}{
		{"slize", "", 1, nil, `view: there is no view "slize"; did you mean "slice"?`},
		{"slice", `{"start":1`, 1, nil, `view: expected ',' or '}', but the text ends (line 1, byte 11)`},
		{"slice", `{"start":1}`, 1, nil, `view: the document of slice needs the key "stop"`},
		{"slice", `{"start":1.5,"stop":2}`, 1, nil, `view: /start: expected an integer of 64 bits, but found 1.5`},
		{"slice", `{"start":1,"stop":2,"step":2}`, 1, nil, `view: /step: "step" is not a key; did you mean "stop"? The keys here are start, stop`},
		{"slice", `{"start":1,"stop":2}`, 1, []source.Source{src, src}, `view: slice takes one dataset, but got 2`},
		{"slice", `{"start":1,"stop":2}`, 2, []source.Source{src}, `view: slice makes 1 datasets, but there is place for 2`},
		{"take", `null`, 1, nil, `view: expected the document of take, but found null`},
		{"rename", `{"names":{"a":"b","a":"c"}}`, 1, nil, `view: /names/a: key "a" occurs twice; name it once`},
		{"filter", "", 1, []source.Source{src}, `view: the filter is for 0 records, but the dataset has 20; give one value for each record of this dataset`},
		{"reshape", `{"field":"x","shape":[4],"dtype":"int24"}`, 1, nil, `view: /dtype: "int24" is not an element type; use one of bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64, complex128`},
	} {
		made, err := views(c.kind, c.text, document.Values{}, c.n, c.below...)
		if got := fmt.Sprint(err); got != c.want || status.CodeOf(err) != status.InvalidArgument || made != nil {
			t.Errorf("%s %s\n got %s\nwant %s", c.kind, c.text, got, c.want)
		}
	}
}

// TestSchema compares the schema with its file, and the header of C with the schema: it names every
// kind, with its members.
func TestSchema(t *testing.T) {
	golden.CompareJSON(t, "view.schema.json", []byte(document.Schema()))
	type object struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	parse := func(text []byte) (o object) {
		if err := json.Unmarshal(text, &o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	header, err := os.ReadFile("../../../capi/include/meshfeed.h")
	if err != nil {
		t.Fatal(err)
	}
	for kind, schema := range parse([]byte(document.Schema())).Properties {
		line := regexp.MustCompile(`(?m)^     ` + kind + ` (.*,\n)*.*$`).FindString(string(header)) // a comma continues a line
		of := parse(schema)
		for member := range of.Properties {
			if !slices.Contains(of.Required, member) {
				member += "?"
			}
			if !regexp.MustCompile(`[ {]` + regexp.QuoteMeta(member) + `([,:;\n]|$)`).MatchString(line) {
				t.Errorf("%s lacks the member %s in meshfeed.h: %q", kind, member, line)
			}
		}
		if line == "" {
			t.Errorf("meshfeed.h lacks the view %s", kind)
		}
	}
}
