//go:build cgo && (linux || darwin)

package xla

import (
	"context"
	"strings"

	xlabackend "github.com/gomlx/go-xla/compute/xla"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/gomlxfeed/xla/internal/environ"
	"github.com/meshfeed/meshfeed/core/status"
)

// go-xla's initialization, which runs before this init, may change the environment.
func init() { environ.Restore() }

type opener struct{}

// Open implements gomlxfeed.Opener.
func (opener) Open(ctx context.Context, spec gomlxfeed.Spec, facts *gomlxfeed.Facts) (gomlxfeed.Opened, error) {
	o, err := parseOptions(spec)
	if err != nil {
		return gomlxfeed.Opened{}, err
	}
	plugins.Lock()
	defer plugins.Unlock()
	if facts == nil {
		trial := probe{options: o, path: spec.Path, ctx: ctx, stage: func(string) {}}
		found, err := tryOut(&trial)
		if err != nil {
			trial.abandon()
			return gomlxfeed.Opened{}, err
		}
		facts = &found
	}
	p, err := load(spec.Path)
	if err != nil {
		return gomlxfeed.Opened{}, err
	}
	backend, err := p.open(o, kindOf(facts.Platform))
	if err != nil {
		return gomlxfeed.Opened{}, err
	}
	if got, want := backend.NumDevices(), len(facts.Devices); got != want {
		backend.Finalize()
		return gomlxfeed.Opened{}, fail(status.Incompatible, "it had %d devices in the preflight, but has %d now", want, got)
	}
	return gomlxfeed.Opened{Name: facts.Name, Platform: facts.Platform, API: facts.API, DTypes: facts.DTypes, Backend: backend}, nil
}

// open creates the backend. It sets explicitly whether buffers share memory,
// because go-xla would derive this from the name.
func (p *plugin) open(o options, k kind) (*xlabackend.Backend, error) {
	name, err := p.register(k)
	if err != nil {
		return nil, err
	}
	config := name + ",noshared_buffers"
	if p.shares(k, o) {
		config = name + ",shared_buffers"
	}
	xlabackend.EnableAutoInstall(false) // go-xla must not download plugins in this process
	backend, err := xlabackend.NewWithOptions(config, o.client(k))
	if err != nil {
		return nil, explained(k, failed("create a client", err))
	}
	return backend, nil
}

// nameOf returns the name of the devices of a platform: "xla-cpu", "xla-cuda".
func nameOf(platform string) string {
	if k := kindOf(platform); k != other {
		return "xla-" + string(k)
	}
	return "xla-" + strings.ToLower(platform)
}
