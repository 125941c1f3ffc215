package remote_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/arrowio/internal/remote"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/far"
)

// name is the address of the file of most tests.
const name = "http://host/x.bin"

// content returns bytes of a file.
func content(n int) []byte {
	data, r := make([]byte, n), rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

// served runs a test with an opener of a server in a bubble, in which time passes at once. All
// goroutines must have ended after it.
func served(t *testing.T, s *far.Server, run func(t *testing.T, op *remote.Opener)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		dial, stop := far.Serve(s)
		defer stop()
		run(t, remote.NewOpener(remote.New(dial)))
	})
}

// open opens the file.
func open(t *testing.T, op *remote.Opener) blob.Blob {
	t.Helper()
	b, err := op.Open(context.Background(), blob.Entry{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestOneRequestOpens: one request has the size, the version and the last bytes. The tail serves the
// footer, and no byte comes twice.
func TestOneRequestOpens(t *testing.T) {
	data := content(200_000)
	s := &far.Server{Files: map[string][]byte{"/x.bin": data}}
	served(t, s, func(t *testing.T, op *remote.Opener) {
		b := open(t, op)
		defer b.Close()
		tail, front := make([]byte, 64<<10), make([]byte, 100_000)
		for _, read := range []struct {
			p  []byte
			at int64
		}{{tail, 200_000 - 64<<10}} {
			if n, err := b.ReadAt(t.Context(), read.p, read.at); n != len(read.p) || err != nil || !bytes.Equal(read.p, data[read.at:][:n]) {
				t.Errorf("%d bytes at %d: %v", n, read.at, err)
			}
		}
		if count := s.Take(); count.Requests != 1 || count.Bytes != 64<<10 || b.Size() != int64(len(data)) || b.Name() != name {
			t.Errorf("%s has %d bytes, after %+v", b.Name(), b.Size(), count)
		}
		if n, err := b.ReadAt(t.Context(), front, 150_000); n != 50_000 || err != io.EOF || !bytes.Equal(front[:n], data[150_000:]) {
			t.Errorf("beyond the end: %d bytes, %v", n, err)
		}
		if count := s.Take(); count.Requests != 1 || count.Bytes != 50_000 {
			t.Errorf("%+v", count)
		}
		if c := op.Counts(); c != (remote.Counts{Requests: 2, Planned: 50_000 + 64<<10, Bytes: 50_000 + 64<<10}) {
			t.Errorf("%+v", c)
		}
	})
}

// TestLongReadsRunSideBySide: requests have up to 8 MiB, 16 at once.
func TestLongReadsRunSideBySide(t *testing.T) {
	data := make([]byte, 150<<20)
	s := &far.Server{Files: map[string][]byte{"/x.bin": data}, Latency: time.Second}
	served(t, s, func(t *testing.T, op *remote.Opener) {
		b := open(t, op)
		defer b.Close()
		s.Take()
		p := make([]byte, len(data))
		if _, err := b.ReadAt(t.Context(), p, 0); err != nil || !bytes.Equal(p, data) {
			t.Fatal(err)
		}
		if count := s.Take(); count.Requests != 19 || count.AtOnce != 16 || count.Bytes != int64(len(data)) {
			t.Errorf("%+v", count)
		}
	})
}

// TestFaultsPass reads a file from a server with every fault. The bytes are the bytes of the file, and a read goes on
// at the byte that the last attempt reached.
func TestFaultsPass(t *testing.T) {
	data := content(1 << 20)
	for seed := range uint64(8) {
		s := &far.Server{Files: map[string][]byte{"/x.bin": data}, Latency: time.Millisecond, Share: 0.3, Faults: far.Passing, Seed: seed}
		served(t, s, func(t *testing.T, op *remote.Opener) {
			b := open(t, op)
			defer b.Close()
			p := make([]byte, 10_000)
			for at := 0; at < len(data); at += len(p) {
				n, err := b.ReadAt(context.Background(), p, int64(at))
				if err != nil && err != io.EOF || !bytes.Equal(p[:n], data[at:][:n]) {
					t.Fatalf("seed %d, byte %d: %v", seed, at, err)
				}
			}
			c := op.Counts()
			if c.Retries == 0 || c.Planned != int64(len(data)+64<<10) || float64(c.Bytes) > 1.02*float64(c.Planned) {
				t.Errorf("seed %d: %+v", seed, c)
			}
		})
	}
}

// TestCutsContinue: after a cut, only the rest is asked for.
func TestCutsContinue(t *testing.T) {
	data := content(1 << 20)
	s := &far.Server{Files: map[string][]byte{"/x.bin": data}}
	served(t, s, func(t *testing.T, op *remote.Opener) {
		b := open(t, op)
		defer b.Close()
		s.Share, s.Faults = 0.9, []far.Fault{far.Cut, far.Stall}
		began, p := time.Now(), make([]byte, len(data))
		if _, err := b.ReadAt(t.Context(), p, 0); err != nil || !bytes.Equal(p, data) {
			t.Fatal(err)
		}
		if c := op.Counts(); c.Retries == 0 || c.Bytes != c.Planned {
			t.Errorf("%+v", c)
		}
		if took := time.Since(began); took > 10*15*time.Second {
			t.Errorf("stalls took %v", took)
		}
	})
}

// TestFaultsThatStay: attempts end after 5 minutes without a byte, and at once if ctx ends. The error has the name of the
// file, the cause, and what to do.
func TestFaultsThatStay(t *testing.T) {
	const look, fewer = "look at the server and the network, then continue from the last state", "it wants fewer requests: use fewer processes, or keep the rows of a run on its hosts (cache=)"
	for fault, want := range map[far.Fault]string{
		far.Busy:    "the server answers 503 Service Unavailable, in each of N attempts; " + fewer,
		far.Limited: "the server answers 429 Too Many Requests, in each of N attempts; " + fewer,
		far.Broken:  "the server answers 500 Internal Server Error, in each of N attempts; " + look,
		far.Cut:     "the answer ended early: unexpected EOF, in each of N attempts; " + look,
		far.Stall:   "no bytes came for 10 s, in each of N attempts; " + look,
		far.Silent:  "no bytes came for 10 s, in each of N attempts; " + look,
		far.Expired: "the server denies access (403 Forbidden); give the address with a user and a password (https://user:password@host/), or sign it again if its signature has expired",
	} {
		s := &far.Server{Files: map[string][]byte{"/x.bin": content(1 << 20)}, NoBytes: true}
		served(t, s, func(t *testing.T, op *remote.Opener) {
			b := open(t, op)
			defer b.Close()
			s.Share, s.Faults = 1, []far.Fault{fault}
			began := time.Now()
			_, err := b.ReadAt(context.Background(), make([]byte, 10), 0)
			if took := time.Since(began); fault != far.Expired && (took < 4*time.Minute || took > 6*time.Minute) {
				t.Errorf("%s: attempts took %v", fault, took)
			}
			e, ok := errors.AsType[*status.Error](err)
			if !ok || e.Code != status.IO || e.Attr("path") != name || attempts.ReplaceAllString(err.Error(), "of N attempts") != "arrowio: "+name+": "+want {
				t.Errorf("%s: got  %v\nwant %s", fault, err, want)
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Second/2)
			defer cancel()
			if _, err := b.ReadAt(ctx, make([]byte, 10), 0); fault != far.Expired && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: got %v", fault, err)
			}
		})
	}
}

var attempts = regexp.MustCompile(`of [0-9]+ attempts`)

// TestBusyHosts: Retry-After holds for all requests to the host, and fewer run at once after it.
func TestBusyHosts(t *testing.T) {
	s := &far.Server{Files: map[string][]byte{"/x.bin": make([]byte, 130<<20)}, Latency: time.Millisecond}
	served(t, s, func(t *testing.T, op *remote.Opener) {
		b := open(t, op)
		defer b.Close()
		time.Sleep(time.Minute)
		s.Share, s.Faults = 1, []far.Fault{far.Busy}
		p := make([]byte, 130<<20)
		ctx, cancel := context.WithTimeout(context.Background(), 990*time.Millisecond)
		defer cancel()
		_, _ = b.ReadAt(ctx, p, 0)
		if count := s.Take(); count.Requests > 1+16 {
			t.Errorf("within a second: %+v", count)
		}
		synctest.Wait()
		s.Share = 0
		time.Sleep(time.Second)
		s.Take()
		if _, err := b.ReadAt(t.Context(), p, 0); err != nil {
			t.Fatal(err)
		}
		if count := s.Take(); count.AtOnce > 8+1 {
			t.Errorf("after that: %+v", count)
		}
	})
}

// TestLateAttempts: an attempt that waits for much longer than others ends, and costs no byte twice. At most one request in 33
// does, and none if all are slow.
func TestLateAttempts(t *testing.T) {
	const reads = 500
	for _, c := range []struct {
		latency     time.Duration
		share       float64
		least, most time.Duration
		retries     int64
	}{
		{20 * time.Millisecond, 0.03, 10 * time.Second, 24 * time.Second, reads / 33}, // 15 pauses of 2 s would take 40 s
		{20 * time.Millisecond, 0.5, 400 * time.Second, time.Hour, 0},
		{600 * time.Millisecond, 0, 300 * time.Second, 310 * time.Second, 0},
	} {
		s := &far.Server{Files: map[string][]byte{"/x.bin": content(1 << 20)}, Latency: c.latency, Share: c.share, Faults: []far.Fault{far.Pause}, NoBytes: true}
		served(t, s, func(t *testing.T, op *remote.Opener) {
			b := open(t, op)
			defer b.Close()
			began, p := time.Now(), make([]byte, 1000)
			for i := range reads {
				if _, err := b.ReadAt(t.Context(), p, int64(i)*1000); err != nil {
					t.Fatal(err)
				}
			}
			n, took := op.Counts(), time.Since(began)
			if took < c.least || took > c.most || n.Retries > c.retries+1 || n.Retries == 0 && c.retries > 0 || n.Bytes != n.Planned {
				t.Errorf("%+v: %v, %+v", c, took, n)
			}
		})
	}
}

// TestBusyForAllProcesses: what a host says to one process holds for the others of the machine, but not for a process
// that begins later. Each process has an engine of its own.
func TestBusyForAllProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, shared := &far.Server{Files: map[string][]byte{"/x.bin": make([]byte, 130<<20)}, Latency: time.Millisecond}, local.Times{Folder: t.TempDir()}
		dial, stop := far.Serve(s)
		defer stop()
		var all [3]blob.Blob
		begin := func(i int) {
			e := remote.New(dial)
			e.Shared = shared
			all[i] = open(t, remote.NewOpener(e))
		}
		begin(0)
		begin(1)
		time.Sleep(time.Minute)
		s.Share, s.Faults = 1, []far.Fault{far.Busy}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		_, _ = all[0].ReadAt(ctx, make([]byte, 1), 0)
		s.Share = 0
		read := func(i int) (atOnce int, took time.Duration) {
			s.Take()
			began := time.Now()
			if _, err := all[i].ReadAt(t.Context(), make([]byte, 130<<20), 0); err != nil {
				t.Fatal(err)
			}
			return s.Take().AtOnce, time.Since(began)
		}
		if n, took := read(1); n > 8 || took < time.Second/2 {
			t.Errorf("the other process: %d at once in %v", n, took)
		}
		time.Sleep(time.Minute)
		begin(2)
		if n, took := read(2); n != 16 || took > time.Second/2 {
			t.Errorf("a process that begins later: %d at once in %v", n, took)
		}
		for _, b := range all {
			_ = b.Close()
		}
	})
}

