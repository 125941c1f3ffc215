package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/layout/document"
)

// TestSchema checks that schema prints the JSON Schema of layout documents and
// rejects arguments.
func TestSchema(t *testing.T) {
	var out, diagnostics bytes.Buffer
	if code := run(context.Background(), []string{"schema"}, strings.NewReader(""), &out, &diagnostics); code != exitSuccess {
		t.Fatalf("exit status %d: %s", code, diagnostics.String())
	}
	if out.String() != document.Schema() || !strings.Contains(out.String(), `"$id": "urn:meshfeed:layout:1"`) {
		t.Errorf("schema prints %q…", out.String()[:min(100, out.Len())])
	}
	if code := run(context.Background(), []string{"schema", "x"}, strings.NewReader(""), &out, &diagnostics); code == exitSuccess {
		t.Error("schema accepts an argument")
	}
}
