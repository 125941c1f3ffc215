// Package remote reads objects of web servers by ranges of bytes.
//
// An [Opener] opens URLs. Opening an [Object] is one request, for its last 64 KiB: the answer also has
// its size and its version, the ETag or else the time of its last modification. Every later request
// carries that version as a condition, and every answer is compared with it, so that bytes of two
// versions are never mixed.
//
// An [Engine] sends the requests of a process. Failures that may pass are tried again, from the byte on
// that was reached (attempts.go). Each host has a bound on the requests in progress, which falls when
// the host asks for that (host.go). An attempt ends after 10 s without a byte, and some
// that wait for much longer than others end before (waits.go). Each attempt at the host of
// its object is authorized anew, by [Opener.Authorize], and a redirect to another host is followed without
// that (exchange.go).
//
// Names of objects have no secrets: see files.Public. Queries and passwords are in the requests only.
package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Engine sends requests and counts open objects. It is safe for concurrent use.
type Engine struct {
	Shared Shared // tells other processes of the machine when a host is busy; nil for none. Set it before the first use.

	transport *http.Transport
	useless   string // variables that name no authority, for errors

	mu    sync.Mutex
	hosts map[string]*host
	open  int // objects
}

// Dial opens connections, like the method DialContext of a net.Dialer.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// New returns an engine. Nil stands for connections over TCP. Proxies and authorities of certificates
// come from the environment: see http.ProxyFromEnvironment, crypto/x509 and [Engine.Trust].
func New(dial Dial) *Engine {
	if dial == nil {
		dial = (&net.Dialer{Timeout: stall}).DialContext
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true) // HTTP/2 would send all ranges through one connection, at the rate of one
	return &Engine{hosts: map[string]*host{}, transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dial, TLSHandshakeTimeout: stall, Protocols: protocols,
		MaxIdleConnsPerHost: most, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 256 << 10,
		DisableCompression:     true, // ranges are of the stored bytes
		OnProxyConnectResponse: denied,
	}}
}

// denied returns an error if a proxy denies a connection: another attempt would meet it again.
func denied(_ context.Context, _ *url.URL, _ *http.Request, r *http.Response) error {
	if r.StatusCode == http.StatusProxyAuthRequired || r.StatusCode == http.StatusForbidden {
		return &net.OpError{Op: "proxyconnect", Err: errors.New(r.Status)}
	}
	return nil
}

// Trust adds the authorities of a file in PEM to the authorities of the system. Name is the variable that names the file.
func (e *Engine) Trust(name, text string) {
	if e.transport.TLSClientConfig == nil {
		e.transport.TLSClientConfig = &tls.Config{}
		if e.transport.TLSClientConfig.RootCAs, _ = x509.SystemCertPool(); e.transport.TLSClientConfig.RootCAs == nil {
			e.transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		}
	}
	if !e.transport.TLSClientConfig.RootCAs.AppendCertsFromPEM([]byte(text)) {
		e.useless += "; the file that " + name + " names has no certificate, or cannot be read"
	}
}

// host returns the state of a host.
func (e *Engine) host(name string) *host {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.hosts[name]
	if h == nil {
		h = &host{name: name, shared: e.Shared, limit: most}
		e.hosts[name] = h
	}
	return h
}

// opened counts an object that is opened or closed. After the last one, idle connections are closed.
func (e *Engine) opened(change int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open += change; e.open == 0 {
		e.transport.CloseIdleConnections()
	}
}
