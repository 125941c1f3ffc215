package credentials

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/meshfeed/meshfeed/core/status"
)

// brief is how long a machine has to answer whether it has a metadata service.
const brief = time.Second

// nearby reaches services of this machine, never through a proxy.
var nearby http.RoundTripper = &http.Transport{DialContext: (&net.Dialer{Timeout: brief}).DialContext, DisableKeepAlives: true}

// client sends requests, with some more attempts if the service does not answer or is busy. It notes how the last
// attempt ended. It follows no redirect, because that could lead secrets to another host.
type client struct {
	via  http.RoundTripper
	once bool // no more attempts

	host string
	code int   // 0 without an answer
	err  error // of the connection
}

// RoundTrip implements http.RoundTripper.
func (c *client) RoundTrip(r *http.Request) (*http.Response, error) {
	c.host = r.URL.Hostname()
	for wait := 200 * time.Millisecond; ; wait *= 2 {
		answer, err := c.via.RoundTrip(r)
		if c.code, c.err = 0, err; err == nil {
			c.code = answer.StatusCode
		}
		if c.once || wait > time.Second || err == nil && c.code < 500 && c.code != http.StatusTooManyRequests || r.Context().Err() != nil {
			return answer, err
		}
		if err == nil {
			answer.Body.Close()
		}
		r = r.Clone(r.Context())
		if r.GetBody != nil {
			r.Body, _ = r.GetBody() // it is in memory, so there is no error
		}
		select {
		case <-time.After(rand.N(wait)):
		case <-r.Context().Done():
		}
	}
}

// http returns the client for a library.
func (c *client) http() *http.Client {
	return &http.Client{Transport: c, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// maxAnswer bounds the answer of a service.
const maxAnswer = 1 << 20

// send sends a request for credentials, and returns the code, the headers and the body of the answer.
func (c *client) send(r *http.Request, source string) (int, http.Header, []byte, error) {
	answer, err := c.RoundTrip(r)
	if err != nil {
		return 0, nil, nil, c.unanswered(source)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return 0, nil, nil, c.unanswered(source)
	}
	return answer.StatusCode, answer.Header, text, nil
}

// ask sends a request with headers and without a body.
func (c *client) ask(ctx context.Context, method, address string, header map[string]string, source string) (int, http.Header, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return 0, nil, nil, invalid("correct it", "%s: the address of the service is not a URL", source)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	return c.send(r, source)
}

// unanswered returns the error of a service that did not answer. It quotes errors of the network only.
func (c *client) unanswered(source string) error {
	e := status.Errorf(status.IO, "arrowio", "%s: no answer came from %s", source, c.host).
		WithHint("check the network, the certificates, and the proxy (HTTPS_PROXY, NO_PROXY)")
	if failed, ok := errors.AsType[*net.OpError](c.err); ok {
		e.Msg += ": " + failed.Err.Error()
	}
	return e
}
