package credentials

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/core/status"
)

// Google finds tokens as the libraries of Google Cloud do. The first of these sources is used:
//
//   - the file of GOOGLE_APPLICATION_CREDENTIALS
//   - application_default_credentials.json in CLOUDSDK_CONFIG, or else in ~/.config/gcloud
//   - the metadata server at GCE_METADATA_HOST, or the metadata server of the machine unless NO_GCE_CHECK=true
//
// It is safe for concurrent use.
type Google struct {
	getenv func(string) string
	via    http.RoundTripper // to services on other machines
	tokens keeper[string]
}

// scope is what a token permits: to read objects.
const scope = "https://www.googleapis.com/auth/devstorage.read_only"

// NewGoogle returns the credentials of an environment. Services on other machines are asked via a transport.
func NewGoogle(getenv func(string) string, via http.RoundTripper) *Google {
	g := &Google{getenv: getenv, via: via}
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
	path, named := g.getenv("GOOGLE_APPLICATION_CREDENTIALS"), true
	if path == "" {
		path, named = local.Opener{}.Join(g.getenv("HOME"), ".config/gcloud/application_default_credentials.json"), false
		if dir := g.getenv("CLOUDSDK_CONFIG"); dir != "" {
			path = local.Opener{}.Join(dir, "application_default_credentials.json")
		}
	}
	text, err := local.Folder{}.Read(path)
	switch {
	case err == nil:
		return g.exchange(ctx, text, path)
	case named || status.CodeOf(err) != status.NotFound:
		return l, err
	}
	if l, err = g.machine(ctx); err == nil && l.source == "" {
		l.source = nothing
	}
	return l, err
}

// kinds are the kinds of files that give tokens.
var kinds = []google.CredentialsType{google.ServiceAccount, google.AuthorizedUser, google.ExternalAccount, google.ExternalAccountAuthorizedUser, google.ImpersonatedServiceAccount}

// exchange returns the token for the credentials in a file. The errors of the library quote answers, so they are not shown.
func (g *Google) exchange(ctx context.Context, text []byte, path string) (l lease[string], err error) {
	var file struct{ Type google.CredentialsType }
	if err := json.Unmarshal(text, &file); err != nil || !slices.Contains(kinds, file.Type) {
		return l, invalid("make it with: gcloud auth application-default login, or download the key of a service account",
			"%s has no credentials: expected JSON with a type such as service_account, authorized_user or external_account", path)
	}
	source := string(file.Type) + " of " + path
	c := &client{via: g.via}
	made, err := google.CredentialsFromJSONWithType(context.WithValue(ctx, oauth2.HTTPClient, c.http()), text, file.Type, scope)
	if err == nil {
		var token *oauth2.Token
		if token, err = made.TokenSource.Token(); err == nil {
			return lease[string]{token.AccessToken, source, token.Expiry}, nil
		}
	}
	switch {
	case c.host == "":
		return l, invalid("make the file again; its text is not shown here, because it is secret", "%s is damaged, or names a file that cannot be read", source)
	case c.code == 0:
		return l, c.unanswered(source)
	case file.Type == google.AuthorizedUser:
		return l, refused("run: gcloud auth application-default login", "%s: %s gives no token (code %d)", source, c.host, c.code)
	}
	return l, refused("check that the account exists and has this key, what it may do, and the clock of this machine", "%s: %s gives no token (code %d)", source, c.host, c.code)
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
