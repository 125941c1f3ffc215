package hub_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/arrowio/internal/hub"
	"github.com/meshfeed/meshfeed/arrowio/internal/remote"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/far"
)

// standIn returns a hub with a store, and an opener of it with an environment.
func standIn(t *testing.T, environment map[string]string) (*far.Hub, *hub.Opener) {
	t.Helper()
	h := &far.Hub{Store: &far.Server{Files: map[string][]byte{}}, Files: map[string][]byte{}, Page: 2}
	store, server := httptest.NewServer(h.Store), httptest.NewServer(h)
	t.Cleanup(store.Close)
	t.Cleanup(server.Close)
	h.Away = strings.Replace(store.URL, "127.0.0.1", "localhost", 1)
	environment["HF_ENDPOINT"] = server.URL + "/"
	op, err := hub.New(remote.NewOpener(remote.New(nil)), func(name string) string { return environment[name] })
	if err != nil {
		t.Fatal(err)
	}
	return h, op
}

func TestOpener(t *testing.T) {
	for _, root := range []string{"hf://datasets/org/name", "hf://datasets/org/name@main", "hf://datasets/org/name@refs/convert/parquet"} {
		h, op := standIn(t, map[string]string{})
		blobtest.Run(t, op, root+"/some dir", func(name string, data []byte) { h.Put("some dir/"+name, data) })
	}
}

// TestRequests: a revision is resolved once, a directory is listed once, and the token stays with the hub.
func TestRequests(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "token"), []byte("hf_secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h, op := standIn(t, map[string]string{"HF_HOME": home})
	h.Token = "hf_secret"
	data := make([]byte, 100_000)
	h.Put("data/a.parquet", data)
	h.Put("data/b.parquet", data)
	h.Put("data/c.txt", data[:1])
	list, err := op.Glob(t.Context(), "hf://datasets/org/name/data/*.parquet")
	if err != nil || len(list) != 2 || list[0].Version != list[1].Version || list[0].Size != 100_000 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, e := range list {
		b, err := op.Open(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if b.(blob.Stamped).Stamp() != "sha256 "+strings.TrimPrefix(e.Version, "sha256 ") {
			t.Error(b.(blob.Stamped).Stamp())
		}
		for range 2 {
			if _, err := b.ReadAt(t.Context(), make([]byte, 10), 0); err != nil {
				t.Error(err)
			}
		}
	}
	const commit, auth = "0123456789012345678901234567890123456789", " Bearer hf_secret"
	want := []string{
		"/api/datasets/org/name/revision/main?expand=sha" + auth, "/api/datasets/org/name/tree/" + commit + "/data?recursive=false" + auth,
		"/api/datasets/org/name/tree/" + commit + "/data?recursive=false&cursor=2" + auth,
		"/datasets/org/name/resolve/" + commit + "/data/a.parquet" + auth, "/datasets/org/name/resolve/" + commit + "/data/b.parquet" + auth,
	}
	if got := strings.Join(h.Take(), "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s", got)
	}
	for _, r := range h.Store.Seen() {
		if r.Header.Get("Authorization") != "" || r.URL.RawQuery != "signature=1" {
			t.Errorf("the store saw %s with %q", r.URL, r.Header)
		}
	}
}

// TestErrors compares whole messages.
func TestErrors(t *testing.T) {
	h, op := standIn(t, map[string]string{})
	h.Put("a.parquet", make([]byte, 9))
	for name, want := range map[string]string{
		"hf://datasets/org":      "arrowio: hf://datasets/org: this does not name a dataset of the hub; write hf://datasets/ORG/NAME/PATH, or hf://datasets/ORG/NAME@REVISION/PATH",
		"hf://spaces/org/name/x": "arrowio: hf://spaces/org/name/x: this does not name a dataset of the hub; write hf://datasets/ORG/NAME/PATH, or hf://datasets/ORG/NAME@REVISION/PATH",
		"hf://datasets/org/name/none": "arrowio: hf://datasets/org/name/none: the revision main has no such file; " +
			"look at its page, or open hf://datasets/org/name@refs/convert/parquet, which has Parquet files of most datasets",
		"hf://datasets/org/name@old/a.parquet": "arrowio: hf://datasets/org/name@old: there is no such file (404 Not Found); check the address, also for capital letters",
	} {
		if _, err := op.Stat(t.Context(), name); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	h, op = standIn(t, map[string]string{"HF_TOKEN": "hf_wrong"})
	h.Token = "hf_secret"
	_, err := op.Stat(t.Context(), "hf://datasets/org/name/a.parquet")
	const want = "arrowio: hf://datasets/org/name: the server denies access (401 Unauthorized); " +
		"check the name; for a private or gated dataset, accept its conditions on its page, and set HF_TOKEN or run: hf auth login"
	if status.CodeOf(err) != status.IO || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if _, err := hub.New(remote.NewOpener(remote.New(nil)), func(string) string { return "ftp://secret" }); status.CodeOf(err) != status.InvalidArgument || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}
