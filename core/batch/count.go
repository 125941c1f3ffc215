package batch

import "sync/atomic"

// Count counts live batches and their bytes. A batch is live from New until Release
// or Take. The zero value is ready to use. A nil Count counts nothing. Its methods
// are safe for concurrent use.
type Count struct {
	batches, bytes atomic.Int64
}

// Live returns the number of live batches and of their bytes.
func (c *Count) Live() (batches, bytes int64) {
	if c == nil {
		return 0, 0
	}
	return c.batches.Load(), c.bytes.Load()
}

func (c *Count) add(batches, bytes int64) {
	if c == nil {
		return
	}
	c.batches.Add(batches)
	c.bytes.Add(bytes)
}
