package host

import "context"

// planning is the kind of the modules that a Planner runs.
var planning = kind{"strategy planner", []string{"_initialize", "mf_version", "mf_input", "mf_advise", "mf_catalog", "mf_diagram"}, ".build/strategy.wasm"}

// Planner is a compiled strategy planner and its idle instances.
type Planner struct{ machine }

// OpenPlanner compiles a strategy planner. The errors are those of [Open].
func OpenPlanner(ctx context.Context, module []byte, o Options) (*Planner, error) {
	p := &Planner{}
	if err := p.open(ctx, planning, module, o); err != nil {
		return nil, err
	}
	return p, nil
}

// Advise returns the reply about a strategy document.
func (p *Planner) Advise(ctx context.Context, text []byte) (reply []byte, err error) {
	return p.ask(ctx, text, "mf_advise")
}

// Catalog returns the models and the devices that a strategy document can name.
func (p *Planner) Catalog(ctx context.Context) (reply []byte, err error) {
	err = p.with(ctx, func(ctx context.Context, in *instance) error {
		reply, err = in.reply(ctx, "mf_catalog")
		return err
	})
	return reply, err
}

// Diagram returns the reply about a diagram document, drawn at most width pixels wide.
func (p *Planner) Diagram(ctx context.Context, text []byte, width int) (reply []byte, err error) {
	return p.ask(ctx, text, "mf_diagram", uint64(uint32(width)))
}
