// Package bucket reads objects of stores with buckets, by names such as s3://BUCKET/train/0.parquet and
// gs://BUCKET/train/0.parquet. Stores that speak the protocol of S3 are reached by their endpoint.
//
// A name stands for a key: everything after the bucket, with any characters. Directories are the parts of
// keys before a slash. Searches list keys by pages of up to 1,000 (listing.go): one listing for a glob, one for
// a directory, one for all partitions in a directory, and one page for many names side by side.
//
// A listing has the version of each object: its ETag in S3 (s3.go), its generation in Google Cloud Storage
// (google.go). An object that is opened must have the version of the listing, as must every later read.
// Stores explain why they refuse a request in XML (refusal.go).
package bucket

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/remote"
	"github.com/meshfeed/meshfeed/core/status"
)

// Opener opens objects of a kind of store. It implements blob.Opener.
type Opener struct {
	blob.Slashes
	web   *remote.Opener
	store store

	mu       sync.Mutex
	page     page              // of the last Stat
	unlisted map[string]bool   // the names of buckets that deny listings
	listed   map[string]bool   // the prefixes of directories that were listed
	below    map[string]*below // by prefix: all names that begin with it
}

// store is how a kind of store is asked.
type store interface {
	// address returns the address of a bucket, which ends in a slash. It changes if the store says that the
	// bucket is elsewhere.
	address(bucket string) *url.URL

	// place is different after the store has said where a bucket is.
	place(bucket string) string

	// version returns the version of an entry of a listing.
	version(c content) string

	source() string // of the credentials

	authorize(ctx context.Context, r *http.Request) error
	explain(r *http.Response, f failure) *remote.Refusal
}

func newOpener(web *remote.Opener, s store) *Opener {
	web.Authorize = s.authorize
	web.Explain = func(r *http.Response, body []byte) *remote.Refusal { return explain(s, r, body) }
	return &Opener{web: web, store: s, unlisted: map[string]bool{}, listed: map[string]bool{}, below: map[string]*below{}}
}

// Counts returns what was read through the opener so far.
func (op *Opener) Counts() remote.Counts { return op.web.Counts() }

// Source returns where the credentials come from, once a request has needed them.
func (op *Opener) Source() string { return op.store.source() }

// Hints implements blob.Opener.
func (op *Opener) Hints() blob.Hints { return op.web.Hints() }

// names matches the names of keys, in groups for the bucket and the key.
var names = regexp.MustCompile(`(?s)^([a-z0-9]+://)([A-Za-z0-9][A-Za-z0-9._-]{1,221})(?:/(.*))?$`)

// split returns the name of a bucket, with a slash at its end, the bucket, and the key of a name.
func split(name string) (root, bucket, key string, err error) {
	m := names.FindStringSubmatch(name)
	if m == nil {
		return "", "", "", nameless(name)
	}
	return m[1] + m[2] + "/", m[2], m[3], nil
}

// nameless returns the error for a name without a bucket. It leaves out what looks like a key and a secret.
func nameless(name string) error {
	scheme, rest, _ := strings.Cut(name, "://")
	name = scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:] // a secret may have slashes
	return status.Errorf(status.Unsupported, "arrowio", "%s: this does not name a bucket", name).
		WithHint("write %s://BUCKET/KEY, as in %s://bucket/train/*.parquet, without credentials", scheme, scheme).With("path", name)
}

// inside returns the beginning of all names in a directory.
func inside(dir string) string { return strings.TrimSuffix(dir, "/") + "/" }

// escape escapes all bytes of a key as signatures of S3 need it.
func escape(key string) string {
	const digits = "0123456789ABCDEF"
	out := make([]byte, 0, len(key))
	for i := range len(key) {
		switch c := key[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~/", c) >= 0:
			out = append(out, c)
		default:
			out = append(out, '%', digits[c>>4], digits[c&15])
		}
	}
	return string(out)
}

// join returns the address of a key in a bucket.
func join(bucket *url.URL, key string) *url.URL {
	at := *bucket
	at.RawPath = at.EscapedPath() + escape(key)
	at.Path += key
	return &at
}

// located calls a function with the address of a bucket, and once more if the store then says that the
// bucket is elsewhere.
func (op *Opener) located(bucket string, try func(at *url.URL) error) error {
	before := op.store.place(bucket)
	err := try(op.store.address(bucket))
	if err != nil && op.store.place(bucket) != before {
		err = try(op.store.address(bucket))
	}
	return err
}

// Open implements blob.Opener.
func (op *Opener) Open(ctx context.Context, e blob.Entry) (b blob.Blob, err error) {
	if e.Version == "" {
		e, err = op.Stat(ctx, e.Name)
	}
	if err == nil && e.Dir {
		err = status.Errorf(status.Unsupported, "arrowio", "%s: this is a directory", e.Name).WithHint("name a file").With("path", e.Name)
	}
	if err != nil {
		return nil, err
	}
	_, bucket, key, err := split(e.Name)
	if err != nil {
		return nil, err
	}
	err = op.located(bucket, func(at *url.URL) error {
		b, err = op.web.OpenVersion(ctx, e, join(at, key))
		return err
	})
	return b, err
}
