package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"testing"

	diagnoses "github.com/meshfeed/meshfeed/core/diagnosis/document"
	layouts "github.com/meshfeed/meshfeed/core/layout/document"
	diagrams "github.com/meshfeed/meshfeed/core/plan/diagram/document"
	memories "github.com/meshfeed/meshfeed/core/plan/memory/document"
	strategies "github.com/meshfeed/meshfeed/core/plan/strategy/document"
	views "github.com/meshfeed/meshfeed/core/view/document"
)

// TestSchema checks that schema prints the JSON Schema of a kind of documents.
func TestSchema(t *testing.T) {
	for args, want := range map[string]string{
		"schema": layouts.Schema(), "schema layout": layouts.Schema(), "schema strategy": strategies.Schema(),
		"schema report": strategies.ReportSchema(), "schema memory": memories.Schema(), "schema diagram": diagrams.Schema(),
		"schema measurements": diagnoses.Schema(), "schema diagnosis": diagnoses.ReportSchema(), "schema view": views.Schema(),
	} {
		var out, diagnostics bytes.Buffer
		if code := run(context.Background(), strings.Fields(args), strings.NewReader(""), &out, &diagnostics); code != exitSuccess {
			t.Fatalf("exit status %d: %s", code, diagnostics.String())
		}
		kind := strings.TrimPrefix(strings.TrimPrefix(args, "schema"), " ")
		var printed, compact bytes.Buffer
		if json.Compact(&printed, out.Bytes()) != nil || json.Compact(&compact, []byte(want)) != nil || printed.String() != compact.String() || !strings.Contains(out.String(), `"$id": "urn:meshfeed:`+cmp.Or(kind, "layout")+`:1"`) {
			t.Errorf("%s prints %q…", args, out.String()[:min(100, out.Len())])
		}
	}
	var out, diagnostics bytes.Buffer
	const want = "meshfeed: schema: there is no schema of \"x\" documents\n  use one of \"layout\", \"strategy\", \"report\", \"memory\", \"diagram\", \"measurements\", \"diagnosis\", \"view\"\n"
	if code := run(context.Background(), []string{"schema", "x"}, strings.NewReader(""), &out, &diagnostics); code != exitFailure || diagnostics.String() != want {
		t.Errorf("schema x: exit status %d, %s", code, diagnostics.String())
	}
}
