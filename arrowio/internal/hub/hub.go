// Package hub reads datasets of the Hugging Face hub, by names such as
// hf://datasets/ORG/NAME/data/train-00000-of-00002.parquet. Names of models have no kind:
// hf://ORG/NAME/model.safetensors. A revision may follow the name of a dataset or a model:
// NAME@main, NAME@refs/convert/parquet.
//
// A branch is resolved to a commit once, when the first name of a dataset is looked for. All listings and
// reads are of that commit. A file is known by the hash of its content, which the listing has, so
// its fingerprint does not depend on the commit or the dataset.
//
// The token goes to the host of the hub only. Files are read from the address that the hub redirects to, until that
// address expires.
package hub

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/arrowio/internal/remote"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// Opener opens files of the hub. It implements blob.Opener.
type Opener struct {
	blob.Slashes
	web      *remote.Opener
	endpoint *url.URL
	source   string // of the token

	mu      sync.Mutex
	commits map[string]string       // by dataset with its revision
	lists   map[string]blob.Catalog // by directory, with "/**" for all below it
}

// New returns an opener for the endpoint and the token of the environment: HF_ENDPOINT, and HF_TOKEN or the
// file that "hf auth login" writes.
func New(web *remote.Opener, getenv func(string) string) (*Opener, error) {
	text := getenv("HF_ENDPOINT")
	if text == "" {
		text = "https://huggingface.co"
	}
	endpoint, err := url.Parse(strings.TrimSuffix(text, "/"))
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "https" && endpoint.Scheme != "http" {
		return nil, status.New(status.InvalidArgument, "arrowio", "HF_ENDPOINT is not the address of a hub").WithHint("set it to https://huggingface.co, or remove it")
	}
	endpoint.User, endpoint.RawQuery = nil, ""
	web.Explain = denied
	token, source := tokenOf(getenv)
	if token != "" {
		web.Authorize = func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+token)
			return nil
		}
	}
	return &Opener{web: web, endpoint: endpoint, source: source, commits: map[string]string{}, lists: map[string]blob.Catalog{}}, nil
}

// denied explains that the hub denies access.
func denied(r *http.Response, _ []byte) *remote.Refusal {
	if r.StatusCode != http.StatusUnauthorized && r.StatusCode != http.StatusForbidden {
		return nil
	}
	return &remote.Refusal{
		Code: status.IO, What: fmt.Sprintf("the server denies access (%s)", r.Status),
		Hint: "check the name; for a private or gated dataset, accept its conditions on its page, and set HF_TOKEN or run: hf auth login",
	}
}

// tokenOf returns the token of the environment, or "", and where it comes from.
func tokenOf(getenv func(string) string) (token, source string) {
	if token = strings.TrimSpace(getenv("HF_TOKEN")); token != "" {
		return token, "HF_TOKEN"
	}
	if path := getenv("HF_TOKEN_PATH"); path != "" {
		token, source = local.Text(path), "the file of HF_TOKEN_PATH"
	} else if home := getenv("HF_HOME"); home != "" {
		token, source = local.Text(home, "token"), "the file token in HF_HOME"
	} else {
		token, source = local.Text(getenv("HOME"), ".cache", "huggingface", "token"), "the file that hf auth login writes"
	}
	if token == "" {
		source = "none: anonymous"
	}
	return token, source
}

// Source returns where the token comes from.
func (op *Opener) Source() string { return op.source }

// Counts returns what was read through the opener so far.
func (op *Opener) Counts() remote.Counts { return op.web.Counts() }

// Hints implements blob.Opener.
func (op *Opener) Hints() blob.Hints { return op.web.Hints() }

// place is what a name says: a dataset, and a path in it.
type place struct {
	root     string // the name of the dataset as it was given, with its revision
	kind     string // "datasets" or "models"
	dataset  string // ORG/NAME
	revision string
	path     string // "" for the dataset itself
}

// names matches the names of datasets, and of models, which have no kind. Two kinds of revisions have slashes.
var names = regexp.MustCompile(`^(hf://(datasets/)?([^/@]+/[^/@]+)(?:@(refs/convert/[^/]+|refs/pr/[^/]+|[^/]+))?)(?:/(.*))?$`)

func placeOf(name string) (p place, err error) {
	m := names.FindStringSubmatch(name)
	if m == nil || m[2] == "" && (strings.HasPrefix(m[3], "datasets/") || strings.HasPrefix(m[3], "spaces/")) {
		return p, status.Errorf(status.Unsupported, "arrowio", "%s: this does not name a dataset of the hub", name).
			WithHint("write hf://datasets/ORG/NAME/PATH, or hf://datasets/ORG/NAME@REVISION/PATH").With("path", name)
	}
	if m[4] == "" {
		m[4] = "main"
	}
	revision, err := url.PathUnescape(m[4])
	if err != nil {
		revision = m[4]
	}
	return place{m[1], cmp.Or(strings.TrimSuffix(m[2], "/"), "models"), m[3], revision, m[5]}, nil
}

// address returns an address of the endpoint. Each part is escaped.
func (op *Opener) address(parts ...string) *url.URL {
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	at := *op.endpoint
	at.RawPath = at.EscapedPath() + "/" + strings.Join(parts, "/")
	at.Path, _ = url.PathUnescape(at.RawPath)
	return &at
}

// split returns the parts of a path, or none.
func split(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}

var commit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// Commits returns the commits that names of datasets stand for, as far as they are known.
func (op *Opener) Commits() map[string]string {
	op.mu.Lock()
	defer op.mu.Unlock()
	return maps.Clone(op.commits)
}

// Pin makes names of datasets stand for commits. It is called before the first search.
func (op *Opener) Pin(commits map[string]string) error {
	for name, sha := range commits {
		if p, err := placeOf(name); err != nil || p.root != name || !commit.MatchString(sha) {
			return status.Errorf(status.InvalidArgument, "arrowio", "%s is no dataset of the hub with the commit %q", name, sha).
				WithHint("give what another process has resolved, unchanged")
		}
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	maps.Copy(op.commits, commits)
	return nil
}

// commit returns the commit of a revision, which is asked for once.
func (op *Opener) commit(ctx context.Context, p place) (string, error) {
	op.mu.Lock()
	if commit.MatchString(p.revision) {
		op.commits[p.root] = p.revision
	}
	known := op.commits[p.root]
	op.mu.Unlock()
	if known != "" {
		return known, nil
	}
	at := op.address(append([]string{"api", p.kind}, append(split(p.dataset), "revision", p.revision)...)...)
	at.RawQuery = "expand=sha"
	answer, _, err := op.get(ctx, p.root, at)
	if err != nil {
		return "", err
	}
	sha, _ := answer.Get("sha").Text()
	if !commit.MatchString(sha) {
		return "", damaged(p.root, "the hub names no commit for the revision")
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	op.commits[p.root] = sha
	return sha, nil
}

// get returns a document of the hub, and the header Link.
func (op *Opener) get(ctx context.Context, name string, at *url.URL) (v jsontext.Value, link string, err error) {
	text, header, err := op.web.Get(ctx, name, at)
	if err != nil {
		return nil, "", err
	}
	if v, err = jsontext.Parse(text); err != nil {
		return nil, "", damaged(name, fmt.Sprintf("the answer of the hub is no JSON: %v", err))
	}
	return v, header.Get("Link"), nil
}

func damaged(name, what string) error {
	return status.Errorf(status.DataLoss, "arrowio", "%s: %s", name, what).
		WithHint("check HF_ENDPOINT and the proxy, and try again").With("path", name)
}
