package remote

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/core/status"
)

// endBytes is how much of the end of an object is read when it is opened. Footers are there.
const endBytes = 64 << 10

// Object is an open object of a server. It implements blob.Versioned and blob.Stamped.
type Object struct {
	opener *Opener
	name   string  // for errors
	at     url.URL // with the user and the query
	size   int64
	pinned string // the stamp of a content that never changes; "" for the version of the server
	version
	target  atomic.Pointer[url.URL]      // where a redirect led to; nil for at
	verdict atomic.Pointer[status.Error] // that the object has changed; nil as long as that is not known

	mu   sync.Mutex
	tail []byte // the last bytes, until the first read
}

// open asks for the last bytes of the object. If the server takes no such range, it asks again for a range
// from a byte on.
func (o *Object) open(ctx context.Context) error {
	header := http.Header{"Range": {fmt.Sprintf("bytes=-%d", endBytes)}}
	o.version.require(header)
	for tries := (attempts{}); ; {
		ignored, differs := false, false
		err := o.exchange(ctx, header, func(r *http.Response, body io.Reader) (err error) {
			if differs = r.StatusCode == http.StatusPreconditionFailed; !differs {
				ignored, err = o.begin(r, body, header.Get("Range"))
			}
			return err
		})
		if err == nil && differs {
			err = o.explain(ctx)
		}
		switch {
		case err != nil:
			if err := tries.again(ctx, err); err != nil {
				return err
			}
			o.opener.counts.retries.Add(1)
		case ignored && o.size > 0:
			header = http.Header{"Range": {rangeOf(max(o.size-endBytes, 0), o.size)}}
			o.version.require(header)
		default:
			return nil
		}
	}
}

// begin takes the size, the version and the last bytes from the first answer. Ignored reports that the server
// has ignored a range that counts from the end.
func (o *Object) begin(r *http.Response, body io.Reader, asked string) (ignored bool, err error) {
	s, ok := spanOf(r.Header)
	first := o.size == 0 // or else the range was ignored before
	now := o.versionOf(r.Header)
	switch {
	case o.pinned == "" && (r.StatusCode == http.StatusOK || ok) && !o.version.equal(now):
		return false, o.changed(o.version.text(), now.text())
	case strings.HasSuffix(r.Header.Get("Content-Range"), "/0"):
		return false, nil // no range of an empty file is right
	case r.StatusCode == http.StatusOK && first && r.ContentLength >= 0:
		o.size, o.version = r.ContentLength, now
		if o.pinned != "" {
			o.version = version{}
		}
		return true, nil
	case r.StatusCode == http.StatusOK:
		return false, o.unranged()
	case r.StatusCode != http.StatusPartialContent:
		return false, o.final(status.IO, "open the address in another program to see what the server expects", "the server answers %s", r.Status)
	case !ok || s.end != s.size || s.end-s.first != min(s.size, endBytes) || !first && s.size != o.size:
		return false, o.misplaced(asked, r.Header.Get("Content-Range"))
	}
	if o.size = s.size; o.pinned == "" {
		o.version = now
	}
	if !o.version.known() && o.pinned == "" {
		return false, o.final(status.Unsupported, "let the server send one of them, or download the file",
			"the server sends neither an ETag nor a Last-Modified, so a change of the file would not be noticed")
	}
	tail := make([]byte, s.end-s.first)
	if _, err := io.ReadFull(body, tail); err != nil {
		return false, o.passing("the answer ended early: %w", err)
	}
	o.tail = tail
	o.opener.counts.planned.Add(int64(len(tail)))
	return false, nil
}

func (o *Object) unranged() error {
	return o.final(status.Unsupported, "download the file, or serve it with a server that answers ranges, such as nginx or an object store",
		"the server ignores ranges: it answers 200 OK with the whole file")
}

// Name implements blob.Blob.
func (o *Object) Name() string { return o.name }

// Size implements blob.Blob.
func (o *Object) Size() int64 { return o.size }

// Identity implements blob.Blob.
func (o *Object) Identity() string { return o.Version() }

// Version implements blob.Versioned. It has the query, because that may choose the content.
func (o *Object) Version() string {
	query := ""
	if o.at.RawQuery != "" {
		query = fmt.Sprintf("?%x", sha256.Sum256([]byte(o.at.RawQuery)))
	}
	return fmt.Sprintf("%s%s %s", o.name, query, o.Stamp())
}

