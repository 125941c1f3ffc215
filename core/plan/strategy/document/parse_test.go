package document_test

import (
	"bytes"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/plan/strategy/document"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/golden"
	"github.com/meshfeed/meshfeed/tests/reports"
)

// whole is a document with every key of a transformer.
const whole = `{"meshfeed":1,"model":{"preset":"llama3-8b","transformer":{"layers":2,"hidden":8,"heads":4,"kv_heads":2,"head_dim":2,"latent":{"query":4,"key_value":4,"rotary":2,"value":3},"ffn":16,"gated":true,"vocab":10,` +
	`"tied":false,"sequence":4096,"biases":false,"qkv_biases":true,"norm":"rms","positions":"rotary","dropout":false,"causal":true,"experts":{"count":8,"active":2,"every":1,"after":1,"ffn":16,"shared":1,"capacity":1.25}},` +
	`"inputs":{"tokens":{"shape":["B",4097],"dtype":"int32"}}},` +
	`"training":{"batch":64,"total_tokens":1000000,"micro_batch":2,"optimizer":"adamw","precision":{"compute":"bfloat16","weights":"bfloat16","master":null,"gradients":"float32","moments":"float32"},` +
	`"recomputation":"auto","attention":"flash","schedule":"interleaved","chunks":2,"sequence_parallel":true,"overlap":{"tensor":true,"fsdp":false},"efficiency":[0.4,0.625],"link_efficiency":[0.5,1]},` +
	`"cluster":{"devices":8,"device":"h100-80","per_node":8,"memory_bytes":80000000000,"flops_per_second":989000000000000,"hbm_bytes_per_second":3350000000000,` +
	`"node_bytes_per_second":450000000000,"network_bytes_per_second":50000000000,"node_latency_ns":0,"network_latency_ns":5000,"topology":"switch","host_bytes":1000000000000},` +
	`"search":{"axes":{"tensor":[1,8],"pipe":[4]},"zero":[0,1],"margin":0.1,"keep":20,"pruned":true},"input":{"rows_per_second":1000,"processes":2}}`

// tree is a document with the arrays of a model.
const tree = `{"meshfeed":1,"model":{"tree":{"w/kernel":{"shape":[4,8],"dtype":"bfloat16","spec":["fsdp",null,["tensor","expert"]]},"scale":{"shape":[],"dtype":"int4"}},` +
	`"activation_bytes_per_example":0,"flops_per_example":12},"training":{"tokens":8},"cluster":{"devices":1}}`

// small is a document that the tests of single keys change.
const small = `{"meshfeed":1,"model":{"parameters":1000},"training":{"batch":8},"cluster":{"devices":1}}`

func TestCanonical(t *testing.T) {
	for _, text := range []string{whole, strings.ReplaceAll(tree, `"fsdp",null,["tensor","expert"]`, `"fsdp",["tensor","expert"]`), small} {
		d, err := document.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(document.Canonical(d)); got != text {
			t.Errorf("canonical text is\n%s\nwant\n%s", got, text)
		}
	}
	// other spellings of the same values
	spaced := strings.NewReplacer(`"batch":8`, `"micro_batch": "auto", "batch": 8`, `}}`, `}, "search": {"axes": {"pipe": 4}, "margin": 0.10}}`).Replace(small)
	d, err := document.Parse([]byte(spaced))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(document.Canonical(d)), strings.Replace(small, `}}`, `},"search":{"axes":{"pipe":[4]},"margin":0.1}}`, 1); got != want {
		t.Errorf("canonical text is\n%s\nwant\n%s", got, want)
	}
}

// TestSchema compares the schema with its file. The flag -rewrite writes the file.
func TestSchema(t *testing.T) {
	golden.CompareJSON(t, "strategy.schema.json", []byte(document.Schema()))
}

