package bucket

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/core/status"
)

// Stat implements blob.Opener. It lists a page of names from this one on, which may have the names of the next calls.
// If the store denies listings, the name is taken for a file.
func (op *Opener) Stat(ctx context.Context, name string) (blob.Entry, error) {
	root, _, key, err := split(name)
	switch {
	case err != nil:
		return blob.Entry{}, err
	case strings.ContainsAny(key, "*?[{"):
		return blob.Entry{}, status.Errorf(status.NotFound, "arrowio", "%s: this stands for several files", name).With("path", name)
	case key == "" || strings.HasSuffix(key, "/"):
		c, err := op.directory(ctx, name)
		if err != nil {
			return blob.Entry{}, err
		}
		return found(ctx, c, name)
	}
	op.mu.Lock()
	p, unlisted := op.page, op.unlisted[root]
	op.mu.Unlock()
	if unlisted {
		return blob.Entry{Name: name}, nil
	}
	if dir, _ := op.Split(name); !p.has(dir, name) {
		p = page{dir: dir, from: name}
		p.Blobs, p.to, err = op.list(ctx, query{prefix: inside(dir), delimiter: "/", after: before(name), until: name + "/"})
		op.mu.Lock()
		defer op.mu.Unlock()
		if denied(err) {
			op.unlisted[root] = true
			return blob.Entry{Name: name}, nil
		}
		if err != nil {
			return blob.Entry{}, err
		}
		op.page = p
	}
	return found(ctx, p.Catalog, name)
}

// denied reports whether a store denies a listing. It may still let a name be opened.
func denied(err error) bool {
	e, ok := errors.AsType[*status.Error](err)
	return ok && (e.Attr("status") == http.StatusForbidden || e.Attr("status") == http.StatusUnauthorized)
}

// page is what is in a directory between two names, or up to its end if the second name is "".
type page struct {
	blob.Catalog
	dir, from, to string
}

// has reports whether the page shows if a name exists, as a file or as a directory.
func (p page) has(dir, name string) bool {
	return p.dir == dir && p.from <= name && (p.to == "" || name+"/" <= p.to)
}

// before returns a name that is less than another one. Few names are between them.
func before(name string) string {
	last, size := utf8.DecodeLastRuneInString(name)
	name = name[:len(name)-size]
	if ' ' < last && last <= '~' {
		name += string(last-1) + "~~~"
	}
	return name
}

// found looks for a name in a catalog.
func found(ctx context.Context, c blob.Catalog, name string) (blob.Entry, error) {
	e, err := c.Stat(ctx, name)
	if status.CodeOf(err) == status.NotFound {
		err = status.Errorf(status.NotFound, "arrowio", "%s: the bucket has no such file or directory", name).
			WithHint("check the name, also for capital letters").With("path", name)
	}
	return e, err
}

// List implements blob.Opener. The partitions in a directory, such as year=2024, are listed together as soon as
// one of them is asked for.
func (op *Opener) List(ctx context.Context, dir string) ([]blob.Entry, error) {
	c, err := op.directory(ctx, dir)
	if err != nil {
		return nil, err
	}
	return c.List(ctx, dir)
}

// directory returns a catalog of what is in a directory.
func (op *Opener) directory(ctx context.Context, dir string) (c blob.Catalog, err error) {
	prefix := inside(dir)
	if known := op.covering(dir); known != nil {
		return known.in(ctx, op, prefix)
	}
	if c.Blobs, _, err = op.list(ctx, query{prefix: prefix, delimiter: "/"}); err != nil {
		return c, err
	}
	if root, _, _, _ := split(dir); root == prefix {
		c.Blobs = append(c.Blobs, blob.Entry{Name: root}) // an empty bucket is a directory, too
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	op.listed[prefix] = true
	return c, nil
}

// Glob implements blob.Opener. It lists the names that begin like the pattern.
func (op *Opener) Glob(ctx context.Context, pattern string) ([]blob.Entry, error) {
	prefix := pattern[:strings.IndexAny(pattern+"*", `*?[\`)]
	root, _, _, err := split(prefix)
	if err != nil || !strings.HasPrefix(prefix, root) {
		return nil, nameless(pattern)
	}
	var c blob.Catalog
	if strings.Contains(pattern[len(prefix):], "/") {
		c, err = op.all(prefix).in(ctx, op, prefix)
	} else {
		c.Blobs, _, err = op.list(ctx, query{prefix: prefix, delimiter: "/"})
	}
	if err != nil {
		return nil, err
	}
	return c.Glob(ctx, pattern)
}

// below is a listing of all names that begin with a prefix. It is fetched once.
type below struct {
	prefix string

	mu      sync.Mutex
	fetched bool
	entries []blob.Entry // in the order of their names
}

// all returns the listing of a prefix.
func (op *Opener) all(prefix string) *below {
	op.mu.Lock()
	defer op.mu.Unlock()
	b := op.below[prefix]
	if b == nil {
		b = &below{prefix: prefix}
		op.below[prefix] = b
	}
	return b
}

// covering returns the known listing that has all names in a directory, or nil. A partition in a directory that was
// listed gets one with all its neighbors.
func (op *Opener) covering(dir string) *below {
	op.mu.Lock()
	for known, b := range op.below {
		if strings.HasPrefix(inside(dir), known) {
			op.mu.Unlock()
			return b
		}
	}
	up, base := op.Split(dir)
	partition := strings.Contains(base, "=") && op.listed[inside(up)]
	op.mu.Unlock()
	if !partition {
		return nil
	}
	return op.all(inside(up))
}

// in returns the names that begin with a prefix.
func (b *below) in(ctx context.Context, op *Opener, prefix string) (c blob.Catalog, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.fetched {
		if b.entries, _, err = op.list(ctx, query{prefix: b.prefix}); err != nil {
			return c, err
		}
		b.fetched = true
	}
	from, _ := slices.BinarySearchFunc(b.entries, blob.Entry{Name: prefix}, byName)
	to := from
	for to < len(b.entries) && strings.HasPrefix(b.entries[to].Name, prefix) {
		to++
	}
	return blob.Catalog{Blobs: b.entries[from:to:to]}, nil
}
