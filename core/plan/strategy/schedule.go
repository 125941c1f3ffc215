package strategy

import (
	"cmp"
	"slices"

	"github.com/meshfeed/meshfeed/core/plan/pipeline"
	"github.com/meshfeed/meshfeed/internal/form"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// schedule is the order of a pipeline's work, with the chunks of layers per stage.
type schedule struct {
	kind   pipeline.Kind
	chunks int // 1 unless kind is interleaved
}

// addSchedules sets the kinds of schedules and the number of chunks to try. Without a
// schedule in the document these are 1F1B and the interleaved ones.
func (p *planner) addSchedules() error {
	t := &p.doc.Training
	p.chunks = t.Chunks
	if t.Schedule == "" || t.Schedule == Auto {
		p.kinds = []pipeline.Kind{pipeline.OneFOneB, pipeline.Interleaved}
		switch {
		case t.Chunks == 1:
			p.kinds = p.kinds[:1]
		case t.Chunks > 1:
			p.kinds = p.kinds[1:]
		}
		return nil
	}
	kind := pipeline.Kind(t.Schedule)
	switch names := append([]pipeline.Kind{Auto}, pipeline.Kinds()...); {
	case !slices.Contains(names, kind):
		return form.Strategy.Invalid("/training/schedule", "there is no schedule %s", wording.Quote(t.Schedule)).WithHint("%s", wording.Suggest(t.Schedule, names))
	case kind == pipeline.Interleaved && t.Chunks == 1:
		return form.Strategy.Invalid("/training/chunks", "schedule %q needs at least 2 chunks of layers, but there is 1", kind).WithHint("use 2, or schedule %q", pipeline.OneFOneB)
	case kind != pipeline.Interleaved && t.Chunks > 1:
		return form.Strategy.Invalid("/training/chunks", "schedule %q has 1 chunk of layers per stage, but there are %d", kind, t.Chunks).WithHint("leave chunks out, or use schedule %q", pipeline.Interleaved)
	}
	p.kinds = []pipeline.Kind{kind}
	return nil
}

// schedules lists the schedules to try for a pipeline. An interleaved one needs equal
// chunks of layers. The first and the last chunk may have one layer less. More chunks make
// stages idle for less time and keep fewer activations, and send more messages. So the
// fewest and the most chunks are tried, unless the document names a number.
func (p *planner) schedules(pipe int) (list []schedule) {
	if pipe == 1 {
		return []schedule{{pipeline.OneFOneB, 1}}
	}
	for _, kind := range p.kinds {
		if kind != pipeline.Interleaved {
			list = append(list, schedule{kind, 1})
			continue
		}
		fewest, most := p.equalChunks(pipe, 0)
		if fewest == 0 {
			fewest, most = p.equalChunks(pipe, 2)
		}
		if fewest > 0 {
			list = append(list, schedule{kind, fewest})
		}
		if most > fewest {
			list = append(list, schedule{kind, most})
		}
	}
	return list
}

// equalChunks returns the fewest and the most chunks per stage that leave so many
// layers missing, or 0.
func (p *planner) equalChunks(pipe, layers int) (fewest, most int) {
	for chunks := max(2, p.chunks); pipe*chunks <= p.model.layers+layers && (p.chunks == 0 || chunks == p.chunks); chunks++ {
		if missing(p.model.layers, pipe*chunks) <= layers {
			fewest, most = cmp.Or(fewest, chunks), chunks
		}
	}
	return fewest, most
}

// interleaved reports whether every schedule to try is interleaved.
func (p *planner) interleaved() bool { return p.kinds[0] == pipeline.Interleaved }
