package arrowtype

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// load reads the metadata of a file among the test data of package arrowmeta.
func load(t *testing.T, name string) (*arrowmeta.File, error) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../arrowmeta/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return arrowmeta.Read(bytes.NewReader(data), int64(len(data)))
}

// rows describes the rows of a column in one line, or returns the reason why it
// has none.
func rows(f *arrowmeta.Field) string {
	field, reason := Of(f)
	if field == nil {
		return reason
	}
	if field.Ragged > 0 {
		return fmt.Sprintf("%v%v ragged %d", field.Type, field.Shape, field.Ragged)
	}
	return fmt.Sprintf("%v%v", field.Type, field.Shape)
}

// declaredShapes returns the declared shape of every field.
func declaredShapes(s *arrowmeta.Schema) [][]int {
	list := make([][]int, len(s.Fields))
	for i := range s.Fields {
		list[i] = declaredShape(&s.Fields[i], features(s))
	}
	return list
}

func TestTensorOfPyarrow(t *testing.T) {
	f, err := load(t, "fixed.arrow")
	if err != nil {
		t.Fatal(err)
	}
	got, err := tensorOf(&f.Schema.Fields[1])
	want := &tensor{Shape: []int{2, 6}, Permutation: []int{1, 0}, DimNames: []string{"y", "x"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if got, err := tensorOf(&f.Schema.Fields[0]); got != nil || err != nil {
		t.Errorf("a plain list is a tensor: %v, %v", got, err)
	}
}

// tensorField returns a field of lists of 6 with the parameters.
func tensorField(parameters string) arrowmeta.Field {
	return arrowmeta.Field{
		Name: "x",
		Type: arrowmeta.Type{Kind: arrowmeta.FixedSizeList, ListSize: 6, Children: []arrowmeta.Field{{Type: arrowmeta.Type{Kind: arrowmeta.Float, BitWidth: 32}}}},
		Metadata: arrowmeta.Metadata{
			{Key: "ARROW:extension:name", Value: "arrow.fixed_shape_tensor"},
			{Key: "ARROW:extension:metadata", Value: parameters},
		},
	}
}

func TestTensorRefused(t *testing.T) {
	scalar := tensorField(`{"shape":[]}`)
	scalar.Type.ListSize = 1
	if got, err := tensorOf(&scalar); err != nil || len(got.Shape) != 0 {
		t.Errorf("a tensor without dimensions: %v, %v", got, err)
	}
	list := tensorField(`{"shape":[6]}`)
	list.Type.Kind = arrowmeta.List
	for want, f := range map[string]arrowmeta.Field{
		"the storage is list<float32> instead of a fixed-size list": list,
		"shape [2 4] does not fill a list of 6":                     tensorField(`{"shape":[2,4]}`),
		"shape [-2 -3] does not fill a list of 6":                   tensorField(`{"shape":[-2,-3]}`),
		"shape [4294967296 4294967296 6] does not fill a list of 6": tensorField(`{"shape":[4294967296,4294967296,6]}`),
		"shape [0 6] does not fill a list of 6":                     tensorField(`{"shape":[0,6]}`),
		"no shape":                                                  tensorField(`{}`),
		"33 dimensions":                                             tensorField(`{"shape":[6` + strings.Repeat(",1", 32) + `]}`),
		"1 names for 2 dimensions":                                  tensorField(`{"shape":[2,3],"dim_names":["a"]}`),
		"permutation [0 0]":                                         tensorField(`{"shape":[2,3],"permutation":[0,0]}`),
		"permutation [0 2]":                                         tensorField(`{"shape":[2,3],"permutation":[0,2]}`),
		"permutation [0]":                                           tensorField(`{"shape":[2,3],"permutation":[0]}`),
		"parameters of 65550 bytes":                                 tensorField(`{"shape":[6]  ` + strings.Repeat(" ", 1<<16-1) + `}`),
		"the parameters are not JSON: expected a value, but the text ends (at byte 12)": tensorField(`{"shape":[2,`),
		`the parameter "shape" holds 1.5, which is not an integer`:                      tensorField(`{"shape":[1.5,4]}`),
		`the parameter "shape" holds 1e300, which is not an integer`:                    tensorField(`{"shape":[1e300]}`),
		`the parameter "dim_names" is not a list`:                                       tensorField(`{"shape":[6],"dim_names":"a"}`),
		`the parameter "dim_names" holds 2, which is not a string`:                      tensorField(`{"shape":[6],"dim_names":[2]}`),
	} {
		got, err := tensorOf(&f)
		if err == nil || !strings.HasPrefix(err.Error(), "its extension type arrow.fixed_shape_tensor is damaged: "+want) {
			t.Errorf("got %v, %v, want %s", got, err, want)
		}
	}
}

// TestDeclaredShapes reads a file that the datasets library wrote.
func TestDeclaredShapes(t *testing.T) {
	f, err := load(t, "huggingface.stream")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]int{
		"image": {2, 3}, "open": {-1, 2, 1}, "label": {}, "tokens": {4}, "ragged": {-1, 2, 2}, "box": {2, 2},
		"shape": nil,
	}
	check := func(how string) {
		for i, got := range declaredShapes(&f.Schema) {
			if name := f.Schema.Fields[i].Name; !reflect.DeepEqual(got, want[name]) {
				t.Errorf("%s: %s has shape %v, want %v", how, name, got, want[name])
			}
		}
	}
	check("extension types")
	for i := range f.Schema.Fields {
		f.Schema.Fields[i].Metadata = nil
	}
	check("schema metadata")
}

func TestDeclaredShapesOfInvalidMetadata(t *testing.T) {
	deep := strings.Repeat(`{"_type":"List","feature":`, 5000) + "0" + strings.Repeat("}", 5000)
	for text, want := range map[string][]int{
		`{"x":{"_type":"Sequence","length":-1,"feature":{"_type":"Value"}}}`:                               {-1},
		`{"x":{"_type":"LargeList","feature":{"_type":"ClassLabel"}}}`:                                     {-1},
		`{"shape":{"_type":{"a":1}},"x":{"_type":"Array2D","shape":[1,2]}}`:                                {1, 2},
		`{"x":{"_type":"Array2D","shape":[1,-2]}}`:                                                         nil,
		`{"x":{"_type":"Array2D","shape":[1,4294967296]}}`:                                                 nil,
		`{"x":{"_type":"Array2D","shape":"no"}}`:                                                           nil,
		`{"x":{"_type":"Array2D"}}`:                                                                        nil,
		`{"x":[{"_type":"Value"}]}`:                                                                        nil,
		`{"x":null}`:                                                                                       nil,
		`{"x":` + deep + `}`:                                                                               nil,
		`{"x":{"_type":"List","length":2,"feature":{"_type":"Image"}}}`:                                    nil,
		`{"x":{"_type":"Array2D","shape":[` + strings.Repeat("1,", 32) + `1]}}`:                            nil,
		`{"x":{"_type":"List","feature":{"_type":"Array2D","shape":[` + strings.Repeat("1,", 31) + `1]}}}`: nil,
		`nonsense`: nil,
	} {
		s := arrowmeta.Schema{
			Fields:   []arrowmeta.Field{{Name: "x"}},
			Metadata: arrowmeta.Metadata{{Key: "huggingface", Value: `{"info":{"features":` + text + `}}`}},
		}
		if got := declaredShapes(&s)[0]; !reflect.DeepEqual(got, want) {
			t.Errorf("%.80s: got %v, want %v", text, got, want)
		}
	}
}

// TestClassNames takes the names of classes from features of integers, and of lists of them.
func TestClassNames(t *testing.T) {
	number, text := arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 64, Signed: true}, arrowmeta.Type{Kind: arrowmeta.String}
	list := arrowmeta.Type{Kind: arrowmeta.List, Children: []arrowmeta.Field{{Type: number}}}
	const class = `{"_type":"ClassLabel","names":["b","a"]}`
	nested := strings.Repeat(`{"_type":"List","feature":`, 40) + class + strings.Repeat("}", 40)
	for _, c := range []struct {
		typ     arrowmeta.Type
		feature string
		want    []string
	}{
		{number, class, []string{"b", "a"}},
		{number, `{"names":["ä\n"],"num_classes":7,"id":null,"_type":"ClassLabel"}`, []string{"ä\n"}},
		{list, `{"_type":"List","feature":` + class + `}`, []string{"b", "a"}},
		{list, `{"_type":"Sequence","length":-1,"feature":` + class + `}`, []string{"b", "a"}},
		{list, nested, nil},
		{text, class, nil},
		{arrowmeta.Type{Kind: arrowmeta.Float, BitWidth: 32}, class, nil},
		{number, `{"_type":"Value","names":["a"]}`, nil},
		{number, `{"_type":"ClassLabel"}`, nil},
		{number, `{"_type":"ClassLabel","names":"a"}`, nil},
		{number, `{"_type":"ClassLabel","names":["a",1]}`, nil},
		{number, `["ClassLabel"]`, nil},
	} {
		s := arrowmeta.Schema{
			Fields:   []arrowmeta.Field{{Name: "x", Type: c.typ}},
			Metadata: arrowmeta.Metadata{{Key: "huggingface", Value: `{"info":{"features":{"x":` + c.feature + `}}}`}},
		}
		fields, reasons := Describe(&s)
		if reasons[0] != "" || !slices.Equal(fields[0].Names, c.want) {
			t.Errorf("%.80s: got %q, want %q (%s)", c.feature, fields[0].Names, c.want, reasons[0])
		}
	}
}