// TestPausesBeyondPatience: if a server wants a pause of an hour, the read fails at once, and the next one may try.
func TestPausesBeyondPatience(t *testing.T) {
	s := &far.Server{Files: map[string][]byte{"/x.bin": content(100_000)}, After: "3600"}
	served(t, s, func(t *testing.T, op *remote.Opener) {
		b := open(t, op)
		defer b.Close()
		s.Share, s.Faults = 1, []far.Fault{far.Busy}
		began := time.Now()
		if _, err := b.ReadAt(t.Context(), make([]byte, 1), 0); err == nil || !strings.Contains(err.Error(), "503 Service Unavailable") {
			t.Errorf("got %v", err)
		}
		s.Share = 0
		if _, err := b.ReadAt(t.Context(), make([]byte, 1), 0); err != nil || time.Since(began) > time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// TestErrors compares whole messages.
func TestErrors(t *testing.T) {
	const changed = "; do not replace files while they are read; open the dataset again to read what the file holds now"
	data := content(200_000)
	for what, c := range map[string]struct {
		server *far.Server
		change func(s *far.Server) // after the file is open; nil if it does not open
		code   status.Code
		want   string
	}{
		"absent": {&far.Server{Files: map[string][]byte{}}, nil, status.NotFound,
			"there is no such file (404 Not Found); check the address, also for capital letters"},
		"denied": {&far.Server{User: "me:secret"}, nil, status.IO,
			"the server denies access (401 Unauthorized); give the address with a user and a password (https://user:password@host/), or sign it again if its signature has expired"},
		"teapot": {&far.Server{Refused: 418}, nil, status.IO,
			"the server answers 418 I'm a teapot; open the address in another program to see what the server expects"},
		"whole": {&far.Server{Whole: true}, nil, status.Unsupported,
			"the server ignores ranges: it answers 200 OK with the whole file; download the file, or serve it with a server that answers ranges, such as nginx or an object store"},
		"packed": {&far.Server{Packed: true}, nil, status.Unsupported,
			"the server compresses the bytes (Content-Encoding: gzip), although the request forbids it; turn compression off for such files on the server, or download the file"},
		"unversioned": {&far.Server{Untagged: true, Undated: true}, nil, status.Unsupported,
			"the server sends neither an ETag nor a Last-Modified, so a change of the file would not be noticed; let the server send one of them, or download the file"},
		"endless": {&far.Server{Redirects: map[string]string{"/x.bin": "/x.bin"}}, nil, status.Unsupported,
			"the server redirects more than 10 times; give the address that it should lead to"},
		"nowhere": {&far.Server{Redirects: map[string]string{"/x.bin": "ftp://host/x.bin"}}, nil, status.Unsupported,
			"the server redirects to no address; give the address that it should lead to"},
		"shifted": {&far.Server{}, func(s *far.Server) { s.Shifted = true }, status.DataLoss,
			`the server sent other bytes than were asked for: "bytes 1-2/200000" for "bytes=0-99"; download the file; the server, or a proxy on the way, mixes up ranges`},
		"changed": {&far.Server{}, func(s *far.Server) { s.Put("/x.bin", content(200_000)) }, status.DataLoss,
			`the file has changed since it was opened: it had ETag "200000-0", and has ETag "200000-1"` + changed},
		"shorter": {&far.Server{}, func(s *far.Server) { s.Put("/x.bin", content(50)) }, status.DataLoss,
			`the file has changed since it was opened: it had ETag "200000-0", and has ETag "50-1"` + changed},
		"changed, weak": {&far.Server{Weak: true}, func(s *far.Server) { s.Put("/x.bin", content(200_000)) }, status.DataLoss,
			`the file has changed since it was opened: it had ETag W/"200000-0", and has ETag W/"200000-1"` + changed},
		"changed, dated": {&far.Server{Untagged: true}, func(s *far.Server) { s.Put("/x.bin", content(200_000)) }, status.DataLoss,
			"the file has changed since it was opened: it had Last-Modified Fri, 02 Jan 2026 03:04:00 GMT, and has Last-Modified Fri, 02 Jan 2026 03:04:01 GMT" + changed},
		"changed, careless": {&far.Server{Careless: true}, func(s *far.Server) { s.Put("/x.bin", content(200_000)) }, status.DataLoss,
			`the file has changed since it was opened: it had ETag "200000-0", and has ETag "200000-1"` + changed},
		"removed": {&far.Server{}, func(s *far.Server) { delete(s.Files, "/x.bin") }, status.NotFound,
			"there is no such file (404 Not Found); check the address, also for capital letters"},
	} {
		t.Run(what, func(t *testing.T) {
			s := c.server
			if s.Files == nil {
				s.Files = map[string][]byte{"/x.bin": data}
			}
			served(t, s, func(t *testing.T, op *remote.Opener) {
				b, err := op.Open(t.Context(), blob.Entry{Name: name})
				if c.change != nil {
					if err != nil {
						t.Fatal(err)
					}
					defer b.Close()
					c.change(s)
					_, err = b.ReadAt(t.Context(), make([]byte, 100), 0)
					if lost := c.code == status.DataLoss && what != "shifted"; (b.Check() != nil) != lost {
						t.Errorf("Check returns %v", b.Check())
					}
				}
				e, ok := errors.AsType[*status.Error](err)
				if want := "arrowio: " + name + ": " + c.want; !ok || e.Code != c.code || err.Error() != want || e.Attr("path") != name {
					t.Errorf("got  %v\nwant %s", err, want)
				}
				if n := s.Take().Requests; n > 11 {
					t.Errorf("%d requests", n)
				}
			})
		})
	}
}

// TestServersWithoutSomething opens files of servers with fewer features, and reads them.
func TestServersWithoutSomething(t *testing.T) {
	for what, s := range map[string]*far.Server{
		"ranges from the end": {Suffixless: true}, "strong ETags": {Weak: true}, "ETags": {Untagged: true}, "dates": {Undated: true},
	} {
		for _, size := range []int{0, 5, 64 << 10, 200_000} {
			data := content(size)
			s.Files = map[string][]byte{"/x.bin": data}
			served(t, s, func(t *testing.T, op *remote.Opener) {
				b := open(t, op)
				defer b.Close()
				p := make([]byte, size+1)
				for range 2 {
					if n, err := b.ReadAt(t.Context(), p, 0); n != size || err != io.EOF || !bytes.Equal(p[:n], data) || b.Check() != nil {
						t.Errorf("without %s: %d of %d bytes, %v", what, n, size, err)
					}
				}
			})
		}
	}
}

// TestRedirects: the user and the password go to their host only. The last address is kept until it
// is refused.
func TestRedirects(t *testing.T) {
	data := content(200_000)
	s := &far.Server{Files: map[string][]byte{"/signed": data}, Redirects: map[string]string{"/x.bin": "http://other:80/signed?signature=1"}}
	served(t, s, func(t *testing.T, op *remote.Opener) {
		if err := op.Admit(name, "http://me:secret@host/x.bin?q=1"); err != nil {
			t.Fatal(err)
		}
		b := open(t, op)
		defer b.Close()
		read := func() {
			t.Helper()
			if _, err := b.ReadAt(t.Context(), make([]byte, 10), 0); err != nil {
				t.Error(err)
			}
		}
		read()
		s.Redirects["/x.bin"] = "http://third/again"
		s.Files["/again"] = data
		delete(s.Files, "/signed")
		read()
		var all []string
		for _, r := range s.Seen() {
			user, password, _ := r.BasicAuth()
			all = append(all, user+":"+password+"@"+r.Host+r.URL.RequestURI())
		}
		const want = "me:secret@host/x.bin?q=1 :@other:80/signed?signature=1 :@other:80/signed?signature=1 :@other:80/signed?signature=1 me:secret@host/x.bin?q=1 :@third/again"
		if got := strings.Join(all, " "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// TestCertificates: SSL_CERT_FILE names an authority, a certificate for another host is refused, and so is
// a redirect from https to http.
func TestCertificates(t *testing.T) {
	server := httptest.NewUnstartedServer(http.RedirectHandler("http://127.0.0.1/x", http.StatusFound))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	file := filepath.Join(t.TempDir(), "authority.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", file)
	for host, want := range map[string]string{
		"127.0.0.1": "the server redirects from https to http, where others could read and change the bytes; give the address that it should lead to",
		"localhost": "the certificate of localhost is not trusted: x509: certificate is valid for example.com, *.example.com, not localhost; name the file with its authority in SSL_CERT_FILE, AWS_CA_BUNDLE or REQUESTS_CA_BUNDLE before the program opens its first address",
	} {
		address := strings.Replace(server.URL, "127.0.0.1", host, 1) + "/x"
		_, err := remote.NewOpener(remote.New(nil)).Open(t.Context(), blob.Entry{Name: address})
		if err == nil || err.Error() != "arrowio: "+address+": "+want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// TestUnreachable: a host that never answered is not tried again.
func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + l.Addr().String() + "/x"
	l.Close()
	_, err = remote.NewOpener(remote.New(nil)).Open(t.Context(), blob.Entry{Name: address})
	if want := "arrowio: " + address + ": 127.0.0.1 cannot be reached: connect: connection refused; check the address, the network, and the proxy (HTTPS_PROXY, NO_PROXY)"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestAuthorize: each attempt at the host of the object is authorized, with all its other headers, and no
// other host is. Expired credentials are renewed once, and the attempt goes on.
func TestAuthorize(t *testing.T) {
	data := content(200_000)
	s := &far.Server{Files: map[string][]byte{"/x.bin": data, "/away": data}, Redirects: map[string]string{"/to": "http://other/away"}}
	valid, lasts := 1, -1 // the number of the token, and how many requests it lasts
	served(t, s, func(t *testing.T, _ *remote.Opener) {
		var seen []string
		dial, stop := far.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			token := r.Header.Get("Authorization")
			seen = append(seen, r.Host+" "+token)
			if lasts--; lasts == 0 {
				valid++
			}
			if r.Host == "host" && token != fmt.Sprint(valid) {
				w.WriteHeader(http.StatusForbidden)
				_, _ = w.Write([]byte("expired"))
				return
			}
			s.ServeHTTP(w, r)
		}))
		defer stop()
		op, have, renews := remote.NewOpener(remote.New(dial)), 1, true
		op.Authorize = func(_ context.Context, r *http.Request) error {
			if r.Header.Get("Range") == "" || r.Header.Get("Accept-Encoding") == "" {
				t.Errorf("the request is not complete: %v", r.Header)
			}
			r.Header.Set("Authorization", fmt.Sprint(have))
			return nil
		}
		op.Explain = func(r *http.Response, body []byte) *remote.Refusal {
			if string(body) != "expired" {
				return nil
			}
			if renews {
				have++
			}
			return &remote.Refusal{Code: status.IO, What: "the token has expired", Hint: "renew it", Again: true}
		}
		b := open(t, op)
		defer b.Close()
		read := func() (string, error) {
			seen = nil
			p := make([]byte, 1000)
			_, err := b.ReadAt(t.Context(), p, 0)
			if err == nil && !bytes.Equal(p, data[:1000]) {
				t.Error("other bytes")
			}
			return strings.Join(seen, ", "), err
		}
		lasts = 1
		if got, err := read(); err != nil || got != "host 1, host 2" {
			t.Errorf("%s, %v", got, err)
		}
		lasts, renews = 1, false
		const want = "arrowio: " + name + ": the token has expired; renew it"
		if got, err := read(); err == nil || err.Error() != want || got != "host 2, host 2" {
			t.Errorf("%s, %v", got, err)
		}
		have = valid
		away, err := op.Open(t.Context(), blob.Entry{Name: "http://host/to"})
		if err != nil || strings.Join(seen[2:], ", ") != "host 3, other " {
			t.Fatalf("%q, %v", seen, err)
		}
		_ = away.Close()
		op.Authorize = func(context.Context, *http.Request) error {
			return status.New(status.IO, "arrowio", "the machine has no identity").WithHint("give it one")
		}
		if got, err := read(); err == nil || err.Error() != "arrowio: "+name+": getting credentials failed: the machine has no identity; give it one" || got != "" {
			t.Errorf("%s, %v", got, err)
		}
		op.Authorize = func(ctx context.Context, _ *http.Request) error { <-ctx.Done(); return ctx.Err() }
		began := time.Now()
		if _, err := read(); err == nil || !strings.Contains(err.Error(), "no bytes came for 10 s, in each of ") || time.Since(began) < 4*time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