func TestParseRefuses(t *testing.T) {
	model := func(s string) string { return strings.Replace(small, `{"parameters":1000}`, s, 1) }
	training := func(s string) string { return strings.Replace(small, `{"batch":8}`, s, 1) }
	cluster := func(s string) string { return strings.Replace(small, `{"devices":1}`, s, 1) }
	with := func(s string) string { return strings.TrimSuffix(small, "}") + "," + s + "}" }
	for _, c := range []struct{ text, path, want string }{
		{``, "", "expected a value, but the text ends (line 1, byte 1)"},
		{`[]`, "", "expected a strategy document, but found a list"},
		{`{}`, "", `a strategy document needs the key "meshfeed"`},
		{strings.Replace(small, "1,", "2,", 1), "/meshfeed", "/meshfeed: the document has version 2, but this release reads version 1"},
		{with(`"models":{}`), "/models", `/models: "models" is not a key; did you mean "model"? The keys here are meshfeed, model, training, cluster, search, input`},
		{with(`"model":{}`), "/model", `/model: key "model" occurs twice; name it once`},
		{with(`"__proto__":{}`), "/__proto__", `/__proto__: "__proto__" is not a key; the keys here are meshfeed, model, training, cluster, search, input`},
		{strings.Repeat(" ", document.MaxBytes) + small, "", "the document has 8388697 bytes, but may have 8388608"},
		{strings.Repeat(`{"model":`, 40), "/model/model/model/model/model/model/model/model/model/model/model/model/model/model/model/model/model/model/model/model/model/model/model/model/model/model/model/model/model/model/model/model", ""},
		// the model
		{model(`{}`), "/model", `/model: there is no model; name a "preset", or give a "transformer", "parameters" or a "tree"`},
		{model(`{"preset":"llama3-8b","parameters":8}`), "/model", `/model: the model has 2 forms: "preset", "parameters"; keep one of them`},
		{model(`{"parameters":1e9}`), "/model/parameters", "/model/parameters: the number is not written as an integer (line 1, byte 37)"},
		{model(`{"parameters":0}`), "/model/parameters", "/model/parameters: expected a number of parameters from 1 to 9007199254740992, but found 0"},
		{model(`{"parameters":9007199254740993}`), "/model/parameters", "/model/parameters: the number is outside ±2^53 (line 1, byte 37)"},
		{model(`{"preset":""}`), "/model/preset", "/model/preset: expected the name of a model, but found an empty string"},
		{model(`{"preset":"gpt2","sequence":8}`), "/model/sequence", `/model/sequence: "sequence" is not a key; write it inside "transformer", which may stand beside "preset"`},
		{model(`{"preset":"llama3-8b","transformer":{"sliding_window":4096}}`), "/model/transformer/sliding_window", `/model/transformer/sliding_window: "sliding_window" is not a key; the keys here are layers, hidden, heads, kv_heads, head_dim, latent, ffn, gated, vocab, tied, sequence, biases, qkv_biases, norm, positions, dropout, causal, experts`},
		{model(`{"transformer":{"hiden":8}}`), "/model/transformer/hiden", `/model/transformer/hiden: "hiden" is not a key; did you mean "hidden"? The keys here are layers, hidden, heads, kv_heads, head_dim, latent, ffn, gated, vocab, tied, sequence, biases, qkv_biases, norm, positions, dropout, causal, experts`},
		{model(`{"transformer":{"gated":1}}`), "/model/transformer/gated", "/model/transformer/gated: expected true or false, but found a number"},
		{model(`{"transformer":{"experts":{"count":8}}}`), "/model/transformer/experts", `/model/transformer/experts: experts needs the key "active"`},
		{model(`{"transformer":{"experts":{"count":8,"active":2,"capacity":1.2505}}}`), "/model/transformer/experts/capacity", "/model/transformer/experts/capacity: the number is not written with at most three decimals (line 1, byte 82)"},
		{model(`{"transformer":{"experts":{"count":8,"active":2,"capacity":0}}}`), "/model/transformer/experts/capacity", "/model/transformer/experts/capacity: expected a capacity from 0.001 to 1073741.824, but found 0"},
		{model(`{"transformer":{"experts":{"count":8,"active":0}}}`), "/model/transformer/experts/active", "/model/transformer/experts/active: expected a number from 1 to 9007199254740992, but found 0"},
		{model(`{"tree":{}}`), "/model/tree", "/model/tree: the tree has no array; name at least one array"},
		{model(`{"tree":{"w":{"shape":[-1],"dtype":"int8"}}}`), "/model/tree/w/shape/0", "/model/tree/w/shape/0: expected a size from 0 to 9007199254740992, but found -1"},
		{model(`{"tree":{"w":{"shape":[8],"dtype":"int8","spec":["model"]}}}`), "/model/tree/w/spec/0", `/model/tree/w/spec/0: "model" is not an axis of the planner; use one of "fsdp", "expert", "tensor"`},
		{model(`{"parameters":8,"inputs":{"x":{"shape":[8],"dtype":"int8"}}}`), "/model/inputs/x/shape/0", `/model/inputs/x/shape/0: expected the batch dimension "B", but found a number`},
		{model(`{"parameters":8,"inputs":{"x":{"shape":["A"],"dtype":"int8"}}}`), "/model/inputs/x/shape/0", `/model/inputs/x/shape/0: expected the batch dimension "B", but found "A"`},
		{model(`{"parameters":8,"inputs":{"x":{"shape":[],"dtype":"int8"}}}`), "/model/inputs/x/shape", `/model/inputs/x/shape: the shape is empty; begin the shape with "B", the batch dimension`},
		{model(`{"parameters":8,"inputs":{"x":{"shape":["B"],"dtype":"int9"}}}`), "/model/inputs/x/dtype", `/model/inputs/x/dtype: "int9" is not an element type; use a name such as "float32", as NumPy spells it`},
		{model(`{"parameters":8,"inputs":{"":{"shape":["B"],"dtype":"int8"}}}`), "/model/inputs/", `/model/inputs/: an array has no name; a name has at least one character`},
		// the training
		{training(`{}`), "/training", `/training: there is no global batch; give "batch", a number of examples, or "tokens"`},
		{training(`{"batch":8,"tokens":8}`), "/training/tokens", "/training/tokens: the global batch is given in examples and in tokens; keep one of them"},
		{training(`{"tokens":0}`), "/training/tokens", "/training/tokens: expected a number of tokens from 1 to 9007199254740992, but found 0"},
		{training(`{"batch":8,"micro_batch":"all"}`), "/training/micro_batch", `/training/micro_batch: expected a number of examples or "auto", but found "all"`},
		{training(`{"batch":8,"micro_batch":0}`), "/training/micro_batch", `/training/micro_batch: expected a number of examples or "auto" from 1 to 1099511627776, but found 0`},
		{training(`{"batch":8,"overlap":{"model":true}}`), "/training/overlap/model", `/training/overlap/model: "model" is not a key; the keys here are pipe, data, fsdp, expert, context, tensor`},
		{training(`{"batch":8,"efficiency":[0.4]}`), "/training/efficiency", "/training/efficiency: expected an efficiency as [least, most], but the list has 1"},
		{training(`{"batch":8,"efficiency":[0.6,0.4]}`), "/training/efficiency", "/training/efficiency: the efficiency is from 0.6 to 0.4, but must be an interval between 0.001 and 1; give [least, most], such as [0.4, 0.6]"},
		{training(`{"batch":8,"link_efficiency":[0,1]}`), "/training/link_efficiency/0", "/training/link_efficiency/0: expected an efficiency from 0.001 to 1, but found 0"},
		{training(`{"batch":8,"precision":"fp32"}`), "/training/precision", "/training/precision: expected a precision, but found a string; a precision has the keys compute, weights, master, gradients, moments"},
		{training(`{"batch":8,"precision":{"weights":null}}`), "/training/precision/weights", "/training/precision/weights: expected an element type, but found null"},
		// the cluster, the search and the input
		{cluster(`{}`), "/cluster", `/cluster: a cluster needs the key "devices"`},
		{cluster(`{"devices":1048577}`), "/cluster/devices", "/cluster/devices: expected a number of devices from 1 to 1048576, but found 1048577"},
		{cluster(`{"devices":1,"node_latency_ns":-1}`), "/cluster/node_latency_ns", "/cluster/node_latency_ns: expected a number of nanoseconds from 0 to 1000000000, but found -1"},
		{with(`"search":{"axes":{"tensor":[]}}`), "/search/axes/tensor", `/search/axes/tensor: axis "tensor" has no size; leave it out to try all sizes`},
		{with(`"search":{"axes":{"tensr":8}}`), "/search/axes/tensr", `/search/axes/tensr: "tensr" is not a key; did you mean "tensor"? The keys here are pipe, data, fsdp, expert, context, tensor`},
		{with(`"search":{"zero":[3]}`), "/search/zero/0", "/search/zero/0: expected a stage from 0 to 2, but found 3"},
		{with(`"search":{"margin":1}`), "/search/margin", "/search/margin: expected a margin from 0 to 0.9, but found 1"},
		{with(`"input":{"rows_per_second":1.5}`), "/input/rows_per_second", "/input/rows_per_second: the number is not written as an integer (line 1, byte 117)"},
	} {
		d, err := document.Parse([]byte(c.text))
		var e *status.Error
		switch {
		case d != nil || !errors.As(err, &e):
			t.Errorf("%.120s was parsed: %v", c.text, err)
		case e.Code != status.InvalidArgument || e.Attr("path") != c.path || c.want != "" && err.Error() != "strategy: "+c.want:
			t.Errorf("%.120s:\ngot  %v at %v\nwant strategy: %s at %s", c.text, err, e.Attr("path"), c.want, c.path)
		}
	}
}