// TestDescribe: declared lengths replace lengths that a type leaves open, if
// they have as many dimensions. Invalid and repeated names are refused.
func TestDescribe(t *testing.T) {
	number := arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 32, Signed: true}
	listOf := func(inner arrowmeta.Type) arrowmeta.Type {
		return arrowmeta.Type{Kind: arrowmeta.List, Children: []arrowmeta.Field{{Name: "item", Type: inner}}}
	}
	pair := arrowmeta.Type{Kind: arrowmeta.FixedSizeList, ListSize: 2, Children: []arrowmeta.Field{{Name: "item", Type: number}}}
	s := arrowmeta.Schema{
		Fields: []arrowmeta.Field{
			{Name: "declared", Type: listOf(pair)}, {Name: "flat", Type: listOf(number)}, {Name: "open", Type: listOf(number)},
			{Name: "open", Type: number}, {Name: "text", Type: arrowmeta.Type{Kind: arrowmeta.String}},
			{Name: "", Type: number}, {Name: "\xff", Type: number}, {Name: "__index_level_0__", Type: number},
		},
		Metadata: arrowmeta.Metadata{{Key: "huggingface", Value: `{"info":{"features":{` +
			`"declared":{"_type":"Array2D","shape":[3,7]},"flat":{"_type":"Array2D","shape":[3,7]}}}}`}},
	}
	fields, reasons := Describe(&s)
	var got []string
	for i, f := range fields {
		if f == nil {
			got = append(got, reasons[i])
		} else {
			got = append(got, fmt.Sprintf("%v%v%v", f.Type, f.Shape, f.Declared))
		}
	}
	want := []string{
		"int32[-1 2][3 2]", "int32[-1][-1]", "int32[-1][-1]", "a column before it has the same name; rename one of them",
		"uint8[][]",
		"it has no name; give the column one", "its name is not UTF-8; rename the column",
		"it is the index of a pandas table; drop it with df.reset_index(drop=True), or make it a column with df.reset_index()",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestRowsOfListsChildren: the metadata of a list's child count. A list of lists is not a
// tensor.
func TestRowsOfListsChildren(t *testing.T) {
	list := func(child arrowmeta.Field) arrowmeta.Field {
		return arrowmeta.Field{Name: "x", Type: arrowmeta.Type{Kind: arrowmeta.List, Children: []arrowmeta.Field{child}}}
	}
	bfloat16 := func(f arrowmeta.Field) arrowmeta.Field {
		f.Metadata = arrowmeta.Metadata{{Key: DTypeKey, Value: "bfloat16"}}
		return f
	}
	word := arrowmeta.Field{Type: arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 16}}
	deep := tensorField(`{"shape":[2,3]}`)
	deep.Type.Children = []arrowmeta.Field{tensorField(`{"shape":[6]}`)}
	flat := tensorField(`{"shape":[]}`)
	flat.Type.ListSize = 1
	longest := `{"shape":[6` + strings.Repeat(",1", 31) + `]}`
	for i, c := range []struct {
		field arrowmeta.Field
		want  string
	}{
		{list(tensorField(`{"shape":[2,3]}`)), "float32[-1 2 3]"},
		{list(list(tensorField(`{"shape":[2,3]}`))), "float32[-1 -1 2 3]"},
		{list(flat), "float32[-1]"},
		{list(tensorField(`{"shape":[2,3],"permutation":[1,0]}`)), "its tensors are stored permuted [1 0]; write them in C order"},
		{list(tensorField(`{"shape":[7]}`)), "its extension type arrow.fixed_shape_tensor is damaged: shape [7] does not fill a list of 6; write the column again"},
		{deep, "its tensors hold lists; store the elements themselves in them"},
		{tensorField(longest), "float32[6" + strings.Repeat(" 1", 31) + "]"},
		{list(tensorField(longest)), "its rows have more than 32 dimensions; make fewer of them"},
		{list(bfloat16(word)), "bfloat16[-1]"},
		{bfloat16(list(bfloat16(word))), "bfloat16[-1]"},
		{bfloat16(list(word)), "bfloat16[-1]"},
		{list(bfloat16(list(word))), "bfloat16[-1 -1]"},
	} {
		if got := rows(&c.field); got != c.want {
			t.Errorf("field %d: got %q, want %q", i, got, c.want)
		}
	}
}

