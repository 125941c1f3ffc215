// Package far is a web server for tests of data far away. It has the faults of real servers: each is
// drawn from a seed, or is a property of the server. It counts requests and bytes.
package far

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Fault is what may happen to a request.
type Fault string

// The faults that pass.
const (
	Busy    Fault = "503"     // Service Unavailable, with Retry-After
	Limited Fault = "429"     // Too Many Requests
	Broken  Fault = "500"     // Internal Server Error
	Cut     Fault = "cut"     // the connection ends in the middle of the answer
	Stall   Fault = "stall"   // the answer stops in its middle
	Silent  Fault = "silence" // no answer comes
)

// Pause is a fault after which the answer goes on: it stops in its middle for 2 s.
const Pause Fault = "pause"

// Expired is the fault of a signature that is too old: 403 Forbidden.
const Expired Fault = "403"

// Passing has all faults after which a request can be repeated.
var Passing = []Fault{Busy, Limited, Broken, Cut, Stall, Silent}

// Server serves files by their paths. Change its fields between requests only.
type Server struct {
	Files   map[string][]byte
	Latency time.Duration // before each answer
	Rate    int64         // the most bytes a second of an answer, and so of a connection; 0 for no limit

	After  string  // Retry-After of busy answers; "" for "1"
	Share  float64 // of the requests that meet a fault
	Faults []Fault
	Seed   uint64

	NoBytes bool // answers are cut or stopped before their first byte

	Whole      bool              // ranges are ignored
	Suffixless bool              // ranges from the end are ignored
	Shifted    bool              // the answer has other bytes
	Weak       bool              // ETags are weak
	Untagged   bool              // there are no ETags
	Undated    bool              // there is no Last-Modified
	Careless   bool              // If-Match is ignored
	Packed     bool              // Content-Encoding: gzip
	User       string            // "user:password" that is needed
	Redirects  map[string]string // by path: where the server redirects to
	Refused    int               // requests that are answered by this code, if it is not 0

	// Front answers requests instead of the server, if it returns true. It may set headers of other answers.
	Front func(w http.ResponseWriter, r *http.Request) bool

	mu       sync.Mutex
	now      int
	versions map[string]int
	count    Count
	seen     []*http.Request
}

// Count counts requests.
type Count struct {
	Requests, AtOnce int
	Bytes            int64 // of the bodies
}

// Put changes a file, which gets another ETag and another date.
func (s *Server) Put(path string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.versions == nil {
		s.versions = map[string]int{}
	}
	s.Files[path] = data
	s.versions[path]++
}

// file returns a file.
func (s *Server) file(path string) (data []byte, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, found = s.Files[path]
	return data, found
}

// files returns all files.
func (s *Server) files() map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.Files)
}

// version returns how often a file was changed.
func (s *Server) version(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.versions[path]
}

// tag returns the ETag of a file.
func (s *Server) tag(path string) string {
	data, _ := s.file(path)
	return fmt.Sprintf(`"%d-%d"`, len(data), s.version(path))
}

// Take returns the counts since its last call.
func (s *Server) Take() Count {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := s.count
	s.count = Count{}
	return count
}

// Seen returns all requests since the last call.
func (s *Server) Seen() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

// draw returns the fault of the next request, or "".
func (s *Server) draw(r *http.Request) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, r)
	s.count.Requests++
	s.now++
	s.count.AtOnce = max(s.count.AtOnce, s.now)
	if s.Share == 0 {
		return ""
	}
	// The number of the request is part of it: a repeated request meets another fault or none.
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %s %d", s.Seed, r.URL.Path, r.Header.Get("Range"), len(s.seen))
	drawn := binary.BigEndian.Uint64(h.Sum(nil))
	if drawn *= 0x9e3779b97f4a7c15; float64(drawn>>32) >= s.Share*(1<<32) {
		return ""
	}
	return s.Faults[drawn%uint64(len(s.Faults))]
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault := s.draw(r)
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now--
	}()
	if !wait(r.Context(), s.Latency) {
		return
	}
	switch fault {
	case Busy:
		w.Header().Set("Retry-After", cmp.Or(s.After, "1"))
		http.Error(w, "busy", http.StatusServiceUnavailable)
	case Limited:
		http.Error(w, "too many", http.StatusTooManyRequests)
	case Broken:
		http.Error(w, "broken", http.StatusInternalServerError)
	case Expired:
		http.Error(w, "expired", http.StatusForbidden)
	case Silent:
		<-r.Context().Done()
	default:
		s.serve(w, r, fault)
	}
}

