package parts

import (
	"github.com/meshfeed/meshfeed/arrowio/internal/diskcache"
	"github.com/meshfeed/meshfeed/arrowio/internal/units"
)

// fetch begins to fetch the bytes of the first parts in the queue, if reads take long. Before that it claims each
// part: it locks the scratch file of the part, so that one process of a host fetches it. As much is
// claimed as may be held in memory, again whenever half of that has been written. The caller holds the lock.
func (s *set) fetch() {
	files := s.cache.files
	if !files.Fetches() || s.claimed > files.Reads.Ahead/2 {
		return
	}
	var batches []int32
	for _, p := range s.queue {
		if s.claimed >= files.Reads.Ahead {
			break
		}
		if p.claim != nil || s.cache.folder.Has(p.key) {
			continue
		}
		if p.claim, _ = s.cache.folder.Create(p.key); p.claim != nil { // a worker finds an error again
			p.claimedBytes = s.storedBytes(p)
			s.claimed += p.claimedBytes
			batches = p.appendBatches(batches)
		}
	}
	files.Fetch(units.Wanted{Batches: batches, Fields: s.numbers})
}

// create begins to write a part. It returns nil if another process writes it, or has just written it.
func (s *set) create(p *state) (*diskcache.Scratch, error) {
	s.mu.Lock()
	scratch := p.claim
	p.claim = nil
	s.mu.Unlock()
	if scratch != nil {
		return scratch, nil
	}
	scratch, err := s.cache.folder.Create(p.key)
	if scratch != nil {
		s.cache.files.Fetch(units.Wanted{Batches: p.appendBatches(nil), Fields: s.numbers})
	}
	return scratch, err
}

// unclaim ends the use of what was fetched for a part. The caller holds the lock.
func (s *set) unclaim(p *state) {
	s.cache.files.Release(p.first, p.last, s.numbers)
	s.claimed -= p.claimedBytes
	p.claimedBytes = 0
	if p.claim != nil {
		p.claim.Abort()
		p.claim = nil
	}
}

func (p *state) appendBatches(list []int32) []int32 {
	for batch := p.first; batch < p.last; batch++ {
		list = append(list, int32(batch))
	}
	return list
}

// storedBytes returns how many bytes are stored for the fields of a part.
func (s *set) storedBytes(p *state) (total int64) {
	for batch := p.first; batch < p.last; batch++ {
		bytes := int64(0)
		for _, i := range s.numbers {
			if number, _ := p.file.Column(s.cache.files.Fields[i]); number >= 0 {
				for _, e := range p.file.Contents.Stored(batch-p.file.First, number) {
					bytes += e.Length
				}
			}
		}
		total += min(bytes, p.file.StoredBytes(batch-p.file.First)) // columns may share bytes
	}
	return total
}