// Stamp implements blob.Stamped.
func (o *Object) Stamp() string {
	if o.pinned != "" {
		return o.pinned
	}
	return fmt.Sprintf("%d bytes, %s", o.size, o.version.stamp())
}

// Check implements blob.Blob. It sends no request: each read is a check.
func (o *Object) Check() error {
	if changed := o.verdict.Load(); changed != nil {
		return changed
	}
	return nil
}

// Close implements blob.Blob.
func (o *Object) Close() error {
	o.opener.engine.opened(-1)
	return nil
}

// ReadAt implements blob.Blob. It divides long reads into requests that run side by side.
func (o *Object) ReadAt(ctx context.Context, p []byte, offset int64) (n int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if offset < 0 {
		return 0, o.errorf(status.InvalidArgument, "a read from byte %d on", offset)
	}
	want := p[:max(min(int64(len(p)), o.size-offset), 0)]
	if !o.fromTail(want, offset) {
		o.opener.counts.planned.Add(int64(len(want)))
		pieces := max((len(want)+int(blob.Far.Size)-1)/int(blob.Far.Size), 1)
		each := max((len(want)+pieces-1)/pieces, 1) // about equal sizes end at about the same time
		err = blob.Far.ReadPieces(ctx, want, offset, each, o.read)
	}
	switch {
	case err != nil:
		return 0, err
	case len(want) < len(p):
		return len(want), io.EOF
	}
	return len(want), nil
}

// fromTail takes bytes from the tail. It serves the first read only, because that is of the end of the file.
func (o *Object) fromTail(p []byte, offset int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	begin := offset - (o.size - int64(len(o.tail)))
	found := begin >= 0 && len(p) > 0 && len(o.tail) > 0
	if found {
		copy(p, o.tail[begin:])
	}
	o.tail = nil
	return found
}

// read reads bytes by as many attempts as are needed. Each begins at the byte that the last one reached.
func (o *Object) read(ctx context.Context, p []byte, offset int64) error {
	for tries, n := (attempts{}), 0; n < len(p); {
		got, err := o.attempt(ctx, p[n:], offset+int64(n))
		if n += got; got > 0 {
			tries.progress()
		}
		if err != nil {
			if err := tries.again(ctx, err); err != nil {
				return err
			}
			o.opener.counts.retries.Add(1)
		}
	}
	return nil
}

// attempt reads some first bytes of p.
func (o *Object) attempt(ctx context.Context, p []byte, offset int64) (n int, err error) {
	header := http.Header{"Range": {rangeOf(offset, offset+int64(len(p)))}}
	o.version.require(header)
	differs := false
	err = o.exchange(ctx, header, func(r *http.Response, body io.Reader) error {
		now := o.versionOf(r.Header)
		switch s, ok := spanOf(r.Header); {
		case r.StatusCode == http.StatusPreconditionFailed, r.StatusCode == http.StatusRequestedRangeNotSatisfiable:
			differs = true
			return nil
		case !o.version.equal(now):
			return o.changed(o.version.text(), now.text())
		case r.StatusCode == http.StatusOK:
			return o.unranged()
		case !ok || s.first != offset || s.end > offset+int64(len(p)):
			return o.misplaced(header.Get("Range"), r.Header.Get("Content-Range"))
		case s.size != o.size:
			return o.changed(fmt.Sprintf("%d bytes", o.size), fmt.Sprintf("%d", s.size))
		default:
			n, err = io.ReadFull(body, p[:s.end-offset])
			if err != nil {
				return o.passing("the answer ended early: %w", err)
			}
			return nil
		}
	})
	if err == nil && differs {
		err = o.explain(ctx)
	}
	return n, err
}

// explain returns how the object differs from what it was, after the server has refused a condition.
func (o *Object) explain(ctx context.Context) error {
	err := o.exchange(ctx, http.Header{"Range": {"bytes=0-0"}}, func(r *http.Response, _ io.Reader) error {
		now := o.versionOf(r.Header)
		if s, ok := spanOf(r.Header); ok && s.size != o.size && o.version.equal(now) {
			return o.changed(fmt.Sprintf("%d bytes", o.size), fmt.Sprintf("%d", s.size))
		}
		if !o.version.equal(now) {
			return o.changed(o.version.text(), now.text())
		}
		return o.changed(o.version.text(), "another version by the word of the server (412 Precondition Failed)")
	})
	return err
}