// TestParseBoundsTheTree checks that a tree may have 65,536 arrays.
func TestParseBoundsTheTree(t *testing.T) {
	var text strings.Builder
	text.WriteString(`{"meshfeed":1,"model":{"tree":{`)
	for i := range document.MaxArrays + 1 {
		text.WriteString(`"` + strconv.Itoa(i) + `":{"shape":[8],"dtype":"int8"},`)
	}
	rest := `},"training":{"batch":1},"cluster":{"devices":1}}`
	_, err := document.Parse([]byte(strings.TrimSuffix(text.String(), ",") + "}" + rest))
	if err == nil || err.Error() != "strategy: /model/tree: expected an object of arrays, but the object has more than 65536 members" {
		t.Errorf("got %v", err)
	}
}

// TestExtremes replaces every number of some documents by extreme ones.
func TestExtremes(t *testing.T) {
	number := regexp.MustCompile(`[:\[,][0-9.]+`)
	const preset = `{"meshfeed":1,"model":{"preset":"mixtral-8x7b"},"training":{"batch":64},"cluster":{"devices":64,"device":"h100-80"}}`
	for _, text := range []string{whole, tree, small, preset} {
		for _, at := range number.FindAllStringIndex(text, -1) {
			for _, n := range []string{"0", "1", "7", "720720", "1048576", "1099511627776", "9007199254740881", "9007199254740992"} {
				checkText(t, []byte(text[:at[0]+1]+n+text[at[1]:]))
			}
		}
	}
}

