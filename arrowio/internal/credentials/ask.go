package credentials

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/meshfeed/meshfeed/core/status"
)

// brief is how long a machine has to answer whether it has a metadata service.
const brief = time.Second

// metadata reaches services of this machine, never through a proxy. Others are reached by public.
var (
	metadata = &http.Transport{DialContext: (&net.Dialer{Timeout: brief}).DialContext, DisableKeepAlives: true}
	public   = &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second, DisableKeepAlives: true,
	}
)

// maxAnswer bounds the answer of a service.
const maxAnswer = 1 << 20

// ask sends a request with headers, and returns the code, the headers and the body of the answer. No redirect is
// followed, because it could lead secrets to another host.
func ask(ctx context.Context, via http.RoundTripper, method, address string, body io.Reader, header map[string]string) (int, http.Header, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return 0, nil, nil, status.New(status.InvalidArgument, "arrowio", "the address is not a URL")
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	return send(via, r)
}

// send sends a request, and returns the answer.
func send(via http.RoundTripper, r *http.Request) (int, http.Header, []byte, error) {
	answer, err := via.RoundTrip(r)
	if err != nil {
		return 0, nil, nil, unreachable(r.URL.Hostname(), err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return 0, nil, nil, unreachable(r.URL.Hostname(), err)
	}
	return answer.StatusCode, answer.Header, text, nil
}

// unreachable returns the error of a service that did not answer. Only errors of connections are quoted.
func unreachable(host string, err error) error {
	e := status.Errorf(status.IO, "arrowio", "no answer came from %s", host).WithHint("check the network, the certificates, and the proxy (HTTPS_PROXY, NO_PROXY)")
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		e.Msg += ": " + failed.Err.Error()
	}
	return e
}
