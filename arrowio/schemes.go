package arrowio

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/files"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/core/status"
)

// Settings are what an opener may need to know about the program.
type Settings struct {
	Getenv func(name string) string // returns a variable of the environment, or ""
}

// schemes has the openers of URLs.
var schemes = struct {
	sync.Mutex
	open map[string]func(context.Context, Settings) (blob.Opener, error)
}{open: map[string]func(context.Context, Settings) (blob.Opener, error){}}

// Register makes the functions of this package open URLs of a scheme, such as "az". They call open once
// for each dataset with such names, and nothing before that. An earlier opener of the scheme is
// replaced.
func Register(scheme string, open func(context.Context, Settings) (blob.Opener, error)) {
	schemes.Lock()
	defer schemes.Unlock()
	schemes.open[strings.ToLower(scheme)] = open
}

// admits is an opener of addresses with secrets, which names do not have: see files.Public.
type admits interface {
	Admit(name, address string) error
}

// pins is an opener of names that stand for commits, such as a branch: see [Dataset.Commits].
type pins interface {
	Commits() map[string]string
	Pin(commits map[string]string) error
}

// route returns the opener of some patterns, and the patterns without secrets.
func (o *Options) route(ctx context.Context, patterns []string) (blob.Opener, []string, error) {
	if o.Opener != nil {
		return o.Opener, patterns, nil
	}
	kind, first := "", ""
	for i, p := range patterns {
		own := kindOf(p)
		if i == 0 {
			kind, first = own, p
		}
		if own != kind {
			return nil, nil, status.Errorf(status.InvalidArgument, "arrowio", "%s and %s are kept in two kinds of storage, and a dataset of files has one", files.Public(first), files.Public(p)).
				WithHint("open them apart, and join the datasets: mf.concat (Go: view.Concat)")
		}
	}
	if kind == "" {
		return local.Opener{}, patterns, nil
	}
	schemes.Lock()
	open, known := schemes.open[kind], slices.Sorted(maps.Keys(schemes.open))
	schemes.Unlock()
	if open == nil {
		return nil, nil, unknownScheme(first, kind, known)
	}
	settings := Settings{Getenv: o.Getenv}
	if settings.Getenv == nil {
		settings.Getenv = local.Getenv
	}
	opener, err := open(ctx, settings)
	if p, ok := opener.(pins); ok && err == nil {
		err = p.Pin(o.Commits)
	}
	if err != nil {
		return nil, nil, err
	}
	public, err := admit(opener, patterns)
	return opener, public, err
}

// OpenerOf returns the opener of a name, as [Open] uses it, and the name without secrets. It is for programs
// that look at a storage itself. Only the options Getenv, Opener and Commits count.
func OpenerOf(ctx context.Context, name string, o Options) (blob.Opener, string, error) {
	opener, public, err := o.route(ctx, []string{name})
	if err != nil {
		return nil, "", err
	}
	return opener, public[0], nil
}

// SourceOf says where the credentials of an opener come from, such as "HF_TOKEN". It is empty if that is not
// known, as before the first request to some stores.
func SourceOf(o blob.Opener) string {
	if s, ok := o.(interface{ Source() string }); ok {
		return s.Source()
	}
	return ""
}

// kindOf returns the scheme of a name, with one for both kinds of web servers.
func kindOf(name string) string {
	if s := files.Scheme(name); s != "http" {
		return s
	}
	return "https"
}

// admit tells an opener the addresses that patterns stand for, and returns the patterns without secrets.
func admit(opener blob.Opener, patterns []string) ([]string, error) {
	to, ok := opener.(admits)
	if !ok {
		return patterns, nil
	}
	public := make([]string, len(patterns))
	for i, p := range patterns {
		public[i] = files.Public(p)
		if public[i] == p {
			continue
		}
		addresses, err := files.Numbered(p)
		if err != nil {
			return nil, err
		}
		for _, a := range addresses {
			if err := to.Admit(files.Public(a), a); err != nil {
				return nil, err
			}
		}
	}
	return public, nil
}

// unknownScheme returns the error for a URL that nothing opens.
func unknownScheme(name, scheme string, known []string) error {
	only := ""
	if len(known) > 0 {
		only = ", only of " + strings.Join(known, ", ")
	}
	return status.Errorf(status.Unsupported, "arrowio", "%s: nothing here opens URLs of the scheme %q%s", files.Public(name), scheme, only).
		WithHint("copy the files to this machine, or mount what holds them, and give their paths").With("path", files.Public(name))
}
