package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/diagnosis"
	"github.com/meshfeed/meshfeed/core/diagnosis/document"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/status"
)

func newBench() *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench LAYOUT.json FILE…",
		Short: "measure rows and bytes per second of a layout, and name the limit",
		Long: `Loads the batches of one process as fast as possible and drops them, to measure the loader alone.
For comparison, it also times a plain copy of the same number of bytes. Below the numbers it names what
limits the loader, as loader.report() does for a whole loop in Python.

With --jax, it measures batches that are ready on the devices that JAX sees, for a --time or a number of
--batches, and without --process. That runs in the Python package: see meshfeed bench --jax --help.`,
		Example: "  meshfeed bench layout.json train-*.arrow\n  meshfeed bench --process 3 --time 10s --json layout.json data/\n  meshfeed bench --order blocks layout.json train-*.parquet",
		Args:    need(2, -1, "a layout document and files"),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0], args[1:]) },
	}
	f := cmd.Flags()
	f.IntVar(&o.process, "process", 0, "the process to load blocks for")
	f.DurationVar(&o.time, "time", 3*time.Second, "how long to measure, after the first epoch or a third of this; at least 5 batches")
	f.BoolVar(&o.sequential, "sequential", false, "in the order of the files instead of shuffled")
	orderFlag(cmd, &o.order, "; default: shuffle")
	f.StringVar(&o.files.IO, "io", "auto", "auto, map or read")
	f.StringVar(&o.files.Cache, "cache", "auto", "where decoded rows are kept: auto, memory or a folder")
	datasetFlags(cmd, &o.files, &o.json)
	f.BoolVar(&o.jax, "jax", false, "with arrays on JAX's devices; only in the Python package")
	return cmd
}

type benchOptions struct {
	process          int
	time             time.Duration
	order            string
	sequential, json bool
	jax              bool
	files            arrowio.Options
}

// run measures and prints how fast the batches of a layout are loaded from files.
func (o benchOptions) run(cmd *cobra.Command, path string, files []string) error {
	if o.jax {
		return status.New(status.Unsupported, "bench", "--jax needs JAX and runs in the Python package only").
			WithHint("run: python -m meshfeed bench --jax, and the same arguments")
	}
	if err := exclusive(cmd, "sequential", "order"); err != nil {
		return err
	}
	l, err := readLayout(cmd, path)
	if err != nil {
		return err
	}
	ds, err := arrowio.OpenFiles(cmd.Context(), files, o.files)
	if err != nil {
		return err
	}
	defer ds.Close()
	update, finish := newProgress(cmd.ErrOrStderr(), "measuring")
	m, err := o.measure(cmd.Context(), ds, l, update)
	finish()
	if err != nil {
		return err
	}
	if o.json {
		return writeJSON(cmd.OutOrStdout(), m)
	}
	return m.print(cmd.OutOrStdout())
}

// measurement is the JSON that the command prints. P50 and P99 are percentiles of
// the time that Next takes.
type measurement struct {
	Process       int             `json:"process"`
	Order         string          `json:"order"` // the full name
	Batches       int             `json:"batches"`
	Rows          int64           `json:"rows"`
	Bytes         int64           `json:"bytes"`
	Seconds       float64         `json:"seconds"`
	RowsPerSecond float64         `json:"rows_per_second"`
	BytesPerSec   float64         `json:"bytes_per_second"`
	First         float64         `json:"first_batch_seconds"`
	FirstDecode   float64         `json:"first_batch_decode_seconds"` // in which it waited for decompression
	Decoding      float64         `json:"decoding_seconds"`           // processor time of all decompression, including the first batch
	P50           float64         `json:"p50_seconds"`
	P99           float64         `json:"p99_seconds"`
	Gather        float64         `json:"gather_seconds_per_batch"`
	Copy          float64         `json:"copy_seconds_per_batch"`
	Report        json.RawMessage `json:"report"` // the diagnosis

	diagnosis *diagnosis.Report
}

