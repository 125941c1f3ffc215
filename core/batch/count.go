package batch

import "sync/atomic"

// Count counts batches and their bytes while Go owns them. The zero value is ready
// to use. A nil Count counts nothing. It is safe for concurrent use.
type Count struct {
	batches, bytes atomic.Int64
}

// Live returns how many batches were neither released nor taken, and their bytes.
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
