package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
	if got.Folder != folder || got.Bytes != 3000 || len(got.Entries) != 1 || time.Since(got.Entries[0].Used) > time.Hour || got.Entries[0].InUse {
		t.Errorf("%+v", got)
	}
	if got := said("cache", "clear"); got != "removed 2.9 KiB in 1 file from "+folder+"\n" {
		t.Error(got)
	}
}