// measure loads batches for o.time. It reports progress in nanoseconds.
func (o benchOptions) measure(ctx context.Context, ds *arrowio.Dataset, l *layout.Layout, progress func(done, total int64)) (*measurement, error) {
	if o.time <= 0 {
		return nil, status.Errorf(status.InvalidArgument, "bench", "--time %v is not a duration to measure for", o.time)
	}
	if known := l.Mesh().Processes(); !slices.Contains(known, o.process) {
		return nil, status.Errorf(status.InvalidArgument, "bench", "process %d has no devices in this layout, so it would load nothing", o.process).
			WithHint("its processes have numbers from %d to %d", known[0], known[len(known)-1])
	}
	began := time.Now()
	order := cmp.Or(o.order, sampler.Shuffle)
	if o.sequential {
		order = sampler.Sequential
	}
	options := loader.Options{Layout: l, Process: o.process, Order: order, Epochs: -1}
	feed, err := loader.NewContext(ctx, ds, options)
	if err != nil {
		return nil, err
	}
	defer feed.Close()
	if err := take(ctx, feed); err != nil {
		return nil, err
	}
	m := &measurement{Process: o.process, Order: feed.State().Order, First: time.Since(began).Seconds(), FirstDecode: feed.Stats().Decode.Seconds()}
	if err := warmUp(ctx, feed, o.time/3); err != nil {
		return nil, err
	}
	if err := m.run(ctx, feed, o.time, progress); err != nil {
		return nil, err
	}
	m.Copy = copySeconds(m.Bytes / int64(m.Batches))
	return m, nil
}

// warmUp loads the rest of the first epoch, for at most the given time.
func warmUp(ctx context.Context, feed *loader.Loader, most time.Duration) error {
	for end := time.Now().Add(most); feed.Epoch() == 0 && time.Now().Before(end); {
		if err := take(ctx, feed); err != nil {
			return err
		}
	}
	return nil
}

// take loads the next batch and releases it.
func take(ctx context.Context, feed *loader.Loader) error {
	b, err := feed.Next(ctx)
	if err != nil {
		return err
	}
	b.Release()
	return nil
}

// run loads batches for the given time, and sets the results.
func (m *measurement) run(ctx context.Context, feed *loader.Loader, most time.Duration, progress func(done, total int64)) error {
	before, began := feed.Stats(), time.Now()
	var waits []float64
	for last := began; last.Sub(began) < most || len(waits) < diagnosis.MinBatches; {
		if err := take(ctx, feed); err != nil {
			return err
		}
		now := time.Now()
		waits = append(waits, now.Sub(last).Seconds())
		last = now
		progress(min(int64(last.Sub(began)), int64(most)), int64(most))
	}
	wall := time.Since(began)
	measured := feed.Measured(before, wall)
	measured.Dropped = true
	after := feed.Stats()
	m.Decoding = after.Decoding.Running.Seconds()
	m.diagnosis = diagnosis.Diagnose(measured)
	m.Report = document.Report(m.diagnosis)
	m.Seconds = wall.Seconds()
	m.Batches = len(waits)
	m.Rows, m.Bytes = after.Rows-before.Rows, after.Bytes-before.Bytes
	m.RowsPerSecond, m.BytesPerSec = float64(m.Rows)/m.Seconds, float64(m.Bytes)/m.Seconds
	m.Gather = (after.Gather - before.Gather).Seconds() / float64(m.Batches)
	slices.Sort(waits)
	m.P50, m.P99 = waits[len(waits)/2], waits[len(waits)*99/100]
	return nil
}

// copySeconds returns the median time in seconds of a copy of n bytes.
func copySeconds(n int64) float64 {
	from, to := make([]byte, n), make([]byte, n)
	copy(to, from) // not timed: the first access to a page allocates it
	times := make([]float64, 21)
	for i := range times {
		began := time.Now()
		copy(to, from)
		times[i] = time.Since(began).Seconds()
	}
	slices.Sort(times)
	return times[len(times)/2]
}

func (m *measurement) print(out io.Writer) error {
	_, err := fmt.Fprintf(out, `process %d, %s in %.2f s, order %s

  %s rows per second, %s per second
  a batch every %s; waits: median %s, p99 %s, for the first %s
  gathering takes %s per batch, a plain copy of its bytes %s
%s
%s`, m.Process, counted(m.Batches, "batch"), m.Seconds, m.Order,
		grouped(int64(m.RowsPerSecond)), sized(int64(m.BytesPerSec)),
		spent(m.Seconds/float64(m.Batches)), spent(m.P50), spent(m.P99), spent(m.First), spent(m.Gather), spent(m.Copy), m.decoded(), document.Text(m.diagnosis))
	return err
}

// decoded is the line about decompression. If decoded rows are kept, most of it is done before
// the measurement begins.
func (m *measurement) decoded() string {
	if m.Decoding == 0 {
		return ""
	}
	return fmt.Sprintf("  decompressing took %s of processor time in all; the first batch waited %s for it\n", spent(m.Decoding), spent(m.FirstDecode))
}

// spent formats seconds with three digits.
func spent(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}