func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, fault Fault) {
	if s.Front != nil && s.Front(&writer{ResponseWriter: w, server: s, fault: fault, left: 200, ended: r.Context()}, r) {
		return
	}
	data, found := s.file(r.URL.Path)
	version := s.version(r.URL.Path)
	user, password, _ := r.BasicAuth()
	to := s.Redirects[r.URL.Path]
	switch {
	case s.Refused != 0:
		http.Error(w, "refused", s.Refused)
		return
	case s.User != "" && user+":"+password != s.User:
		http.Error(w, "unknown user", http.StatusUnauthorized)
		return
	case to != "":
		http.Redirect(w, r, to, http.StatusFound)
		return
	case !found:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if tag := s.tag(r.URL.Path); s.Weak {
		w.Header().Set("ETag", "W/"+tag)
	} else if !s.Untagged {
		w.Header().Set("ETag", tag)
	}
	modified := time.Date(2026, 1, 2, 3, 4, version, 0, time.UTC)
	if s.Undated {
		modified = time.Time{}
	}
	if s.Careless {
		r.Header.Del("If-Match")
		r.Header.Del("If-Unmodified-Since")
	}
	if s.Packed {
		w.Header().Set("Content-Encoding", "gzip")
	}
	if s.Whole || s.Suffixless && strings.HasPrefix(r.Header.Get("Range"), "bytes=-") {
		r.Header.Del("Range")
	}
	if s.Shifted && !strings.HasPrefix(r.Header.Get("Range"), "bytes=-") {
		r.Header.Set("Range", "bytes=1-2")
	}
	out := &writer{ResponseWriter: w, server: s, fault: fault, ended: r.Context(), began: time.Now()}
	if (fault == Cut || fault == Stall || fault == Pause) && !s.NoBytes {
		out.left = len(data) / 8
	}
	http.ServeContent(out, r, "", modified, bytes.NewReader(data))
}

// writer counts bytes, and ends or stops an answer in its middle.
type writer struct {
	http.ResponseWriter
	server *Server
	fault  Fault
	left   int
	ended  context.Context
	began  time.Time
	sent   int64
}

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (n int, err error) {
	if w.fault == Pause && len(p) > w.left {
		w.fault = ""
		wait(w.ended, 2*time.Second)
	}
	failing := (w.fault == Cut || w.fault == Stall) && len(p) > w.left
	if failing {
		p = p[:w.left]
	}
	w.server.mu.Lock()
	w.server.count.Bytes += int64(len(p))
	w.server.mu.Unlock()
	n, err = w.ResponseWriter.Write(p)
	w.left -= n
	if w.sent += int64(n); w.server.Rate > 0 {
		wait(w.ended, time.Until(w.began.Add(time.Duration(float64(w.sent)/float64(w.server.Rate)*float64(time.Second)))))
	}
	if !failing {
		return n, err
	}
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
	if w.fault == Stall {
		<-w.ended.Done()
	}
	panic(http.ErrAbortHandler)
}

// Pipes are connections within a process, for bubbles of package testing/synctest.
type Pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

// Serve serves a handler until stop is called. Dial opens a connection to it, whatever the address.
func Serve(h http.Handler) (dial func(ctx context.Context, network, address string) (net.Conn, error), stop func()) {
	p := &Pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(p)
	}()
	return p.dial, func() { _ = server.Close(); <-done }
}

func (p *Pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.accepted <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *Pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (p *Pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }
