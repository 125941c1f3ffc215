package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// request sends one request to a handler with the page "the page".
func request(method, url string) *http.Response {
	recorder := httptest.NewRecorder()
	page := func() ([]byte, error) { return []byte("the page"), nil }
	handler(page).ServeHTTP(recorder, httptest.NewRequest(method, url, nil))
	return recorder.Result()
}

func TestHandler(t *testing.T) {
	for _, c := range []struct {
		method, url string
		status      int
	}{
		{"GET", "http://127.0.0.1:8000/", 200},
		{"GET", "http://127.0.0.1/", 200},
		{"GET", "http://localhost:8000/?theme=dark", 200},
		{"HEAD", "http://127.0.0.1:8000/", 200},
		{"POST", "http://127.0.0.1:8000/", 405},
		{"GET", "http://127.0.0.1:8000/etc/passwd", 404},
		{"GET", "http://127.0.0.1:8000/../layout.json", 307}, // to the path without dots
		{"GET", "http://evil.example:8000/", 403},
		{"GET", "http://127.0.0.1.evil.example:8000/", 403},
	} {
		if got := request(c.method, c.url).StatusCode; got != c.status {
			t.Errorf("%s %s: status %d, want %d", c.method, c.url, got, c.status)
		}
	}
}

func TestHeaders(t *testing.T) {
	got := request("GET", "http://localhost/").Header
	for key, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Content-Length": "8",
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	} {
		if got.Get(key) != want {
			t.Errorf("%s is %q, want %q", key, got.Get(key), want)
		}
	}
}

func TestServeOnABusyPort(t *testing.T) {
	taken, err := listen(0)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	_, err = listen(port)
	want := "serve: listen tcp 127.0.0.1:" + strconv.Itoa(port) + ": bind: address already in use; omit --port to use a free port"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := listen(70000); err == nil || !strings.Contains(err.Error(), "invalid port") {
		t.Errorf("of port 70000, got %v", err)
	}
}

// TestServeEndsWithItsContext also checks that a failing listener is an error.
func TestServeEndsWithItsContext(t *testing.T) {
	page := func() ([]byte, error) { return nil, errors.New("never called") }
	ctx, interrupt := context.WithCancel(context.Background())
	listener, err := listen(0)
	if err != nil {
		t.Fatal(err)
	}
	interrupt()
	if err := serve(ctx, listener, page); err != nil {
		t.Errorf("Ctrl-C gave %v", err)
	}
	if err := serve(context.Background(), listener, page); err == nil || !strings.Contains(err.Error(), "use of closed network connection") {
		t.Errorf("a closed listener gave %v", err)
	}
}

func TestServeOpensABrowser(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the stand-in is a shell script named xdg-open")
	}
	folder := t.TempDir()
	opened := filepath.Join(folder, "opened")
	script := "#!/bin/sh\necho \"$1\" > " + opened + ".new && mv " + opened + ".new " + opened + "\n"
	if err := os.WriteFile(filepath.Join(folder, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	var diagnostics bytes.Buffer
	cmd := newServe()
	cmd.SetErr(&diagnostics)
	cmd.SetContext(t.Context())
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	openBrowser(cmd, "http://127.0.0.1:1/")
	deadline := time.Now().Add(time.Minute)
	for {
		if text, err := os.ReadFile(opened); err == nil {
			if string(text) != "http://127.0.0.1:1/\n" || diagnostics.Len() > 0 {
				t.Errorf("the browser opened %q; %s", text, diagnostics.String())
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the browser was not started")
		}
		time.Sleep(time.Millisecond)
	}
	t.Setenv("PATH", t.TempDir())
	openBrowser(cmd, "http://127.0.0.1:1/")
	if !strings.HasPrefix(diagnostics.String(), "meshfeed: no browser was opened: ") {
		t.Errorf("%q", diagnostics.String())
	}
}
