package reply_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/layout/picture"
	"github.com/meshfeed/meshfeed/wasm/internal/reply"
)

const text = `{"meshfeed":1,"mesh":{"axes":[["data",2],["model",2]],"processes":2},"arrays":{"0":{"shape":["B",4],"dtype":"float32","spec":["data",["model"]]},` +
	`"w":{"shape":[3],"dtype":"int8","spec":["data"]}},"batch":{"size":4,"remainder":"pad","extras":["key","record"]}}`

func TestDescribe(t *testing.T) {
	var v reply.Validator
	got := string(v.Describe([]byte(text)))
	d, err := document.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	l, err := layout.Draft(d)
	if err != nil {
		t.Fatal(err)
	}
	quoted := func(s string) string {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	want := `{"document":` + quoted(string(document.Canonical(d))) + `,"arrays":[` +
		`{"name":"0","field":"0","kind":"data","dtype":"float32","shape":[4,4],"batch_dims":1,"spec":["data","model"],"tiles":[2,2]},` +
		`{"name":"w","field":null,"kind":"static","dtype":"int8","shape":[3],"batch_dims":0,"spec":null,"tiles":null},` +
		`{"name":"valid","field":null,"kind":"mask","dtype":"bool","shape":[4],"batch_dims":1,"spec":["data"],"tiles":[2]},` +
		`{"name":"key","field":null,"kind":"key","dtype":"uint32","shape":[4,2],"batch_dims":1,"spec":["data",null],"tiles":[2,1]},` +
		`{"name":"record","field":null,"kind":"record","dtype":"uint32","shape":[4,2],"batch_dims":1,"spec":["data",null],"tiles":[2,1]}],` +
		`"report":` + string(document.Report(l, document.ReportOptions{})) + `,"text":`
	if !strings.HasPrefix(got, want) {
		t.Errorf("got %s\nwant %s", got, want)
	}
	var r struct{ Text string }
	if err := json.Unmarshal([]byte(got), &r); err != nil || r.Text != picture.Text(l, picture.Options{}) {
		t.Errorf("the text is %q, %v", r.Text, err)
	}
}

func TestDescribeRefuses(t *testing.T) {
	var v reply.Validator
	v.Describe([]byte(text))
	want := `{"document":null,"arrays":[],"report":null,"text":null,"error":{"code":"InvalidArgument","op":"layout",` +
		`"message":"/mesh: expected a mesh, but found a list","hint":"a mesh has the keys axes, processes, devices","path":"/mesh"}}`
	if got := string(v.Describe([]byte(`{"meshfeed":1,"mesh":[]}`))); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := v.Table(0, reply.Devices, 0, 4); len(got) != 0 {
		t.Errorf("the document before still has a table: %v", got)
	}
}

func TestTable(t *testing.T) {
	var v reply.Validator
	v.Describe([]byte(text))
	if got, want := v.Table(0, reply.Devices, 3, 9), []float64{1, 3, 0, 16, 2, 4, 2, 4}; !slices.Equal(got, want) {
		t.Errorf("the last device is %v, want %v", got, want)
	}
	// The sums are not known, because array w is broken.
	if got, want := v.Table(9, reply.Processes, 1, 1), []float64{1, 2, -1, -1, -1, -1, -1}; !slices.Equal(got, want) {
		t.Errorf("the last process is %v, want %v", got, want)
	}
	for _, empty := range [][]float64{v.Table(1, reply.Devices, 0, 4), v.Table(0, reply.Delivered, 0, 4), v.Table(0, 3, 0, 4), v.Table(math.MaxUint32, 0, 0, 4)} {
		if len(empty) > 0 {
			t.Errorf("got %v", empty)
		}
	}
}

// If a report would have too many row ranges, a table has them.
func TestRanges(t *testing.T) {
	var v reply.Validator
	text := v.Describe([]byte(`{"meshfeed":1,"mesh":{"axes":[["d",4]],"processes":4},"arrays":{"x":{"shape":["B0","B1"],"dtype":"int8","spec":[null,"d"]}},"batch":{"size":[131072,4]}}`))
	var r struct {
		Report struct {
			Processes []struct{ Rows [][2]float64 }
		}
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	for n, p := range r.Report.Processes {
		if listed := n < 2; (len(p.Rows) == 1<<17) != listed || (p.Rows == nil) == listed {
			t.Errorf("the report has %d ranges of process %d", len(p.Rows), n)
		}
		table := v.Table(0, reply.Processes, uint32(n), 1)
		if len(table) != 7+2<<17 || table[6] != 1<<17 || table[7] != float64(n) {
			t.Errorf("the table has %d numbers of process %d", len(table), n)
		}
	}
}

func TestSamples(t *testing.T) {
	for question, want := range map[string]string{
		`{"order":"sequential.1","records":10,"position":7,"count":5}`: `{"records":[7,8,9],"error":null}`,
		`{"order":"sequential.1","records":10,"position":11}`:          `{"records":[],"error":{"code":"InvalidArgument","op":"samples","message":"position 11 is not within the 10 of an epoch","hint":"","path":""}}`,
		`{"order":"sequential.1","count":65537}`:                       `{"records":[],"error":{"code":"InvalidArgument","op":"samples","message":"65537 records are asked for, but a reply has at most 65536","hint":"","path":""}}`,
		`{"seed":1.5}`:                                                 `{"records":[],"error":{"code":"InvalidArgument","op":"samples","message":"the number is not written as an integer (line 1, byte 9)","hint":"","path":"/seed"}}`,
		`{"sed":1}`:                                                    `{"records":[],"error":{"code":"InvalidArgument","op":"samples","message":"\"sed\" is not a key","hint":"did you mean \"seed\"? The keys here are order, seed, records, epoch, position, count","path":"/sed"}}`,
		`[`:                                                            `{"records":[],"error":{"code":"InvalidArgument","op":"samples","message":"expected a value, but the text ends (line 1, byte 2)","hint":"","path":"/0"}}`,
	} {
		if got := string(reply.Samples([]byte(question))); got != want {
			t.Errorf("%s: got %s\nwant %s", question, got, want)
		}
	}
}

func TestSchema(t *testing.T) {
	data, err := os.ReadFile("../../../internal/arrowmeta/testdata/huggingface.stream")
	if err != nil {
		t.Fatal(err)
	}
	got := string(reply.Schema(data, float64(len(data))))
	for _, want := range []string{
		`{"format":"arrow","fields":[{"name":"`, `"shape":[null,2,1],`, `"loadable":false,"why":"a struct has no single type; store its children as columns of their own"}`, `,"need":0,"error":null}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	for size, want := range map[float64]string{
		0.5: "the size of the file is not an integer from 0 to 2^53", math.NaN(): "the size of the file is not an integer from 0 to 2^53", 1: "bytes are not the last of 1",
	} {
		if got := string(reply.Schema(data, size)); !strings.Contains(got, want) || !strings.HasPrefix(got, `{"format":null,"fields":[],"rows":null,"need":0,"error":{"code":"InvalidArgument"`) {
			t.Errorf("size %v: got %s", size, got)
		}
	}
}
