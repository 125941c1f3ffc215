package strategy

import (
	"cmp"
	"slices"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/problem"
)

// Advise evaluates every mesh of the devices that the model can use. It ranks the meshes
// that fit by the expected time of a step. The error is InvalidArgument, with a JSON
// Pointer in its attribute "path".
func Advise(d *Document) (*Report, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	p, err := newPlanner(d)
	if err != nil {
		return nil, err
	}
	meshes := p.enumerate()
	found, err := p.rank(meshes)
	if err != nil {
		return nil, err
	}
	r := &Report{Model: p.summary(), Devices: d.Cluster.Devices, Evaluated: found.evaluated, Meshes: found.meshes, Pruned: meshes.pruned, Best: -1}
	kept := found.kept(p.keep, p.fastest)
	if err := r.describe(p, kept); err != nil {
		return nil, err
	}
	r.check(p)
	slices.SortStableFunc(r.Problems, func(a, b problem.Problem) int { return cmp.Compare(severities[a.Severity], severities[b.Severity]) })
	r.Assumptions = p.assumptions(kept, r)
	return r, nil
}

// describe fills in the candidates, and the details of the best one.
func (r *Report) describe(p *planner, kept []score) error {
	e := newEvaluator(p)
	missing, order := map[string]string{}, []string(nil)
	for i := range kept {
		if err := e.setCandidate(&kept[i]); err != nil {
			return err
		}
		c := e.candidate()
		var best *Candidate
		if i > 0 {
			best = &r.Candidates[0]
		}
		c.Reasons = e.reasons(&c, best)
		if reason, path := e.missingNumber(); reason != "" && missing[path] == "" {
			missing[path] = reason
			order = append(order, path)
		}
		r.Candidates = append(r.Candidates, c)
	}
	r.unknownTimes(missing, order, p)
	if len(kept) == 0 || !r.Candidates[0].Fits {
		return nil
	}
	r.Best = 0
	return r.describeBest(e, &kept[0])
}

func (r *Report) describeBest(e *evaluator, best *score) error {
	if err := e.setCandidate(best); err != nil {
		return err
	}
	r.Collectives = e.collectives()
	r.Stages = e.stageList()
	r.Pipeline = e.pipeline()
	d := e.layout()
	if d == nil {
		r.problem(problem.Info, NoInputs, "/model/inputs", "the arrays of a batch are not known, so there is no layout", "give inputs, as the arrays of a layout without specs")
		return nil
	}
	l, err := layout.New(d)
	if err != nil {
		r.problem(problem.Warning, NoLayout, "/input", "the layout of the best candidate has an error: "+err.Error(), "")
		return nil
	}
	r.Layout = d
	r.Input = e.planner.needs(l, &r.Candidates[0])
	r.checkInput(r.Input)
	return nil
}

func (p *planner) summary() ModelSummary {
	s := ModelSummary{Name: p.model.name, Parameters: p.model.parameters, ActiveParameters: p.model.active, GigaFLOPsPerStep: -1}
	if p.model.forward >= 0 {
		s.GigaFLOPsPerStep = round(3 * float64(p.model.forward) * float64(p.batch) / 1e9)
	}
	return s
}
