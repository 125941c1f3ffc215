package remote

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/meshfeed/meshfeed/core/status"
)

// fault is why an attempt failed.
type fault struct {
	error   *status.Error
	passes  bool          // another attempt may succeed
	renewed bool          // it has other credentials, which count as progress once
	busy    bool          // the host wants fewer requests
	after   time.Duration // and none before this pause has ended
}

// Error implements error.
func (f *fault) Error() string { return f.error.Error() }

// Unwrap returns the error for the user.
func (f *fault) Unwrap() error { return f.error }

// final returns a fault that another attempt would meet again.
func (o *Object) final(code status.Code, hint, format string, args ...any) *fault {
	return &fault{error: o.errorf(code, format, args...).WithHint("%s", hint)}
}

// passing returns a fault that may not meet another attempt.
func (o *Object) passing(format string, args ...any) *fault {
	return &fault{passes: true, error: o.errorf(status.IO, format, args...).
		WithHint("look at the server and the network, then continue from the last state")}
}

func (o *Object) errorf(code status.Code, format string, args ...any) *status.Error {
	e := status.Errorf(code, "arrowio", format, args...)
	e.Msg = o.name + ": " + e.Msg
	return e.With("path", o.name)
}

// maxExplained bounds the text with which a server explains that it refuses a request.
const maxExplained = 64 << 10

// explained returns what the opener says about an answer that refuses a request, or nil.
func (o *Object) explained(r *http.Response) error {
	if o.opener.Explain == nil {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxExplained))
	refusal := o.opener.Explain(r, body)
	if refusal == nil {
		return nil
	}
	f := o.final(refusal.Code, refusal.Hint, "%s", refusal.What)
	f.renewed = refusal.Again
	f.error.With("status", r.StatusCode)
	return f
}

// unauthorized returns the fault of a request for which there is no token or signature. If the attempt
// has ended, another one may succeed.
func (o *Object) unauthorized(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return o.passing("getting credentials failed: %w", err)
	}
	what, hint := err.Error(), "look at the credentials in the environment, or renew them"
	if e, ok := errors.AsType[*status.Error](err); ok {
		what, hint = e.Msg, cmp.Or(e.Hint, hint)
	}
	return o.final(status.IO, hint, "getting credentials failed: %s", what)
}

// refused returns why a server refuses a request, or nil.
func (o *Object) refused(r *http.Response) error {
	switch r.StatusCode {
	case http.StatusOK, http.StatusPartialContent, http.StatusPreconditionFailed, http.StatusRequestedRangeNotSatisfiable:
		if how := r.Header.Get("Content-Encoding"); how != "" && how != "identity" && !o.opener.Stored {
			return o.final(status.Unsupported, "turn compression off for such files on the server, or download the file",
				"the server compresses the bytes (Content-Encoding: %s), although the request forbids it", how)
		}
		return nil
	default:
		if refusal := o.explained(r); refusal != nil {
			return refusal
		}
		return o.failed(r)
	}
}

// failed returns why a server refuses a request, by the code of its answer.
func (o *Object) failed(r *http.Response) error {
	switch r.StatusCode {
	case http.StatusNotFound, http.StatusGone:
		return o.final(status.NotFound, "check the address, also for capital letters", "there is no such file (%s)", r.Status)
	case http.StatusUnauthorized, http.StatusForbidden:
		hint := "give the address with a user and a password (https://user:password@host/), or sign it again if its signature has expired"
		if o.opener.secret(&o.at) != "" || o.at.RawQuery != "" {
			hint = "check the user and the password in the address, or sign it again if its signature has expired"
		}
		return o.final(status.IO, hint, "the server denies access (%s)", r.Status)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		f := o.passing("the server answers %s", r.Status)
		f.error.Hint = "it wants fewer requests: use fewer processes, or keep the rows of a run on its hosts (cache=)"
		f.busy, f.after = true, pauseOf(r.Header)
		return f
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
		return o.passing("the server answers %s", r.Status)
	default:
		return o.final(status.IO, "open the address in another program to see what the server expects", "the server answers %s", r.Status)
	}
}

// misled returns the fault of a redirect that is not followed.
func (o *Object) misled(format string, args ...any) error {
	return o.final(status.Unsupported, "give the address that it should lead to", format, args...)
}

// unreachable returns the fault of a request without an answer. A host that never answered probably has
// another name.
func (o *Object) unreachable(err error, to *url.URL) error {
	if untrusted, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return o.final(status.IO, "name the file with its authority in SSL_CERT_FILE, AWS_CA_BUNDLE or REQUESTS_CA_BUNDLE before the program opens its first address",
			"the certificate of %s is not trusted: %w%s", to.Hostname(), untrusted.Err, o.opener.engine.useless)
	}
	failed, dialing := errors.AsType[*net.OpError](err)
	if dialing && failed.Op == "proxyconnect" && !o.opener.engine.host(o.at.Host).reached() {
		return o.final(status.IO, "check the proxy in HTTPS_PROXY or HTTP_PROXY, with its user and password; NO_PROXY names hosts that need none", "the proxy gives no connection to %s: %w", to.Hostname(), failed.Err)
	}
	if dialing && failed.Op == "dial" && !o.opener.engine.host(o.at.Host).reached() {
		return o.final(status.IO, "check the address, the network, and the proxy (HTTPS_PROXY, NO_PROXY)", "%s cannot be reached: %w", to.Hostname(), failed.Err)
	}
	return o.passing("no answer came from %s: %w", to.Hostname(), err)
}