// TestDictionaries tries types of values and of indices.
func TestDictionaries(t *testing.T) {
	number := arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 32, Signed: true}
	list := arrowmeta.Type{Kind: arrowmeta.List, Children: []arrowmeta.Field{{Type: number}}}
	for _, c := range []struct {
		values, index arrowmeta.Type
		want          string
	}{
		{number, number, "int32[]"},
		{arrowmeta.Type{Kind: arrowmeta.Bool, BitWidth: 1}, number, "its dictionary holds booleans; store plain values"},
		{list, number, "its dictionary holds lists of variable length; store plain values"},
		{number, arrowmeta.Type{Kind: arrowmeta.Float, BitWidth: 32}, "its dictionary has indices of type float32; store plain values"},
		{number, list, "its dictionary has indices of type list<int32>; store plain values"},
		{arrowmeta.Type{Kind: arrowmeta.LargeString}, number, "uint8[] ragged 1"},
		{arrowmeta.Type{Kind: arrowmeta.StringView}, number, "uint8[] ragged 1"},
		{arrowmeta.Type{Kind: arrowmeta.List, Children: []arrowmeta.Field{{Type: arrowmeta.Type{Kind: arrowmeta.String}}}}, number, "its dictionary holds lists of variable length; store plain values"},
		{arrowmeta.Type{Kind: arrowmeta.Null}, number, "it holds nothing but nulls; leave the column out"},
	} {
		f := arrowmeta.Field{Name: "x", Type: c.values, Dictionary: &arrowmeta.Dictionary{Index: c.index}}
		if got := rows(&f); got != c.want {
			t.Errorf("%s: got %q, want %q", f.TypeString(), got, c.want)
		}
	}
}

