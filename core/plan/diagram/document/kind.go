package document

import (
	"strings"

	"github.com/meshfeed/meshfeed/core/plan/diagram"
	"github.com/meshfeed/meshfeed/internal/form"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Kind is a kind of diagram.
type Kind struct {
	name, text string
	value      func(to *diagram.Spec) form.Value
}

// The kinds of diagrams.
var (
	Mesh       = Kind{"mesh", "The devices of a mesh.", deviceMesh}
	Matmul     = Kind{"matmul", "The product x @ w of partitioned matrices, and its communication.", matmul}
	Pipeline   = Kind{"pipeline", "The schedule of a pipeline over time.", pipelineSchedule}
	Collective = Kind{"collective", "A collective operation, step by step.", collectiveSteps}
	Memory     = Kind{"memory", "Bars of the memory of devices.", memoryBars}
	Loading    = Kind{"loading", "What each process reads with every way of loading a layout.", loading}
)

func all() []Kind {
	return []Kind{Mesh, Matmul, Pipeline, Collective, Memory, Loading}
}

// choice is the one kind of a document, and its diagram.
type choice struct {
	kind string
	spec diagram.Spec
}

func (c *choice) members(kinds []Kind) []*form.Member {
	var one []string
	for _, k := range kinds {
		one = append(one, `{"required":["`+k.name+`"]}`)
	}
	kind := form.With(`"oneOf":[`+strings.Join(one, ",")+"]", form.Object("a diagram", c.kinds(kinds)...))
	return []*form.Member{form.Key("diagram", kind, "The kind of the diagram, with its members.").Required()}
}

// kinds makes a member of each kind.
func (c *choice) kinds(kinds []Kind) (members []*form.Member) {
	for _, k := range kinds {
		members = append(members, form.Key(k.name, form.Before(func(r *jsontext.Reader) error {
			if c.spec != nil {
				return r.Fail("the diagram is already %s", wording.Quote(c.kind)).WithHint("use a document for each diagram")
			}
			c.kind = k.name
			return nil
		}, k.value(&c.spec)), k.text))
	}
	return members
}

// specOf makes the value of a kind. The diagram is d, with what the document says.
func specOf[T diagram.Spec](to *diagram.Spec, d *T, value form.Value) form.Value {
	return form.Checked(value, func(*jsontext.Reader) error {
		*to = *d
		return nil
	})
}
