package table

import "github.com/meshfeed/meshfeed/core/status"

// ragged is the error for a list of another length than all others.
func (w *walk) ragged(i, node int, length int64) error {
	return w.named(i, (&Uneven{w.r.field, w.s.records[i], node, length}).Status())
}

// damaged is the error for bytes that cannot be.
func (w *walk) damaged(i int, format string, args ...any) error {
	e := status.Errorf(status.DataLoss, "arrowio", "field %q: record %d: "+format, append([]any{w.r.field.Name, w.s.records[i]}, args...)...).
		WithHint("the data are damaged; write them again")
	return w.named(i, e)
}

// named adds to an error what it is about.
func (w *walk) named(i int, e *status.Error) error {
	e.With("field", w.r.field.Name).With("record", w.s.records[i])
	if w.s.g.table.Store == nil {
		return e
	}
	return w.s.g.table.Store.Named(w.s.batch[i], e)
}
