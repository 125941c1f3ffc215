package packing

// Forget drops the plans in memory.
func (p *Plan) Forget() { p.plans.clear() }
