package arrowio_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/tests/far"
)

// proxy is a proxy that connects every host to one server, for users with a password.
type proxy struct {
	to   string
	seen atomic.Int32
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.seen.Add(1)
	if r.Header.Get("Proxy-Authorization") != "Basic bWU6aHVudGVyMg==" || r.Host != "data.example.com:443" {
		http.Error(w, "unknown", http.StatusProxyAuthRequired)
		return
	}
	there, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer there.Close()
	w.WriteHeader(http.StatusOK)
	here, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	go func() { _, _ = io.Copy(there, here) }()
	_, _ = io.Copy(here, there)
}

// TestProxies: proxies and authorities come from the variables that other programs use. Those that the program changed last hold, until
// it opens its first address. So each case has a process of its own.
func TestProxies(t *testing.T) {
	if variables := os.Getenv("MESHFEED_TEST_VARIABLES"); variables != "" {
		getenv := func(name string) string {
			_, value, _ := strings.Cut(variables+"\n", "\n"+name+"=")
			value, _, _ = strings.Cut(value, "\n")
			return value
		}
		ds, err := arrowio.OpenFiles(t.Context(), []string{"https://data.example.com/x.parquet"}, arrowio.Options{Getenv: getenv})
		if err == nil {
			fmt.Println("said", ds.Len(), ds.Close())
		} else {
			fmt.Println("said", err)
		}
		return
	}
	data, err := os.ReadFile("testdata/parquet/plain.parquet")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(&far.Server{Files: map[string][]byte{"/x.parquet": data}})
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	p := &proxy{to: server.Listener.Addr().String()}
	between := httptest.NewServer(p)
	defer between.Close()
	authority := filepath.Join(t.TempDir(), "authority.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	way := "\nHTTPS_PROXY=" + strings.Replace(between.URL, "http://", "http://me:hunter2@", 1)
	const name = "arrowio: https://data.example.com/x.parquet: "
	for variables, want := range map[string]string{
		way + "\nSSL_CERT_FILE=" + authority:                          "23 <nil>",
		way + "\nAWS_CA_BUNDLE=" + authority:                          "23 <nil>",
		way + "\nAWS_CA_BUNDLE=none\nREQUESTS_CA_BUNDLE=" + authority: "23 <nil>",
		way + "\nREQUESTS_CA_BUNDLE=none":                             name + "the certificate of data.example.com is not trusted: x509: certificate signed by unknown authority; the file that REQUESTS_CA_BUNDLE names has no certificate, or cannot be read; name the file with its authority in SSL_CERT_FILE, AWS_CA_BUNDLE or REQUESTS_CA_BUNDLE before the program opens its first address",
		strings.Replace(way, "hunter2", "x", 1):                       name + "the proxy gives no connection to data.example.com: 407 Proxy Authentication Required; check the proxy in HTTPS_PROXY or HTTP_PROXY, with its user and password; NO_PROXY names hosts that need none",
		way + "\nNO_PROXY=.example.com\nAWS_CA_BUNDLE=" + authority:   name + "data.example.com cannot be reached: ",
	} {
		c := exec.Command(os.Args[0], "-test.run=^TestProxies$", "-test.v")
		c.Env = append(os.Environ(), "MESHFEED_TEST_VARIABLES="+variables)
		out, err := c.Output()
		_, said, _ := strings.Cut(string(out), "said ")
		said, _, _ = strings.Cut(said, "\n")
		if err != nil || !strings.HasPrefix(said, want) || strings.Contains(said, "hunter2") {
			t.Errorf("%q: %v\ngot  %s\nwant %s", variables, err, said, want)
		}
		if seen := p.seen.Swap(0) > 0; seen == strings.Contains(variables, "NO_PROXY") {
			t.Errorf("%q: the proxy was asked: %v", variables, seen)
		}
	}
}
