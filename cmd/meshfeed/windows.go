package main

import (
	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/status"
)

// windowsOptions select an order with windows. verify prints how well it shuffles.
type windowsOptions struct {
	order string
	batch int64
}

func (o *windowsOptions) flags(cmd *cobra.Command) {
	orderFlag(cmd, &o.order, "; prints how well it shuffles")
	cmd.Flags().Int64Var(&o.batch, "batch-size", 0, "rows of a global batch, for --order")
}

// windowFacts describes the windows of an order, with the keys of a diagnosis document.
type windowFacts struct {
	Order   string `json:"order"` // the full name
	Blocks  int64  `json:"blocks"`
	Windows int64  `json:"windows"`
	Window  int64  `json:"window"`
	Records int64  `json:"records"`
	Bytes   int64  `json:"bytes"` // bytes of the fields that can be arrays
	Percent int64  `json:"variance_percent"`

	quality sampler.Quality
}

// windows returns the facts of the order for a dataset, or nil if no order is given.
func (o windowsOptions) windows(cmd *cobra.Command, ds *arrowio.Dataset) (*windowFacts, error) {
	if o.order == "" && o.batch == 0 {
		return nil, nil
	}
	if o.order == "" || o.batch < 1 {
		return nil, usage(cmd, "--order and --batch-size go together, and a batch has at least 1 row")
	}
	if o.batch > ds.Len() && ds.Len() > 0 {
		return nil, status.Errorf(status.InvalidArgument, "verify", "--batch-size is %s, but the dataset has %s", grouped(o.batch), counted(ds.Len(), "record")).
			WithHint("give a batch that the dataset can fill")
	}
	run := sampler.Run{Batch: o.batch, Records: ds.Len(), Units: ds.Facts().Units()}
	for _, f := range ds.Schema().Fixed() {
		run.RowBytes += int64(ds.Schema().Fields[f].RowBytes())
	}
	full := sampler.Full(o.order)
	if sampler.IsDerived(full) && full != "local" {
		var err error
		if full, err = sampler.Derive(full, run); err != nil {
			return nil, err
		}
	}
	var w sampler.Windows
	order, err := sampler.NewOf(full, 0, run.Units)
	known := false
	if err == nil {
		w, known = sampler.WindowsOf(order)
	}
	if !known || w.Blocks == 0 {
		return nil, noWindows(o.order, ds.Len(), err)
	}
	q := w.Quality(o.batch, run.RowBytes)
	return &windowFacts{full, q.Blocks, q.Windows, q.Window, q.Records, q.Bytes, q.Percent, q}, nil
}

// noWindows returns the error of an order that does not exist or has no windows.
func noWindows(order string, records int64, err error) error {
	switch {
	case err != nil && order != "local":
		return err
	case records == 0:
		return status.New(status.InvalidArgument, "verify", "the dataset has no records, so that no order has windows")
	}
	return status.Errorf(status.InvalidArgument, "verify", "order %q has no windows", order).
		WithHint("give blocks or blocks:W:B; a shuffle draws every batch from all records")
}
