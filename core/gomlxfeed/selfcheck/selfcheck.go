// Package selfcheck proves on the devices at hand that batches arrive right,
// and measures how fast. The command runs it as
//
//	meshfeed devices SPEC --check
//
// It needs a backend and nothing else: no files, no network, no compiler. Every
// shard is read back from its device and compared with the source's bytes.
package selfcheck

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Options say how much is done.
type Options struct {
	// Duration is about how long the measurements take; one minute if zero.
	Duration time.Duration

	// Seed chooses the meshes and layouts that are tried, and the bytes.
	Seed uint64

	// Small divides the data, for tests of the self-check.
	Small bool

	// Say, if set, is told what runs, for a display of progress.
	Say func(what string)
}

// Result is the outcome of one check.
type Result struct {
	Name    string  `json:"name"`
	Passed  bool    `json:"passed"`
	Text    string  `json:"text"` // facts, or what was found instead
	Seconds float64 `json:"seconds"`
}

// Report is everything that a self-check found.
type Report struct {
	Facts   gomlxfeed.Facts   `json:"devices"`
	Machine map[string]string `json:"machine"`
	Seed    uint64            `json:"seed"`
	Checks  []Result          `json:"checks"`
	Rates   []Rates           `json:"rates"`
	Steps   []Steps           `json:"steps"`
	Untimed string            `json:"untimed,omitempty"` // why there are no times
}

// Passed says whether every check holds.
func (r *Report) Passed() bool {
	for _, c := range r.Checks {
		if !c.Passed {
			return false
		}
	}
	return true
}

// errMismatch says that the devices hold other bytes than the source.
var errMismatch = errors.New("mismatch")

// Run checks and measures the devices, which nothing else uses meanwhile. A
// check that fails stands in the report. The error is that of the context.
func Run(ctx context.Context, d *gomlxfeed.Devices, o Options) (*Report, error) {
	if o.Duration <= 0 {
		o.Duration = time.Minute
	}
	if o.Say == nil {
		o.Say = func(string) {}
	}
	r := &Report{Facts: d.Facts(), Machine: machine(), Seed: o.Seed}
	s := session{d: d, o: o, random: rand.New(rand.NewPCG(o.Seed, 1))}
	for _, c := range s.checks() {
		o.Say(c.name)
		began := time.Now()
		text, err := run(ctx, c)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		result := Result{Name: c.name, Passed: err == nil, Text: text, Seconds: time.Since(began).Seconds()}
		if err != nil {
			result.Text = err.Error()
		}
		r.Checks = append(r.Checks, result)
	}
	if err := s.measure(ctx, r); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		r.Untimed = err.Error()
	}
	return r, nil
}

// session is one run over one backend.
type session struct {
	d      *gomlxfeed.Devices
	o      Options
	random *rand.Rand
}

type check struct {
	name string
	do   func(ctx context.Context) (facts string, err error)
}

// run turns a panic of a backend into an error.
func run(ctx context.Context, c check) (text string, err error) {
	err = guard.Call("selfcheck", func() (err error) {
		text, err = c.do(ctx)
		return err
	})
	return text, err
}
