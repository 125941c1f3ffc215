package arrowio

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/tests/far"
)

// TestHubEqualsDisk: a split of a dataset of the hub has the rows of the same files on a disk. Its fingerprint
// follows from the content, and the token is in no error and no file of the cache.
func TestHubEqualsDisk(t *testing.T) {
	data := webFiles(t)["/plain.parquet"]
	h := &far.Hub{Store: &far.Server{Files: map[string][]byte{}}, Files: map[string][]byte{}, Page: 2, Token: "hf_secret"}
	store, server := httptest.NewServer(h.Store), httptest.NewServer(h)
	defer store.Close()
	defer server.Close()
	h.Away = store.URL
	dir, cache := t.TempDir(), t.TempDir()
	for _, name := range []string{"train-00000-of-00002.parquet", "train-00001-of-00002.parquet", "test-00000-of-00001.parquet"} {
		h.Put("data/"+name, data)
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.Put("README.md", []byte("words"))
	environment := map[string]string{"HF_ENDPOINT": server.URL, "HF_TOKEN": "hf_secret"}
	o := Options{Cache: cache, Split: "train", Getenv: func(name string) string { return environment[name] }}
	near, err := OpenFiles(t.Context(), []string{dir}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	var fingerprints []string
	for _, revision := range []string{"", "@main", "@0123456789012345678901234567890123456789"} {
		d, err := OpenFiles(t.Context(), []string{"hf://datasets/org/name" + revision + "/data"}, o)
		if err != nil {
			t.Fatal(err)
		}
		f, err := d.Fingerprint(t.Context())
		if err != nil || !bytes.Equal(rowsOf(t, d), rowsOf(t, near)) || d.fetched().Bytes != d.fetched().Planned {
			t.Errorf("%q: %v, or other rows, or %+v", revision, err, d.fetched())
		}
		fingerprints = append(fingerprints, f.String())
		const commit = "0123456789012345678901234567890123456789"
		if names := source.CommitsOf(d); !slices.Equal(names, []string{"hf://datasets/org/name@" + commit}) {
			t.Errorf("%q: %q", revision, names)
		}
		h.Take()
		o.Commits = d.Commits()
		again, err := OpenFiles(t.Context(), []string{"hf://datasets/org/name" + revision + "/data"}, o)
		if err != nil || strings.Contains(strings.Join(h.Take(), "\n"), "/revision/") {
			t.Errorf("%q: %v, or the commit is asked for again", revision, err)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	if fingerprints[0] != fingerprints[1] || fingerprints[0] != fingerprints[2] {
		t.Error(fingerprints)
	}
	o.Commits = map[string]string{"hf://datasets/org/name/data": "main"}
	if d, err := OpenFiles(t.Context(), []string{"hf://datasets/org/name/data"}, o); d != nil || !strings.Contains(fmt.Sprint(err), `is no dataset of the hub with the commit "main"`) {
		t.Errorf("wrong commits: %v", err)
	}
	o.Commits = nil
	var said strings.Builder
	o.Split = ""
	for _, name := range []string{"hf://datasets/org/name/data/*.parquet", "hf://datasets/org/name/none", "hf://datasets/org/name", "hf://datasets/org/other/x"} {
		d, err := OpenFiles(t.Context(), []string{name}, o)
		fmt.Fprintf(&said, "%v %+v\n", err, err)
		if d != nil {
			_ = d.Close()
		}
	}
	err = writeAll(&said, cache)
	if err != nil || strings.Contains(said.String(), "hf_secret") || !strings.Contains(said.String(), "no such file") {
		t.Errorf("%v: %.2000q", err, said.String())
	}
}
