package credentials

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// Google asks the metadata server for tokens: GCE_METADATA_HOST, or else the one of the machine, unless NO_GCE_CHECK=true.
// It is safe for concurrent use.
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
func (g *Google) find(ctx context.Context) (l lease[string], err error) {
	if l, err = g.machine(ctx); err == nil && l.source == "" {
		l.source = nothing
	}
	return l, err
}

// machine returns the token of the metadata server. Its source is "" on other machines.
func (g *Google) machine(ctx context.Context) (l lease[string], err error) {
	host, named := g.getenv("GCE_METADATA_HOST"), true
	if host == "" {
		if strings.EqualFold(g.getenv("NO_GCE_CHECK"), "true") {
			return l, nil
		}
		host, named = "169.254.169.254", false
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, brief)
		defer cancel()
	}
	const source = "the service account of this machine"
	at := "http://" + host + "/computeMetadata/v1/instance/service-accounts/default/token?scopes=" + scope
	code, header, text, err := (&client{via: nearby, once: !named}).ask(ctx, http.MethodGet, at, map[string]string{"Metadata-Flavor": "Google"}, source)
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
		return l, refused("give the machine a service account that may read the bucket, or set GOOGLE_APPLICATION_CREDENTIALS", "%s: the metadata server %s gives no token (code %d)", source, host, code)
	}
	return lease[string]{answer.Token, source, time.Now().Add(time.Duration(answer.Life) * time.Second)}, nil
}
