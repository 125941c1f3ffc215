// Package strategy plans how to split a model over devices: it computes what every
// way of splitting takes in memory and time, and ranks them.
package strategy

// Advise evaluates every mesh of the devices that the model can use, and ranks them
// by the expected time of a step among those that fit. The error is InvalidArgument,
// with a JSON Pointer in its attribute "path".
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
	e := newEvaluator(p)
	kept := found.kept(p.keep)
	for i := range kept {
		if err := e.resume(&kept[i]); err != nil {
			return nil, err
		}
		r.Candidates = append(r.Candidates, e.candidate())
	}
	if len(r.Candidates) > 0 && r.Candidates[0].Fits {
		r.Best = 0
	}
	return r, nil
}

func (p *planner) summary() ModelSummary {
	s := ModelSummary{Name: p.model.name, Parameters: p.model.parameters, ActiveParameters: p.model.active, GigaFLOPsPerStep: -1}
	if p.model.forward >= 0 {
		s.GigaFLOPsPerStep = share(p.model.forward, 3*p.batch, 1_000_000_000)
	}
	return s
}

var (
	defaultEfficiency = [2]int{400, 600}
	defaultOverlap    = [numAxes]bool{pipeAxis: true, dataAxis: true, fsdpAxis: true, contextAxis: true}
)
