package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// located is a chunk. Its errors count records from its own first one, so they get the
// number of records of the stream before it.
type located struct {
	source.Source
	before int64
}

// Gatherer implements source.Source.
func (c *located) Gatherer(parts []source.Part) (source.Gatherer, error) {
	g, err := c.Source.Gatherer(parts)
	if err != nil {
		return nil, c.locate(err)
	}
	return &locatedGatherer{g, c}, nil
}

// locate adds the position of the chunk to an error. The attribute "record" becomes the
// number of the record in the stream.
func (c *located) locate(err error) error {
	if err == nil {
		return nil
	}
	e := status.Errorf(codeOf(err), "stream", "the chunk after %d records: %w", c.before, err)
	own, ok := err.(*status.Error)
	if !ok {
		return e
	}
	e.Msg, e.Hint = fmt.Sprintf("the chunk after %d records: %s", c.before, own.Msg), own.Hint // without the Go package
	for _, a := range own.Attrs {
		if record, ok := a.Value.(int64); ok && a.Key == "record" {
			a.Value = c.before + record
		}
		e.Attrs = append(e.Attrs, a)
	}
	return e
}

// codeOf returns the code of an error. An error without a code is one of the feed's own
// source, and counts as IO.
func codeOf(err error) status.Code {
	code := status.CodeOf(err)
	if own := new(status.Error); code == status.Internal && !errors.As(err, &own) {
		return status.IO
	}
	return code
}

type locatedGatherer struct {
	source.Gatherer
	chunk *located
}

// Gather implements source.Gatherer.
func (g *locatedGatherer) Gather(ctx context.Context, draw source.Draw, records []int64, jobs []source.Job) error {
	return g.chunk.locate(g.Gatherer.Gather(ctx, draw, records, jobs))
}
