package storage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/capi/internal/storage"
	"github.com/meshfeed/meshfeed/core/status"
)

// program is a storage of a program: files in memory, with versions.
type program struct {
	blobtest.Memory
	version string
	stamp   string
	asked   []string // requests of the last test
	answer  string   // in place of every answer, unless it is empty
}

func (p *program) ask(ctx context.Context, r storage.Request, take func([]byte) error) error {
	p.asked = append(p.asked, r.What+" "+r.Name)
	if p.answer != "" {
		return take([]byte(p.answer))
	}
	var found []blob.Entry
	var err error
	dir := ""
	switch r.What {
	case "read":
		if r.Version != p.version {
			return status.Errorf(status.DataLoss, "program", "it is %q and not %q", p.version, r.Version)
		}
		return take(p.Memory[r.Name][r.Offset : r.Offset+r.Size])
	case "stat":
		found = make([]blob.Entry, 1)
		found[0], err = p.Stat(ctx, r.Name)
	case "list":
		dir = r.Name
		found, err = p.List(ctx, r.Name)
	case "glob":
		found, err = p.Glob(ctx, r.Name)
	}
	var entries []map[string]any
	for _, e := range found {
		if dir != "" {
			e.Name = p.Join(dir, e.Name)
		}
		identity := ""
		if p.version != "" {
			identity = e.Name + p.version
		}
		entries = append(entries, map[string]any{"name": e.Name, "dir": e.Dir, "size": e.Size, "version": p.version, "identity": identity, "stamp": p.stamp})
	}
	if status.CodeOf(err) == status.NotFound {
		entries = nil
	}
	text, _ := json.Marshal(entries)
	return take(text)
}

func TestOpener(t *testing.T) {
	for _, p := range []*program{{}, {version: "1"}, {version: "1", stamp: "5"}} {
		t.Run(fmt.Sprintf("%s %s", p.version, p.stamp), func(t *testing.T) {
			p.Memory = blobtest.Memory{}
			blobtest.Run(t, storage.New(p.ask), "bucket/dir", func(name string, data []byte) { p.Memory["bucket/dir/"+name] = data })
		})
	}
}

// TestFoundFilesAreNotAskedForAgain: the entry of a search opens a file.
func TestFoundFilesAreNotAskedForAgain(t *testing.T) {
	p := &program{Memory: blobtest.Memory{"b/x": make([]byte, 20<<20)}, version: "1", stamp: "5"}
	op := storage.New(p.ask)
	found, err := op.Glob(t.Context(), "b/*")
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	b, err := op.Open(t.Context(), found[0])
	if err != nil {
		t.Fatal(err)
	}
	if asked := strings.Join(p.asked, ", "); asked != "glob b/*" {
		t.Errorf("asked %s", asked)
	}
	if got := b.(blob.Stamped).Stamp(); got != "5" {
		t.Errorf("the stamp is %s", got)
	}
	counted := op.Fetched()
	if counted.Requests != 1 || counted.Planned != 0 {
		t.Errorf("%+v", counted)
	}
}

// TestBlocks: a long read is divided, and a change is remembered.
func TestBlocks(t *testing.T) {
	p := &program{Memory: blobtest.Memory{"b/x": make([]byte, 20<<20)}, version: "1"}
	p.Memory["b/x"][17<<20] = 7
	serial := make(chan struct{}, 1)
	op := storage.New(func(ctx context.Context, r storage.Request, take func([]byte) error) error {
		serial <- struct{}{}
		defer func() { <-serial }()
		return p.ask(ctx, r, take)
	})
	b, err := op.Open(t.Context(), blob.Entry{Name: "b/x"})
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 18<<20)
	if n, err := b.ReadAt(t.Context(), data, 1); n != len(data) || err != nil || data[17<<20-1] != 7 {
		t.Fatal(n, err)
	}
	if got := op.Fetched(); got.Requests != 4 || got.Planned != 18<<20 || got.Bytes != 18<<20 {
		t.Errorf("%+v", got)
	}
	if err := b.Check(); err != nil {
		t.Error(err)
	}
	p.version = "2"
	_, err = b.ReadAt(t.Context(), data[:1], 0)
	if err == nil || err.Error() != `arrowio: b/x: it is "2" and not "1"` || !errors.Is(b.Check(), err) {
		t.Errorf("%v, and Check: %v", err, b.Check())
	}
}

func TestWrongAnswers(t *testing.T) {
	p := &program{Memory: blobtest.Memory{"b/x": {1, 2, 3}}}
	op := storage.New(p.ask)
	b, err := op.Open(t.Context(), blob.Entry{Name: "b/x"})
	if err != nil {
		t.Fatal(err)
	}
	for answer, want := range map[string]string{
		"no JSON": "is no list of entries", `[{"name": "", "size": 1}]`: "an entry", `[{"name": "b/y", "size": -1}]`: "-1 bytes", `[{"name": "y"}, {"name": "z"}]`: "2 entries",
	} {
		p.answer = answer
		if _, err := op.Stat(t.Context(), "b/y"); status.CodeOf(err) != status.InvalidArgument || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "b/y: ") {
			t.Errorf("%s: %v", answer, err)
		}
	}
	p.answer = "too long"
	if _, err := b.ReadAt(t.Context(), make([]byte, 3), 0); status.CodeOf(err) != status.DataLoss || !strings.Contains(err.Error(), "8 bytes came for the 3 bytes from 0 on") {
		t.Error(err)
	}
}
