package source

import (
	"context"
	"crypto/sha256"
	"fmt"
)

// Component is a part of what a fingerprint covers, such as a file, its record batches or a filter.
// The components of a dataset form a tree: a view has the components of the datasets below it. If
// two fingerprints differ, so does the hash of the root. The reason is the first component with
// another hash and with equal components below it.
type Component struct {
	Label string      // such as "filter", the same on every host
	Name  string      // the path of a file, which may differ from host to host; else empty
	Stamp string      // what its storage says of its content, such as an ETag; "" if that says nothing
	Hash  Fingerprint // covers the component and the components below it
	Below []Component
}

// ComponentsOf returns the components of a source, which may be the root alone.
func ComponentsOf(ctx context.Context, src Source) (Component, error) {
	if components := src.Facts().Components; components != nil {
		return components(ctx)
	}
	f, err := src.Fingerprint(ctx)
	return Component{Label: "values", Hash: f}, err
}

// SchemaComponent returns the component of a schema: names, types and shapes of the fields.
func SchemaComponent(s Schema) Component {
	h := sha256.New()
	for _, f := range s.Fields {
		fmt.Fprintf(h, "%q %q\n", f.Name, f.TypeString())
	}
	c := Component{Label: "schema"}
	copy(c.Hash[:], h.Sum(nil))
	return c
}

// Cut removes the components that exceed a number, level by level from the root. Either
// all components directly below another one stay, or none of them.
func (c *Component) Cut(most int) {
	level := []*Component{c}
	for left := most - 1; len(level) > 0; {
		var next []*Component
		for _, parent := range level {
			if len(parent.Below) > left {
				parent.Below = nil
			}
			left -= len(parent.Below)
			for i := range parent.Below {
				next = append(next, &parent.Below[i])
			}
		}
		level = next
	}
}
