// Package storage reads files that a function of the program finds and reads, such as a client of an
// object store. An [Opener] makes requests of it: one for each file, directory or glob that a search
// looks for, and one for each block of 8 MiB or less.
package storage

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Request asks for bytes of a file, or for entries: What is "read", "stat", "list" or "glob". The header
// meshfeed.h says what the answers are.
type Request struct {
	What, Name   string
	Version      string // of a read: that the file must have; "" for any
	Offset, Size int64  // of a read
}

// Ask makes a request of the program. It calls take once with the answer, which is valid until take
// returns, or returns an error.
type Ask func(ctx context.Context, r Request, take func(answer []byte) error) error

// Opener opens the files of the program. It implements blob.Opener.
type Opener struct {
	blob.Slashes
	ask Ask

	mu    sync.Mutex
	known map[string]entry // the files that a search has found, by name

	requests, planned, read atomic.Int64
}

// New returns an opener whose requests a function answers.
func New(ask Ask) *Opener { return &Opener{ask: ask, known: map[string]entry{}} }

// entry is an entry of an answer.
type entry struct {
	Name     string `json:"name"`
	Dir      bool   `json:"dir"`
	Size     int64  `json:"size"`
	Version  string `json:"version"`
	Identity string `json:"identity"`
	Stamp    string `json:"stamp"`
}

// Fetched returns what was read so far. The program counts its own retries.
func (op *Opener) Fetched() source.Fetched {
	return source.Fetched{Requests: op.requests.Load(), Planned: op.planned.Load(), Bytes: op.read.Load()}
}

// Hints implements blob.Opener.
func (op *Opener) Hints() blob.Hints { return blob.Far }

// Stat implements blob.Opener.
func (op *Opener) Stat(ctx context.Context, name string) (blob.Entry, error) {
	if strings.ContainsAny(name, "*?[{") {
		return blob.Entry{}, missing(name)
	}
	found, err := op.find(ctx, "stat", name)
	switch {
	case err != nil:
		return blob.Entry{}, err
	case len(found) == 0:
		return blob.Entry{}, missing(name)
	case len(found) > 1:
		return blob.Entry{}, failed(name, status.Errorf(status.InvalidArgument, "storage", "the storage has %d entries with this name", len(found)))
	}
	found[0].Name = name
	return op.keep(found[0]), nil
}

// List implements blob.Opener.
func (op *Opener) List(ctx context.Context, dir string) ([]blob.Entry, error) {
	found, err := op.find(ctx, "list", dir)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, missing(dir)
	}
	list := make([]blob.Entry, len(found))
	for i, e := range found {
		_, base := op.Split(e.Name)
		e.Name = op.Join(dir, base)
		list[i] = op.keep(e)
		list[i].Name = base
	}
	return sorted(list), nil
}

// Glob implements blob.Opener.
func (op *Opener) Glob(ctx context.Context, pattern string) ([]blob.Entry, error) {
	found, err := op.find(ctx, "glob", pattern)
	list := make([]blob.Entry, len(found))
	for i, e := range found {
		list[i] = op.keep(e)
	}
	return sorted(list), err
}

func sorted(list []blob.Entry) []blob.Entry {
	slices.SortFunc(list, func(a, b blob.Entry) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// find asks for entries. They are nil if there are none of the name.
func (op *Opener) find(ctx context.Context, what, name string) (found []entry, err error) {
	if err := ctx.Err(); err != nil {
		return nil, blob.ReadError(name, err)
	}
	err = op.request(ctx, Request{What: what, Name: name}, func(answer []byte) error {
		if err := json.Unmarshal(answer, &found); err != nil {
			return status.Errorf(status.InvalidArgument, "storage", "the answer of the storage is no list of entries: %w", err)
		}
		for _, e := range found {
			if e.Name == "" || e.Size < 0 {
				return status.Errorf(status.InvalidArgument, "storage", "the storage has an entry %q of %d bytes", e.Name, e.Size)
			}
		}
		return nil
	})
	return found, err
}

// keep notes a file, and returns its entry.
func (op *Opener) keep(e entry) blob.Entry {
	if e.Dir {
		return blob.Entry{Name: e.Name, Dir: true}
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	op.known[e.Name] = e
	return blob.Entry{Name: e.Name, Version: e.Version, Size: e.Size}
}

// Open implements blob.Opener. A file that a search has found is not asked for again.
func (op *Opener) Open(ctx context.Context, e blob.Entry) (blob.Blob, error) {
	known, ok := op.file(e.Name)
	if !ok {
		found, err := op.Stat(ctx, e.Name)
		if err != nil {
			return nil, err
		}
		if found.Dir {
			return nil, status.Errorf(status.Unsupported, "arrowio", "%s: this is a directory", e.Name).WithHint("name a file").With("path", e.Name)
		}
		known, _ = op.file(e.Name)
	}
	o := &object{opener: op, entry: known}
	switch {
	case known.Identity == "":
		return o, nil
	case known.Stamp == "":
		return versioned{o}, nil
	}
	return stamped{versioned{o}}, nil
}

func (op *Opener) file(name string) (entry, bool) {
	op.mu.Lock()
	defer op.mu.Unlock()
	e, ok := op.known[name]
	return e, ok
}

// request makes a request. Its errors have the name.
func (op *Opener) request(ctx context.Context, r Request, take func(answer []byte) error) error {
	op.requests.Add(1)
	err := op.ask(ctx, r, take)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return blob.ReadError(r.Name, ctx.Err())
	}
	return failed(r.Name, err)
}

// failed returns an error of the program with the name of the file.
func failed(name string, err error) error {
	e, ok := errors.AsType[*status.Error](err)
	if !ok {
		return blob.ReadError(name, err)
	}
	named := *e
	named.Op, named.Msg = "arrowio", name+": "+e.Msg
	return named.With("path", name)
}

func missing(name string) error {
	return status.Errorf(status.NotFound, "arrowio", "%s does not exist", name).With("path", name)
}
