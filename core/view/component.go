package view

import (
	"context"

	"github.com/meshfeed/meshfeed/core/source"
)

// components returns the view over the components of the datasets below.
func (b *base) components(ctx context.Context) (c source.Component, err error) {
	c.Label = b.kind
	if c.Hash, err = b.Fingerprint(ctx); err != nil {
		return c, err
	}
	c.Below = make([]source.Component, len(b.below))
	for i, s := range b.below {
		if c.Below[i], err = source.ComponentsOf(ctx, s); err != nil {
			return c, err
		}
	}
	return c, nil
}

// components returns the steps. Each is a component over the one before.
func (c *chain) components(ctx context.Context) (top source.Component, err error) {
	err = c.call(ctx, func(ctx context.Context) error {
		if top, err = source.ComponentsOf(ctx, c.src); err != nil {
			return err
		}
		add := func(label string, f source.Fingerprint) {
			top = source.Component{Label: label, Hash: f, Below: []source.Component{top}}
		}
		for _, s := range c.steps {
			f, err := s.identify(ctx, top.Hash)
			if err != nil {
				return err
			}
			add(s.kind(), f)
		}
		if f := identifyFields(top.Hash, c.fields, c.src.Schema()); f != top.Hash {
			add("choice of fields", f)
		}
		return nil
	})
	return top, err
}

func (slice) kind() string { return "slice" }

func (take) kind() string { return "take" }

func (filter) kind() string { return "filter" }
