package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

const (
	// stall is how long an attempt may go without a byte.
	stall = 10 * time.Second

	maxRedirects = 10
)

// exchange sends a request for a range of an object, and follows redirects. Use gets an answer that is
// not refused, and its body. An error is a fault, or the end of parent.
func (o *Object) exchange(parent context.Context, header http.Header, use func(r *http.Response, body io.Reader) error) (err error) {
	h := o.opener.engine.host(o.at.Host)
	if err := h.enter(parent); err != nil {
		return err
	}
	answered, busy, pause := false, false, time.Duration(0)
	defer func() { h.leave(answered, busy, pause) }()
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	watch := h.waits.watch(cancel)
	defer func() { watch.stop(err == nil) }()
	o.opener.counts.requests.Add(1)
	r, err := o.send(ctx, header)
	if err == nil {
		defer r.Body.Close()
		answered = true
		if err = o.refused(r); err == nil {
			err = use(r, watched{r.Body, watch, &o.opener.counts.bytes})
		}
	}
	f, ok := errors.AsType[*fault](err)
	switch {
	case err == nil:
		return nil
	case parent.Err() != nil:
		return parent.Err()
	case ok && f.passes && ctx.Err() != nil:
		return o.passing("%w", context.Cause(ctx))
	case ok && f.after <= patience: // else this read fails, and others may try
		busy, pause = f.busy, f.after
	}
	return err
}

// watched is a body that counts its bytes. Each one sets back the watch.
type watched struct {
	io.Reader
	watch *watch
	bytes *atomic.Int64
}

func (w watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.watch.progress()
		w.bytes.Add(int64(n))
	}
	return n, err
}

// send sends a request to the server that the last redirect led to, and follows further redirects. If
// that server refuses, its address may have expired: then the first server is asked again.
func (o *Object) send(ctx context.Context, header http.Header) (*http.Response, error) {
	kept := o.target.Load()
	if kept != nil {
		r, err := o.follow(ctx, kept, header)
		if err != nil || !expired(r.StatusCode) {
			return r, err
		}
		r.Body.Close()
		o.target.CompareAndSwap(kept, nil)
		o.opener.counts.retries.Add(1)
	}
	return o.follow(ctx, &o.at, header)
}

// expired reports whether a code may mean that a signed address is too old.
func expired(code int) bool {
	switch code {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		return true
	}
	return false
}

// follow sends a request to an address, and to those that redirects name.
func (o *Object) follow(ctx context.Context, to *url.URL, header http.Header) (*http.Response, error) {
	for hops := 0; ; hops++ {
		r, err := o.request(ctx, to, header)
		if err != nil {
			return nil, err
		}
		switch r.StatusCode {
		case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		default:
			if hops > 0 && r.StatusCode < 300 {
				o.target.Store(to)
			}
			return r, nil
		}
		refusal := o.explained(r)
		r.Body.Close()
		if refusal != nil {
			return nil, refusal
		}
		next, err := to.Parse(r.Header.Get("Location"))
		switch {
		case err != nil || next.Host == "" || next.Scheme != "https" && next.Scheme != "http":
			return nil, o.misled("the server redirects to no address")
		case to.Scheme == "https" && next.Scheme == "http":
			return nil, o.misled("the server redirects from https to http, where others could read and change the bytes")
		case hops == maxRedirects:
			return nil, o.misled("the server redirects more than %d times", maxRedirects)
		}
		to = next
	}
}

// request sends a request to one address. A password or a token goes to the host that it was given for, and
// to no other.
func (o *Object) request(ctx context.Context, to *url.URL, header http.Header) (*http.Response, error) {
	plain := *to
	plain.User, plain.Fragment = nil, ""
	r := &http.Request{Method: http.MethodGet, URL: &plain, Host: plain.Host, Header: header.Clone(), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	r.Header.Set("Accept-Encoding", "identity")
	r.Header.Set("User-Agent", "meshfeed")
	if to.Host == o.at.Host && to.Scheme == o.at.Scheme {
		if err := o.opener.Authorize(ctx, r); err != nil {
			return nil, o.unauthorized(ctx, err)
		}
	}
	answer, err := o.opener.engine.transport.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, o.unreachable(err, to)
	}
	return answer, nil
}
