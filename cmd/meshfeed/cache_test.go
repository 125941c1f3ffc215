package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/arrowio"
)

// TestCacheOfTheUser: the verbs work without a folder, and then with one.
func TestCacheOfTheUser(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", home)
	folder := filepath.Join(home, "meshfeed", "units")
	said := func(args ...string) string {
		t.Helper()
		var out, diagnostics bytes.Buffer
		if code := run(context.Background(), args, strings.NewReader(""), &out, &diagnostics); code != exitSuccess {
			t.Fatal(diagnostics.String())
		}
		return out.String()
	}
	for _, verb := range []string{"list", "clear"} {
		if got := said("cache", verb); got != "there is no cache in "+folder+"\n" {
			t.Errorf("%s: %s", verb, got)
		}
		if got := said("cache", verb, "--json"); !strings.Contains(got, `"bytes": 0`) {
			t.Errorf("%s: %s", verb, got)
		}
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "abc.units"), make([]byte, 3000), 0o600); err != nil {
		t.Fatal(err)
	}
	var got cacheListing
	if err := json.Unmarshal([]byte(said("cache", "list", "--json")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Folder != folder || got.Bytes != 3000 || got.Files != 1 || len(got.Datasets) != 1 || got.Datasets[0].Dataset != "" || time.Since(got.Datasets[0].Used) > time.Hour || got.Datasets[0].InUse {
		t.Errorf("%+v", got)
	}
	if got := said("cache", "list"); got != "DATASET  COLUMNS  SIZE     FILES  LAST USE\nunknown           2.9 KiB  1      within an hour\n2.9 KiB in 1 file of "+folder+"\n" {
		t.Error(got)
	}
	if got := said("cache", "clear"); got != "removed 2.9 KiB in 1 file from "+folder+"\n" {
		t.Error(got)
	}
}

// TestCachedOf: the files of the columns of a dataset are one line, with their last use.
func TestCachedOf(t *testing.T) {
	hour := func(h int) time.Time { return time.Date(2026, 1, 1, h, 0, 0, 0, time.UTC) }
	got := cachedOf([]arrowio.CacheEntry{
		{Dataset: "/a", Columns: "x", Bytes: 1, Used: hour(1)},
		{Dataset: "/b", Columns: "x", Bytes: 2, Used: hour(2)},
		{Dataset: "/a", Columns: "x", Bytes: 4, Used: hour(3), InUse: true},
		{Dataset: "/a", Columns: "y", Bytes: 8, Used: hour(4)},
	})
	want := []cachedRows{
		{"/b", "x", 1, 2, hour(2), false},
		{"/a", "x", 2, 5, hour(3), true},
		{"/a", "y", 1, 8, hour(4), false},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
}
