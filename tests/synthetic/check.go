package synthetic

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

func invalid(format string, args ...any) error {
	return status.Errorf(status.InvalidArgument, "synthetic", format, args...)
}

// checkPart refuses parts that the fields have not.
func (s *Source) checkPart(p source.Part) error {
	if p.Field < 0 || p.Field >= len(s.fields) {
		return invalid("there is no field %d", p.Field)
	}
	f := s.fields[p.Field]
	if p.To != dtype.Invalid && p.To != f.Type && p.To != f.Type.Narrow() {
		return invalid("field %q is %s, not %s", f.Name, f.Type, p.To)
	}
	if len(p.Boxes) == 0 {
		return invalid("a part of field %q has no boxes", f.Name)
	}
	for _, box := range p.Boxes {
		if len(box) != len(f.Shape) || (len(box) > 0 && !slices.Equal(box[1:], p.Boxes[0][1:])) {
			return invalid("box %v does not fit rows of shape %v", box, f.Shape)
		}
		for d, r := range box {
			if r[0] < 0 || r[1] < r[0] || r[1] > f.Shape[d] {
				return invalid("box %v does not lie within rows of shape %v", box, f.Shape)
			}
		}
	}
	return nil
}

// checkJob refuses jobs that do not fit the parts and the records.
func (g *gatherer) checkJob(j source.Job, records int) error {
	if j.Part < 0 || j.Part >= len(g.parts) || j.Rows[0] < 0 || j.Rows[1] < j.Rows[0] || j.Rows[1] > records {
		return invalid("job for part %d, rows %v of %d", j.Part, j.Rows, records)
	}
	if want := (j.Rows[1] - j.Rows[0]) * g.rowBytes(g.parts[j.Part]); len(j.Dst) != want {
		return invalid("job for %d bytes, not %d", len(j.Dst), want)
	}
	return nil
}

func (g *gatherer) rowBytes(p source.Part) int { return p.Bytes(g.to(p)) }

// to gives the type that is delivered.
func (g *gatherer) to(p source.Part) dtype.Type {
	if p.To == dtype.Invalid {
		return g.s.fields[p.Field].Type
	}
	return p.To
}
