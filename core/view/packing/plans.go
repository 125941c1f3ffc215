package packing

import "sync"

// maxPlanBytes bounds the plans of groups that stay in memory.
const maxPlanBytes = 256 << 20

// plans keeps the plans of groups that were used last.
type plans struct {
	mu    sync.Mutex
	kept  map[int]*kept
	bytes int
	clock int64
}

type kept struct {
	*group
	used int64
}

// get returns the plan of a group, or nil.
func (p *plans) get(i int) *group {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.kept[i]
	if k == nil {
		return nil
	}
	p.clock++
	k.used = p.clock
	return k.group
}

// put keeps the plan of a group, and drops those that were not used for longest.
func (p *plans) put(i int, g *group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept == nil {
		p.kept = map[int]*kept{}
	}
	p.drop(i)
	p.clock++
	p.kept[i] = &kept{g, p.clock}
	p.bytes += g.bytes()
	for p.bytes > maxPlanBytes && len(p.kept) > 1 {
		oldest := i
		for n, k := range p.kept {
			if k.used < p.kept[oldest].used {
				oldest = n
			}
		}
		p.drop(oldest)
	}
}

// clear drops all plans.
func (p *plans) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept, p.bytes = nil, 0
}

func (p *plans) drop(i int) {
	if k := p.kept[i]; k != nil {
		p.bytes -= k.bytes()
		delete(p.kept, i)
	}
}