// TestDictionaryOfDictionaries: a dictionary of a dictionary's values is refused.
func TestDictionaryOfDictionaries(t *testing.T) {
	index := arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 8}
	inner := arrowmeta.Field{Type: index, Dictionary: &arrowmeta.Dictionary{ID: 1, Index: index}}
	outer := arrowmeta.Field{Name: "x", Dictionary: &arrowmeta.Dictionary{Index: index},
		Type: arrowmeta.Type{Kind: arrowmeta.FixedSizeList, ListSize: 2, Children: []arrowmeta.Field{inner}}}
	want := "its dictionary holds lists of another dictionary's values; store plain values"
	if got := rows(&outer); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestTypesThatArraysDoNotHave: the reason names the type, or the media that a
// feature of Hugging Face's library holds.
func TestTypesThatArraysDoNotHave(t *testing.T) {
	media := arrowmeta.Type{Kind: arrowmeta.Struct, Children: []arrowmeta.Field{{Name: "bytes", Type: arrowmeta.Type{Kind: arrowmeta.Binary}}}}
	own := arrowmeta.Type{Name: "_pli128"}
	s := arrowmeta.Schema{
		Fields: []arrowmeta.Field{
			{Name: "wide", Type: arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 128, Signed: true}},
			{Name: "own", Type: own},
			{Name: "owns", Type: arrowmeta.Type{Kind: arrowmeta.List, Children: []arrowmeta.Field{{Type: own}}}},
			{Name: "later", Type: arrowmeta.Type{Kind: 27}},
			{Name: "picture", Type: media},
			{Name: "sound", Type: media},
			{Name: "plain", Type: media},
			{Name: "number", Type: arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 8}},
		},
		Metadata: arrowmeta.Metadata{{Key: "huggingface", Value: `{"info":{"features":{"picture":{"_type":"Image"},"sound":{"_type":"Audio"},"number":{"_type":"Image"}}}}`}},
	}
	const unknown = "its type is not known here; cast it to a type of numbers, or leave it out"
	want := []string{
		"int128: arrays have no type int128; cast it to int64 or float64, or leave it out",
		`unknown type "_pli128": ` + unknown,
		`list<unknown type "_pli128">: ` + unknown,
		"unknown type 27: " + unknown,
		`struct<bytes: binary>: it holds encoded images, which are not decoded here; store their pixels, with datasets.Array3D((height, width, 3), "uint8") as their feature`,
		`struct<bytes: binary>: it holds encoded audio, which is not decoded here; store samples, with datasets.List(datasets.Value("float32"), length=n) as their feature`,
		"struct<bytes: binary>: a struct has no single type; store its children as columns of their own",
		"uint8: ",
	}
	_, reasons := Describe(&s)
	for i, reason := range reasons {
		if got := s.Fields[i].TypeString() + ": " + reason; got != want[i] {
			t.Errorf("got  %s\nwant %s", got, want[i])
		}
	}
}

