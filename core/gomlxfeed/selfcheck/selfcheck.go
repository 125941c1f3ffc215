// Package selfcheck checks that batches arrive unchanged on the devices of a
// backend, and measures the speed. The command runs it as
//
//	meshfeed devices SPEC --check
//
// It needs only a backend: no files, no network, no compiler. Every shard is read
// back from its device and compared with the bytes of the source.
package selfcheck

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Options configure a self-check.
type Options struct {
	// Duration is the approximate time of the measurements; one minute if zero.
	Duration time.Duration

	// Seed determines the random meshes, layouts and bytes.
	Seed uint64

	// Small reduces the amount of data, for tests of the self-check.
	Small bool

	// Progress, if set, is called with the name of each part before it runs.
	Progress func(part string)
}

// Result is the outcome of one check.
type Result struct {
	Name    string  `json:"name"`
	Passed  bool    `json:"passed"`
	Text    string  `json:"text"` // what was compared, or the error
	Seconds float64 `json:"seconds"`
}

// Report is the result of a self-check.
type Report struct {
	Facts   gomlxfeed.Facts   `json:"devices"`
	Machine map[string]string `json:"machine"`
	Seed    uint64            `json:"seed"`
	Checks  []Result          `json:"checks"`
	Rates   []Rates           `json:"rates"`
	Steps   []Steps           `json:"steps"`
	Untimed string            `json:"untimed,omitempty"` // why there are no measurements
}

// Passed reports whether every check passed.
func (r *Report) Passed() bool {
	for _, c := range r.Checks {
		if !c.Passed {
			return false
		}
	}
	return true
}

// errMismatch reports that the devices hold other bytes than the source.
var errMismatch = errors.New("mismatch")

// Run checks and measures the devices. Nothing else may use them meanwhile. A check
// that fails is part of the report. Run returns an error only if the context ends.
func Run(ctx context.Context, d *gomlxfeed.Devices, o Options) (*Report, error) {
	if o.Duration <= 0 {
		o.Duration = time.Minute
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	r := &Report{Facts: d.Facts(), Machine: machine(), Seed: o.Seed}
	s := session{d: d, o: o, random: rand.New(rand.NewPCG(o.Seed, 1))}
	for _, c := range s.checks() {
		o.Progress(c.name)
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

// session is one self-check of one backend.
type session struct {
	d      *gomlxfeed.Devices
	o      Options
	random *rand.Rand
}

// check is one check. Its function returns what it compared.
type check struct {
	name string
	do   func(ctx context.Context) (compared string, err error)
}

// run runs a check and turns a panic of the backend into an error.
func run(ctx context.Context, c check) (text string, err error) {
	err = guard.Call("selfcheck", func() (err error) {
		text, err = c.do(ctx)
		return err
	})
	return text, err
}
