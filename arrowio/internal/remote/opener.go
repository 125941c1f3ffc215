package remote

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
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

	// Authorize completes each attempt, such as by a token or a signature. The request has all its other
	// headers, and goes to the scheme and the host of the object: a redirect to another host gets nothing. An
	// error ends the read. At first, it adds the users and the passwords of Admit.
	Authorize func(ctx context.Context, r *http.Request) error

	// Explain says why a server refuses a request, from the answer and the first 64 KiB of its body. The
	// result nil leaves that to the engine, and so does no function. It may get a redirect, and runs
	// in several goroutines.
	Explain func(r *http.Response, body []byte) *Refusal

	// Stored says that Content-Encoding is a note about the stored bytes, which the server does not change.
	Stored bool

	mu      sync.Mutex
	secrets map[string]string // by scheme and host: the Authorization of requests
	queries map[string]string // by name
	counts  counts
}

// counts are the totals of an opener.
type counts struct{ requests, retries, planned, bytes atomic.Int64 }

// Counts says what was read: requests with their retries, the bytes that reads asked for, and the bytes that
// came.
type Counts struct{ Requests, Retries, Planned, Bytes int64 }

// Refusal is why a server refuses a request. What and Hint have no secrets.
type Refusal struct {
	Code       status.Code
	What, Hint string

	// Again says that Explain has renewed what Authorize uses. The request is sent once more.
	Again bool
}

// NewOpener returns an opener whose requests an engine sends.
func NewOpener(e *Engine) *Opener {
	op := &Opener{engine: e, secrets: map[string]string{}, queries: map[string]string{}}
	op.Authorize = op.login
	return op
}

// Transport sends requests that read no objects, such as requests for credentials. It has the proxies and the authorities
// of the engine, and none of the bounds.
func (op *Opener) Transport() http.RoundTripper { return op.engine.transport }

// Counts returns what was read through the opener so far.
func (op *Opener) Counts() Counts {
	c := &op.counts
	return Counts{c.requests.Load(), c.retries.Load(), c.planned.Load(), c.bytes.Load()}
}

// Admit notes the user, the password and the query of an address, which its name leaves out. The user
// and the password serve all names of the same host.
func (op *Opener) Admit(name, address string) error {
	at, err := parse(name, address)
	if err != nil {
		return err
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	if user := at.User; user != nil {
		password, _ := user.Password()
		secret := "Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password))
		if known := op.secrets[origin(at)]; known != "" && known != secret {
			return invalid(name, "two addresses of this host have different users or passwords", "open them apart, and join the datasets")
		}
		op.secrets[origin(at)] = secret
	}
	if known, ok := op.queries[name]; ok && known != at.RawQuery {
		return invalid(name, "two addresses differ only after the ?, so their names are equal", "open them apart, and join the datasets")
	}
	op.queries[name] = at.RawQuery
	return nil
}

// login adds the user and the password of an address.
func (op *Opener) login(_ context.Context, r *http.Request) error {
	if secret := op.secret(r.URL); secret != "" {
		r.Header.Set("Authorization", secret)
	}
	return nil
}

func (op *Opener) secret(at *url.URL) string {
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.secrets[origin(at)]
}

// parse parses an address. Errors have the name, which has no secrets.
func parse(name, address string) (*url.URL, error) {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return nil, invalid(name, "this is not a URL", "write it as in https://host/train.parquet, with %20 for a space")
	}
	return at, nil
}

func origin(at *url.URL) string { return at.Scheme + "://" + at.Host }

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
func (op *Opener) Hints() blob.Hints { return blob.Far }

// Open implements blob.Opener.
func (op *Opener) Open(ctx context.Context, e blob.Entry) (blob.Blob, error) {
	at, err := parse(e.Name, e.Name)
	if err != nil {
		return nil, err
	}
	op.mu.Lock()
	at.RawQuery = op.queries[e.Name]
	op.mu.Unlock()
	return op.open(ctx, &Object{opener: op, name: e.Name, at: *at})
}

// OpenPinned opens an address that has one content for ever, as a stamp says, under the name of an entry. Its
// size is compared, and no version of a server.
func (op *Opener) OpenPinned(ctx context.Context, e blob.Entry, address *url.URL, stamp string) (blob.Blob, error) {
	return op.open(ctx, &Object{opener: op, name: e.Name, at: *address, pinned: stamp})
}

// OpenVersion opens an address under the name of an entry of a listing. The object must have the version of the entry,
// such as `ETag "a"` or "generation 1", and its size. An entry without a version stands for any.
func (op *Opener) OpenVersion(ctx context.Context, e blob.Entry, address *url.URL) (blob.Blob, error) {
	o := &Object{opener: op, name: e.Name, at: *address, version: parseVersion(e.Version)}
	if o.version.known() && e.Size == 0 {
		op.engine.opened(1)
		return o, nil // stores refuse all ranges of an empty object
	}
	b, err := op.open(ctx, o)
	if err == nil && e.Version != "" && o.size != e.Size {
		_ = b.Close()
		return nil, o.errorf(status.DataLoss, "the file has %d bytes, and the listing says %d", o.size, e.Size).WithHint("open the dataset again")
	}
	return b, err
}

func (op *Opener) open(ctx context.Context, o *Object) (blob.Blob, error) {
	op.engine.opened(1)
	if err := o.open(ctx); err != nil {
		op.engine.opened(-1)
		if ctx.Err() != nil {
			return nil, blob.ReadError(o.name, ctx.Err())
		}
		return nil, err
	}
	return o, nil
}

// maxBody bounds a document that is not a file of data, such as a page of a listing.
const maxBody = 64 << 20

// Get returns a document, and the headers that came with it. Name is what errors call it.
func (op *Opener) Get(ctx context.Context, name string, address *url.URL) (text []byte, header http.Header, err error) {
	o := &Object{opener: op, name: name, at: *address}
	op.engine.opened(1)
	defer op.engine.opened(-1)
	for tries := (attempts{}); ; op.counts.retries.Add(1) {
		err := o.exchange(ctx, http.Header{}, func(r *http.Response, body io.Reader) (err error) {
			if header = r.Header; r.StatusCode != http.StatusOK {
				return o.final(status.IO, "report it", "the server answers %s", r.Status)
			}
			if text, err = io.ReadAll(io.LimitReader(body, maxBody+1)); err != nil {
				return o.passing("the answer ended early: %w", err)
			}
			if len(text) > maxBody {
				return o.final(status.ResourceExhausted, "name a smaller directory", "the answer has more than %d bytes", maxBody)
			}
			op.counts.planned.Add(int64(len(text)))
			return nil
		})
		if err == nil {
			return text, header, nil
		}
		if err := tries.again(ctx, err); err != nil {
			return nil, nil, err
		}
	}
}
