package remote

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
)

// version is what a server says about the content of an object: its ETag, or else the time of its
// last modification, which has seconds. The generation of Google Cloud Storage counts before both, if the object
// was opened by it.
type version struct{ generation, etag, modified string }

// versionOf returns the version in an answer.
func (o *Object) versionOf(h http.Header) version {
	v := version{etag: h.Get("ETag"), modified: h.Get("Last-Modified")}
	if o.version.generation != "" {
		v.generation = h.Get("X-Goog-Generation")
	}
	return v
}

// parseVersion returns the version of a text, or none.
func parseVersion(text string) (v version) {
	if etag, ok := strings.CutPrefix(text, "ETag "); ok {
		v.etag = etag
	}
	if generation, ok := strings.CutPrefix(text, "generation "); ok {
		v.generation = generation
	}
	return v
}

// text describes the version.
func (v version) text() string {
	if v.generation != "" {
		return "generation " + v.generation
	}
	return v.stamp()
}

// stamp describes the version without the generation, which is different for copies.
func (v version) stamp() string {
	if v.etag != "" {
		return "ETag " + v.etag
	}
	return "Last-Modified " + v.modified
}

// known reports whether the server has said something.
func (v version) known() bool { return v.generation != "" || v.etag != "" || v.modified != "" }

// require makes a request fail if the content has changed. A weak ETag never matches as a condition,
// so it is only compared with the ETag of the answer.
func (v version) require(h http.Header) {
	switch {
	case v.generation != "":
		h.Set("X-Goog-If-Generation-Match", v.generation)
	case v.etag != "" && !strings.HasPrefix(v.etag, "W/"):
		h.Set("If-Match", v.etag)
	case v.modified != "":
		h.Set("If-Unmodified-Since", v.modified)
	}
}

// equal reports whether an answer has this version. An answer may leave out what it said before.
func (v version) equal(now version) bool {
	if v.generation != "" {
		return v.generation == now.generation
	}
	if v.etag != "" && now.etag != "" {
		return v.etag == now.etag
	}
	return !v.known() || now.modified == "" || now.modified == v.modified
}

// span is what Content-Range says: the bytes from first to end-1 of size bytes.
type span struct{ first, end, size int64 }

// spanOf parses Content-Range.
func spanOf(h http.Header) (s span, ok bool) {
	text, ok := strings.CutPrefix(h.Get("Content-Range"), "bytes ")
	part, size, found := strings.Cut(text, "/")
	if s.size = number(size); !ok || !found || s.size < 0 {
		return s, false
	}
	first, last, _ := strings.Cut(part, "-")
	s.first, s.end = number(first), number(last)+1
	return s, s.first >= 0 && s.end > s.first && s.end <= s.size
}

// number parses digits. It returns -1 for other text.
func number(text string) int64 {
	n, err := strconv.ParseUint(text, 10, 62)
	if err != nil {
		return -1
	}
	return int64(n)
}

// changed returns the fault of an object with another version than at its opening.
func (o *Object) changed(was, is string) error {
	f := o.final(status.DataLoss, "do not replace files while they are read; open the dataset again to read what the file holds now",
		"the file has changed since it was opened: it had %s, and has %s", was, is)
	o.verdict.CompareAndSwap(nil, f.error)
	return f
}

// misplaced returns the fault of an answer with other bytes than were asked for.
func (o *Object) misplaced(asked, got string) error {
	return o.final(status.DataLoss, "download the file; the server, or a proxy on the way, mixes up ranges",
		"the server sent other bytes than were asked for: %q for %q", got, asked)
}

// rangeOf returns the Range of the bytes from first to end-1.
func rangeOf(first, end int64) string { return fmt.Sprintf("bytes=%d-%d", first, end-1) }
