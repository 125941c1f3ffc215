package bucket

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/internal/credentials"
	"github.com/meshfeed/meshfeed/arrowio/internal/remote"
	"github.com/meshfeed/meshfeed/core/status"
)

// google is Google Cloud Storage, or an emulator of it.
type google struct {
	tokens   *credentials.Google // nil for an emulator
	endpoint *url.URL            // ends in a slash
	project  string              // that pays for requests; "" for the owner of the bucket
}

// NewGoogle returns an opener of Google Cloud Storage with the settings of an environment: the credentials as Google's
// libraries take them, STORAGE_EMULATOR_HOST, and GOOGLE_CLOUD_QUOTA_PROJECT for buckets that charge the reader.
// An emulator gets no credentials.
func NewGoogle(web *remote.Opener, getenv func(string) string) (*Opener, error) {
	g := &google{project: getenv("GOOGLE_CLOUD_QUOTA_PROJECT")}
	const emulator = "STORAGE_EMULATOR_HOST"
	text := getenv(emulator)
	switch {
	case text == "":
		text, g.tokens = "https://storage.googleapis.com", credentials.NewGoogle(getenv, web.Transport())
	case !strings.Contains(text, "://"):
		text = "http://" + text
	}
	at, err := endpoint(emulator, text)
	if err != nil {
		return nil, err
	}
	g.endpoint = at
	return newOpener(web, g), nil
}

func (g *google) address(bucket string) *url.URL { return join(g.endpoint, bucket+"/") }

func (g *google) place(string) string { return "" }

func (g *google) version(c content) string {
	if c.Generation == "" {
		return ""
	}
	return "generation " + c.Generation
}

func (g *google) authorize(ctx context.Context, r *http.Request) error {
	if g.project != "" {
		r.Header.Set("X-Goog-User-Project", g.project)
	}
	if g.tokens == nil {
		return nil
	}
	token, err := g.tokens.Token(ctx)
	if err == nil && token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return err
}

// renew makes the next request use another token than this one.
func (g *google) renew(r *http.Request) {
	token, err := g.tokens.Token(r.Context())
	if err == nil && r.Header.Get("Authorization") == "Bearer "+token { // else another request has renewed it
		g.tokens.Refresh()
	}
}

func (g *google) source() string {
	if g.tokens == nil {
		return "no credentials"
	}
	return g.tokens.Source()
}

func (g *google) explain(r *http.Response, f failure) *remote.Refusal {
	source := g.source()
	switch {
	case f.Code == "UserProjectMissing":
		return refuse(status.IO, "set GOOGLE_CLOUD_QUOTA_PROJECT to the project that pays", "the bucket charges the reader")
	case r.StatusCode == http.StatusUnauthorized && g.tokens != nil && r.Request.Header.Get("Authorization") != "":
		g.renew(r.Request)
		refusal := refuse(status.IO, "log in again: gcloud auth application-default login", "the credentials (%s) have expired, or are not valid (%s)", source, f.text(r))
		refusal.Again = true
		return refusal
	case r.StatusCode == http.StatusUnauthorized || r.StatusCode == http.StatusForbidden:
		return denial(r, f, "allow storage.objects.list and storage.objects.get (the role Storage Object Viewer), or use other credentials", source)
	}
	return nil
}
