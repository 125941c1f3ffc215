package credentials

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/meshfeed/meshfeed/core/status"
)

// Google finds tokens as the libraries of Google Cloud do. It is safe for concurrent use.
type Google struct {
	getenv func(string) string
	tokens keeper[string]
}

// scope is what a token permits: to read objects.
const scope = "https://www.googleapis.com/auth/devstorage.read_only"

// NewGoogle returns the credentials of an environment.
func NewGoogle(getenv func(string) string) *Google {
	g := &Google{getenv: getenv}
	g.tokens.fetch = g.find
	return g
}

// Token returns a token that has not expired, or "" for anonymous access. It waits if none is known yet.
func (g *Google) Token(ctx context.Context) (string, error) { return g.tokens.get(ctx) }

// Refresh forgets the present token, because the store refuses it.
func (g *Google) Refresh() { g.tokens.forget() }

// Source says where the present token came from, for errors.
func (g *Google) Source() string { return g.tokens.source() }

// find returns the token of the first source that has one.
func (g *Google) find(ctx context.Context) (lease[string], error) {
	l, err := g.machine(ctx)
	if err == nil && l.value == "" {
		l.source = "no credentials"
	}
	return l, err
}

// machine returns the token of the metadata server, if there is one.
func (g *Google) machine(ctx context.Context) (l lease[string], err error) {
	host, named := g.getenv("GCE_METADATA_HOST"), true
	if host == "" {
		host, named = "169.254.169.254", false
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, brief)
		defer cancel()
	}
	at := "http://" + host + "/computeMetadata/v1/instance/service-accounts/default/token?scopes=" + scope
	code, header, text, err := ask(ctx, metadata, http.MethodGet, at, nil, map[string]string{"Metadata-Flavor": "Google"})
	if !named && (err != nil || header.Get("Metadata-Flavor") != "Google") || err == nil && code == http.StatusNotFound {
		return l, nil
	}
	if err != nil {
		return l, err
	}
	var answer struct {
		Token string `json:"access_token"`
		Life  int    `json:"expires_in"`
	}
	if json.Unmarshal(text, &answer) != nil || answer.Token == "" || answer.Life <= 0 || code != http.StatusOK {
		return l, status.Errorf(status.IO, "arrowio", "the metadata server %s gives no token (code %d)", host, code).
			WithHint("give the machine a service account that may read the bucket, or set GOOGLE_APPLICATION_CREDENTIALS")
	}
	return lease[string]{answer.Token, "the service account of this machine", time.Now().Add(time.Duration(answer.Life) * time.Second)}, nil
}
