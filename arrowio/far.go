//go:build !nofar

package arrowio

import (
	"context"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/bucket"
	"github.com/meshfeed/meshfeed/arrowio/internal/hub"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/arrowio/internal/remote"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// engine sends the requests of the process. The first dataset makes it.
var engine struct {
	sync.Once
	made *remote.Engine
}

// engine returns the engine of the process, with the proxies and the authorities of the environment at its first call.
func (s Settings) engine() *remote.Engine {
	engine.Do(func() {
		local.Adopt(s.Getenv, "HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR")
		engine.made = remote.New(nil)
		engine.made.Shared = local.UserTimes("busy")
		for _, name := range []string{"AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"} {
			if file := s.Getenv(name); file != "" {
				engine.made.Trust(name, local.Text(file))
			}
		}
	})
	return engine.made
}

func init() {
	Register("http", openWeb)
	Register("https", openWeb)
	Register("hf", openHub)
	Register("s3", openBucket(bucket.NewS3))
	Register("gs", openBucket(bucket.NewGoogle))
}

// openBucket returns what opens a kind of store.
func openBucket(open func(*remote.Opener, func(string) string) (*bucket.Opener, error)) func(context.Context, Settings) (blob.Opener, error) {
	return func(_ context.Context, s Settings) (blob.Opener, error) {
		if err := s.allowsFar(); err != nil {
			return nil, err
		}
		o, err := open(remote.NewOpener(s.engine()), s.Getenv)
		if err != nil {
			return nil, err
		}
		return metered{o, o}, nil
	}
}

func openHub(_ context.Context, s Settings) (blob.Opener, error) {
	if err := s.allowsFar(); err != nil {
		return nil, err
	}
	o, err := hub.New(remote.NewOpener(s.engine()), s.Getenv)
	if err != nil {
		return nil, err
	}
	return pinned{metered{o, o}, o}, nil
}

func openWeb(_ context.Context, s Settings) (blob.Opener, error) {
	if err := s.allowsFar(); err != nil {
		return nil, err
	}
	o := remote.NewOpener(s.engine())
	return web{metered{o, o}, o}, nil
}

// allowsFar returns an error if the environment forbids all connections.
func (s Settings) allowsFar() error {
	if s.Getenv("MESHFEED_FAR") != "off" {
		return nil
	}
	return status.New(status.Unsupported, "arrowio", "MESHFEED_FAR is off, so no connection is made").
		WithHint("remove the variable from the environment, or give paths of this machine")
}

// metered is an opener that counts what a dataset reads.
type metered struct {
	blob.Opener
	counts interface{ Counts() remote.Counts }
}

// Fetched returns what was read so far.
func (c metered) Fetched() source.Fetched { return source.Fetched(c.counts.Counts()) }

// Source returns where the credentials come from.
func (c metered) Source() string { return SourceOf(c.Opener) }

// pinned is an opener of names that stand for commits.
type pinned struct {
	metered
	pins
}

// web is an opener of addresses, which may have secrets.
type web struct {
	metered
	admits
}
