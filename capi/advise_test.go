package main

import (
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/plan/strategy/document"
)

// TestAdvise checks that the C library answers as the Go packages do, and runs hostile
// documents.
func TestAdvise(t *testing.T) {
	const question = `{"meshfeed":1,"model":{"preset":"llama3-8b"},"training":{"batch":128},"cluster":{"devices":8,"device":"h100-80"}}`
	d, err := document.Parse([]byte(question))
	if err != nil {
		t.Fatal(err)
	}
	r, err := strategy.Advise(d)
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, text := range []string{document.Text(d, r), string(document.Report(r)), question} {
		want += text + "\n----\n"
	}
	if got := execute(t, compile(t, library(t), "advise.c")); got != want {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
}
