package hub

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// maxListed bounds the files of a listing, as a dataset is bounded.
const maxListed = 1 << 20

// Stat implements blob.Opener. It lists the directory of the name.
func (op *Opener) Stat(ctx context.Context, name string) (blob.Entry, error) {
	name = strings.TrimSuffix(name, "/")
	p, err := placeOf(name)
	if err != nil {
		return blob.Entry{}, err
	}
	if strings.ContainsAny(name, "*?[{") {
		return blob.Entry{}, status.Errorf(status.NotFound, "arrowio", "%s: this stands for several files", name).With("path", name)
	}
	dir := name
	if p.path != "" {
		dir, _ = op.Split(name)
	}
	c, err := op.list(ctx, dir, false)
	if err != nil {
		return blob.Entry{}, err
	}
	e, err := c.Stat(ctx, name)
	if status.CodeOf(err) == status.NotFound {
		missing := status.Errorf(status.NotFound, "arrowio", "%s: the revision %s has no such file", name, p.revision).With("path", name)
		if p.kind == "models" {
			return e, missing.WithHint("look at the page of the model; names of datasets begin with hf://datasets/")
		}
		return e, missing.WithHint("look at its page, or open hf://datasets/%s@refs/convert/parquet, which has Parquet files of most datasets", p.dataset)
	}
	return e, err
}

// List implements blob.Opener.
func (op *Opener) List(ctx context.Context, dir string) ([]blob.Entry, error) {
	c, err := op.list(ctx, dir, false)
	if err != nil {
		return nil, err
	}
	return c.List(ctx, dir)
}

// Glob implements blob.Opener. One listing has all directories below the part without wildcards.
func (op *Opener) Glob(ctx context.Context, pattern string) ([]blob.Entry, error) {
	dir, _ := op.Split(pattern[:strings.IndexAny(pattern+"*", "*?[")] + "x")
	deep := strings.Contains(strings.TrimPrefix(strings.TrimPrefix(pattern, dir), "/"), "/")
	c, err := op.list(ctx, dir, deep)
	if status.CodeOf(err) == status.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return c.Glob(ctx, pattern)
}

// list returns what is in a directory, and below it if deep is true. Each directory is listed once.
func (op *Opener) list(ctx context.Context, dir string, deep bool) (c blob.Catalog, err error) {
	p, err := placeOf(dir)
	if err != nil {
		return c, err
	}
	key := dir
	if deep {
		key += "/**"
	}
	op.mu.Lock()
	c, known := op.lists[key]
	op.mu.Unlock()
	if known {
		return c, nil
	}
	sha, err := op.commit(ctx, p)
	if err != nil {
		return c, err
	}
	parts := append([]string{"api", p.kind}, append(split(p.dataset), "tree", sha)...)
	at := op.address(append(parts, split(strings.TrimSuffix(p.path, "/"))...)...)
	if at.RawQuery = "recursive=false"; deep {
		at.RawQuery = "recursive=true"
	}
	for at != nil {
		page, link, err := op.get(ctx, dir, at)
		if err != nil {
			return c, err
		}
		for item := range page.Elements() {
			c.Blobs = append(c.Blobs, entryOf(p.root, item))
		}
		if len(c.Blobs) > maxListed {
			return c, status.Errorf(status.ResourceExhausted, "arrowio", "%s: the listing has more than %d files", dir, maxListed).With("path", dir)
		}
		found := next.FindStringSubmatch(link)
		if found == nil {
			break
		}
		if at, err = at.Parse(found[1]); err != nil || at.Host != op.endpoint.Host || at.Scheme != op.endpoint.Scheme {
			return c, damaged(dir, "the next page of the listing is on another host")
		}
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	op.lists[key] = c
	return c, nil
}

// next matches the address of the next page.
var next = regexp.MustCompile(`<([^>]*)>;\s*rel="next"`)

// entryOf returns an item of a listing. The version is the hash of the content: SHA-256 of large files, and
// git's hash of others.
func entryOf(root string, item jsontext.Value) blob.Entry {
	path, _ := item.Get("path").Text()
	e := blob.Entry{Name: root + "/" + path}
	if kind, _ := item.Get("type").Text(); kind == "directory" {
		e.Name += "/" // marks a directory
		return e
	}
	e.Size, _ = item.Get("size").Int()
	if sha, ok := item.Get("lfs").Get("oid").Text(); ok {
		e.Version = "sha256 " + sha
	} else if oid, _ := item.Get("oid").Text(); oid != "" {
		e.Version = "git " + oid
	}
	return e
}

// Open implements blob.Opener.
func (op *Opener) Open(ctx context.Context, e blob.Entry) (blob.Blob, error) {
	p, err := placeOf(e.Name)
	if err == nil && e.Version == "" {
		e, err = op.Stat(ctx, e.Name)
	}
	if err == nil && e.Version == "" {
		err = status.Errorf(status.Unsupported, "arrowio", "%s: this is a directory", e.Name).WithHint("name a file").With("path", e.Name)
	}
	if err != nil {
		return nil, err
	}
	sha, err := op.commit(ctx, p)
	if err != nil {
		return nil, err
	}
	parts := append(split(p.dataset), "resolve", sha)
	if p.kind == "datasets" {
		parts = append([]string{p.kind}, parts...)
	}
	b, err := op.web.OpenPinned(ctx, e, op.address(append(parts, split(p.path)...)...), e.Version)
	if err == nil && b.Size() != e.Size {
		_ = b.Close()
		return nil, damaged(e.Name, fmt.Sprintf("the file has %d bytes, and the listing says %d", b.Size(), e.Size))
	}
	return b, err
}