// FuzzAdvise checks that no text makes the program panic.
func FuzzAdvise(f *testing.F) {
	for _, text := range []string{whole, tree, small} {
		f.Add([]byte(text))
	}
	f.Fuzz(checkText)
}

// checkText checks that a text is refused with a path, or is a document. Then its
// canonical text parses to a document with the same canonical text, and its report is JSON.
func checkText(t *testing.T, text []byte) {
	d, err := document.Parse(text)
	if err != nil {
		reports.Refused(t, err)
		return
	}
	first := document.Canonical(d)
	again, err := document.Parse(first)
	if err != nil {
		t.Fatalf("canonical text %s: %v", first, err)
	}
	if second := document.Canonical(again); !bytes.Equal(first, second) {
		t.Fatalf("canonical text\n%s\nbecomes\n%s", first, second)
	}
	if d.Cluster.Devices > 4096 || len(d.Model.Tree) > 100 {
		return // takes too long
	}
	r, err := strategy.Advise(d)
	if checked := strategy.Check(d); (checked == nil) != (err == nil) {
		t.Fatalf("Check of %s returns %v, but Advise %v", first, checked, err)
	}
	if err != nil {
		reports.Refused(t, err)
		return
	}
	reports.Check(t, document.Report(r), document.Text(d, r))
}
