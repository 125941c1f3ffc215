package advice_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	layouts "github.com/meshfeed/meshfeed/core/layout/document"
	diagrams "github.com/meshfeed/meshfeed/core/plan/diagram/document"
	"github.com/meshfeed/meshfeed/core/plan/hardware"
	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/plan/strategy/document"
	"github.com/meshfeed/meshfeed/core/plan/transformer"
	"github.com/meshfeed/meshfeed/wasm/internal/advice"
)

// quoted writes a text as a JSON string.
func quoted(t *testing.T, text []byte) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(string(text)); err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(b.Bytes()))
}

func TestAdvise(t *testing.T) {
	question := []byte(`{"meshfeed":1,"model":{"preset":"llama3-8b"},"training":{"batch":64},"cluster":{"device":"h100-80","devices":8}}`)
	d, err := document.Parse(question)
	if err != nil {
		t.Fatal(err)
	}
	r, err := strategy.Advise(d)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"report":` + string(document.Report(r)) + `,"layout":` + quoted(t, layouts.Canonical(r.Layout)) + `,"text":` + quoted(t, []byte(document.Text(d, r))) + `,"error":null}`
	if got := string(advice.Advise(question)); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestAdviseWithoutALayout(t *testing.T) {
	got := advice.Advise([]byte(`{"meshfeed":1,"model":{"preset":"gpt3-175b"},"training":{"batch":8},"cluster":{"device":"h100-80","devices":8}}`))
	var reply struct {
		Report map[string]any
		Layout *string
	}
	if err := json.Unmarshal(got, &reply); err != nil || reply.Layout != nil || reply.Report["best"] != nil {
		t.Errorf("got %.300s, %v", got, err)
	}
}

func TestAdviseRefuses(t *testing.T) {
	want := `{"report":null,"layout":null,"text":null,"error":{"code":"InvalidArgument","op":"strategy",` +
		`"message":"/cluster: expected a cluster, but found a list","hint":"a cluster has the keys devices, device, per_node, memory_bytes, flops_per_second, hbm_bytes_per_second, node_bytes_per_second, network_bytes_per_second, node_latency_ns, network_latency_ns, topology, host_bytes","path":"/cluster"}}`
	if got := string(advice.Advise([]byte(`{"meshfeed":1,"model":{"parameters":1},"training":{"batch":1},"cluster":[]}`))); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// A model of the catalog has the same report by its name and by its sizes.
func TestCatalog(t *testing.T) {
	var catalog struct {
		Models []struct {
			Name        string
			Parameters  int64
			Transformer json.RawMessage
		}
		Devices []struct {
			Name    string
			Memory  *int64
			PerNode int `json:"per_node"`
		}
	}
	if err := json.Unmarshal(advice.Catalog(), &catalog); err != nil {
		t.Fatal(err)
	}
	if len(catalog.Models) != len(transformer.Presets()) || len(catalog.Devices) != len(hardware.All()) {
		t.Errorf("the catalog has %d models and %d devices", len(catalog.Models), len(catalog.Devices))
	}
	for i, k := range hardware.All() {
		d := catalog.Devices[i]
		if d.Name != k.Name || d.PerNode != k.PerNode || (d.Memory == nil) == k.Memory.Known() || d.Memory != nil && *d.Memory != k.Memory.Value {
			t.Errorf("device %s is %+v", k.Name, d)
		}
	}
	for _, m := range catalog.Models {
		report := func(model string) (r struct {
			Report struct {
				Model      struct{ Parameters int64 }
				Candidates json.RawMessage
			}
		}) {
			reply := advice.Advise(fmt.Appendf(nil, `{"meshfeed":1,"model":%s,"training":{"batch":512},"cluster":{"device":"h100-80","devices":512}}`, model))
			if err := json.Unmarshal(reply, &r); err != nil {
				t.Fatal(err)
			}
			return r
		}
		byName, bySizes := report(`{"preset":"`+m.Name+`"}`).Report, report(`{"transformer":`+string(m.Transformer)+`}`).Report
		if byName.Model.Parameters != m.Parameters || bySizes.Model != byName.Model || !bytes.Equal(bySizes.Candidates, byName.Candidates) {
			t.Errorf("%s: the sizes %s have %d parameters, the name %d", m.Name, m.Transformer, bySizes.Model.Parameters, byName.Model.Parameters)
		}
	}
}

func TestDiagram(t *testing.T) {
	text := []byte(`{"meshfeed":1,"diagram":{"pipeline":{"schedule":"1f1b","stages":4,"micro_batches":8}}}`)
	d, err := diagrams.Draw(text)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"svg":` + quoted(t, []byte(d.SVG(600))) + `,"error":null}`
	if got := string(advice.Diagram(text, 600)); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// The module has only the kinds of diagrams that the page draws.
func TestDiagramRefuses(t *testing.T) {
	want := `{"svg":null,"error":{"code":"InvalidArgument","op":"diagram",` +
		`"message":"/diagram/loading: \"loading\" is not a key","hint":"the keys here are collective, matmul, memory, pipeline","path":"/diagram/loading"}}`
	if got := string(advice.Diagram([]byte(`{"meshfeed":1,"diagram":{"loading":{}}}`), 600)); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