func FuzzDeclarations(f *testing.F) {
	f.Add(`{"shape":[2,3],"permutation":[1,0],"dim_names":["a","b"]}`)
	f.Add(`[[2, null], "float32"]`)
	f.Add(`{"info":{"features":{"x":{"_type":"List","length":2,"feature":{"_type":"Array2D","shape":[1,2]}}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		x := tensorField(text)
		if got, err := tensorOf(&x); err == nil {
			n := 1
			for _, d := range got.Shape {
				n *= d
			}
			if n != 6 {
				t.Errorf("shape %v of lists of 6", got.Shape)
			}
			for i, d := range slices.Sorted(slices.Values(got.Permutation)) {
				if d != i || len(got.Permutation) != len(got.Shape) {
					t.Errorf("permutation %v of shape %v", got.Permutation, got.Shape)
				}
			}
		}
		x.Metadata[0].Value = "datasets.features.features.Array2DExtensionType"
		s := arrowmeta.Schema{Fields: []arrowmeta.Field{x, {Name: "x"}}, Metadata: arrowmeta.Metadata{{Key: "huggingface", Value: text}}}
		for _, shape := range declaredShapes(&s) {
			for _, d := range shape {
				if d < -1 || len(shape) > 32 {
					t.Errorf("shape %v", shape)
				}
			}
		}
	})
}
