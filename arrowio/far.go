//go:build !nofar

package arrowio

import (
	"context"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/remote"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// engine sends the requests of the process.
var engine = sync.OnceValue(func() *remote.Engine { return remote.New(nil) })

func init() {
	Register("http", openWeb)
	Register("https", openWeb)
}

func openWeb(_ context.Context, s Settings) (blob.Opener, error) {
	if err := s.allowsFar(); err != nil {
		return nil, err
	}
	return web{remote.NewOpener(engine())}, nil
}

// allowsFar returns an error if the environment forbids all connections.
func (s Settings) allowsFar() error {
	if s.Getenv("MESHFEED_FAR") != "off" {
		return nil
	}
	return status.New(status.Unsupported, "arrowio", "MESHFEED_FAR is off, so no connection is made").
		WithHint("remove the variable from the environment, or give paths of this machine")
}

// web is an opener with the counts of a dataset.
type web struct{ *remote.Opener }

// Fetched returns what was read so far.
func (w web) Fetched() source.Fetched { return source.Fetched(w.Counts()) }
