package remote

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/core/status"
)

// Opener opens URLs of web servers, which have no listings. It implements blob.Opener.
type Opener struct {
	blob.Slashes
	engine *Engine

	mu      sync.Mutex
	users   map[string]*url.Userinfo // by scheme and host
	queries map[string]string        // by name
	counts  counts
}

// counts are the totals of an opener.
type counts struct{ requests, retries, planned, bytes atomic.Int64 }

// Counts says what was read: requests with their retries, the bytes that reads asked for, and the bytes that
// came.
type Counts struct{ Requests, Retries, Planned, Bytes int64 }

// NewOpener returns an opener whose requests an engine sends.
func NewOpener(e *Engine) *Opener {
	return &Opener{engine: e, users: map[string]*url.Userinfo{}, queries: map[string]string{}}
}

// Counts returns what was read through the opener so far.
func (op *Opener) Counts() Counts {
	c := &op.counts
	return Counts{c.requests.Load(), c.retries.Load(), c.planned.Load(), c.bytes.Load()}
}

// Admit notes the user, the password and the query of an address, which its name leaves out. The user
// and the password serve all names of the same host.
func (op *Opener) Admit(name, address string) error {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return invalid(name, "this is not a URL", "write it as in https://host/train.parquet, with %20 for a space")
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	origin := strings.ToLower(at.Scheme) + "://" + at.Host
	if known, ok := op.users[origin]; at.User != nil && ok && known.String() != at.User.String() {
		return invalid(name, "two addresses of this host have different users or passwords", "open them apart, and join the datasets")
	} else if at.User != nil {
		op.users[origin] = at.User
	}
	if known, ok := op.queries[name]; ok && known != at.RawQuery {
		return invalid(name, "two addresses differ only after the ?, so their names are equal", "open them apart, and join the datasets")
	}
	op.queries[name] = at.RawQuery
	return nil
}

func invalid(name, what, hint string) error {
	return status.Errorf(status.InvalidArgument, "arrowio", "%s: %s", name, what).WithHint("%s", hint).With("path", name)
}

// Stat implements blob.Opener. It sends no request: opening the file tells whether it exists.
func (op *Opener) Stat(ctx context.Context, name string) (blob.Entry, error) {
	_, rest, _ := strings.Cut(name, "://")
	_, path, _ := strings.Cut(rest, "/")
	switch {
	case ctx.Err() != nil:
		return blob.Entry{}, ctx.Err()
	case path == "" || strings.HasSuffix(path, "/") || strings.ContainsAny(path, "*["):
		return blob.Entry{}, unlisted(name)
	case strings.Contains(name, "{") && strings.Contains(name, ".."):
		return blob.Entry{}, status.Errorf(status.NotFound, "arrowio", "%s: this stands for several files", name).With("path", name)
	}
	return blob.Entry{Name: name}, nil
}

// unlisted returns the error for a name that only a listing could resolve.
func unlisted(name string) error {
	return status.Errorf(status.Unsupported, "arrowio", "%s: a web server does not list its files", name).
		WithHint("name each file in a list, or by a range such as https://host/train-{000..127}.parquet").With("path", name)
}

// List implements blob.Opener.
func (op *Opener) List(_ context.Context, dir string) ([]blob.Entry, error) {
	return nil, unlisted(dir)
}

// Glob implements blob.Opener.
func (op *Opener) Glob(_ context.Context, pattern string) ([]blob.Entry, error) {
	return nil, unlisted(pattern)
}

// Hints implements blob.Opener.
func (op *Opener) Hints() blob.Hints { return hints }

// Open implements blob.Opener.
func (op *Opener) Open(ctx context.Context, e blob.Entry) (blob.Blob, error) {
	at, err := url.Parse(e.Name)
	if err != nil || at.Host == "" {
		return nil, invalid(e.Name, "this is not a URL", "write it as in https://host/train.parquet, with %20 for a space")
	}
	op.mu.Lock()
	at.User, at.RawQuery = op.users[at.Scheme+"://"+at.Host], op.queries[e.Name]
	op.mu.Unlock()
	o := &Object{opener: op, name: e.Name, at: *at}
	op.engine.opened(1)
	if err := o.open(ctx); err != nil {
		op.engine.opened(-1)
		if ctx.Err() != nil {
			return nil, blob.ReadError(e.Name, ctx.Err())
		}
		return nil, err
	}
	return o, nil
}
