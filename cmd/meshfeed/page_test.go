//go:build page

package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/wasm/page"
)

const (
	loose     = `{"meshfeed": 1, "mesh": {"axes": [["data", 2]]}, "arrays": {"x<": {"shape": ["B"], "dtype": "int32", "spec": [["data"]]}}, "batch": {"size": 5}}`
	canonical = `{"meshfeed":1,"mesh":{"axes":[["data",2]]},"arrays":{"x<":{"shape":["B"],"dtype":"int32","spec":["data"]}},"batch":{"size":5}}`
)

func pageBytes(t *testing.T, document string) string {
	t.Helper()
	html, err := page.HTML([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return string(html)
}

// TestPage checks that the page contains the canonical document, even if the
// layout has problems.
func TestPage(t *testing.T) {
	for args, document := range map[string]string{"page": "", "page -": canonical, "plan --html -": canonical} {
		var out, diagnostics bytes.Buffer
		code := run(context.Background(), strings.Fields(args), strings.NewReader(loose), &out, &diagnostics)
		if code != exitSuccess || diagnostics.Len() > 0 || out.String() != pageBytes(t, document) {
			t.Errorf("%s: exit %d, %d bytes of page, %s", args, code, out.Len(), diagnostics.String())
		}
	}
}

// TestPageOfAStrategy checks that the page contains a strategy, and that a wrong one
// is an error.
func TestPageOfAStrategy(t *testing.T) {
	const strategy = `{"meshfeed":1,"model":{"preset":"llama3-8b"},"training":{"batch":64},"cluster":{"devices":8,"device":"h100-80"}}`
	var out, diagnostics bytes.Buffer
	loose := strings.ReplaceAll(strategy, ":", ": ")
	if code := run(t.Context(), []string{"page", "-"}, strings.NewReader(loose), &out, &diagnostics); code != exitSuccess || out.String() != pageBytes(t, strategy) {
		t.Errorf("exit %d, %d bytes of page, %s", code, out.Len(), diagnostics.String())
	}
	out.Reset()
	wrong := strings.Replace(strategy, `"batch":64`, `"batch":0`, 1)
	code := run(t.Context(), []string{"page", "-"}, strings.NewReader(wrong), &out, &diagnostics)
	if want := "meshfeed: -: /training/batch: expected a number of examples from 1 to 1099511627776, but found 0\n"; code != exitFailure || diagnostics.String() != want {
		t.Errorf("exit %d, %q, want %q", code, diagnostics.String(), want)
	}
}

// TestServe edits the layout between two requests.
func TestServe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "layout.json")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(loose)
	address, stop := serving(t, path)
	if got := visit(t, address); got != pageBytes(t, canonical) {
		t.Errorf("the page has %d bytes, and does not show the layout", len(got))
	}
	write(strings.Replace(loose, "5}", "6}", 1))
	if got := visit(t, address); got != pageBytes(t, strings.Replace(canonical, "5}", "6}", 1)) {
		t.Errorf("the page has %d bytes, and does not show the edited layout", len(got))
	}
	write("{")
	want := "meshfeed: " + path + ": expected a key in quotes, but the text ends (line 1, byte 2)\n"
	if got := visit(t, address); got != want {
		t.Errorf("of a broken layout, got %.200q, want %q", got, want)
	}
	if code, diagnostics := stop(); code != exitSuccess || diagnostics != "" {
		t.Errorf("Ctrl-C: exit %d, %s", code, diagnostics)
	}
}

// serving runs the verb. It returns the address, and a function that ends the
// verb as Ctrl-C does.
func serving(t *testing.T, args ...string) (string, func() (int, string)) {
	t.Helper()
	ctx, interrupt := context.WithCancel(context.Background())
	in, out := io.Pipe()
	var diagnostics bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		code := run(ctx, append([]string{"serve"}, args...), strings.NewReader(""), out, &diagnostics)
		out.Close()
		ended <- code
	}()
	t.Cleanup(interrupt)
	address, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		t.Fatalf("no address: %v, %s", err, diagnostics.String())
	}
	return strings.TrimSpace(address), func() (int, string) {
		interrupt()
		return <-ended, diagnostics.String()
	}
}

func visit(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
