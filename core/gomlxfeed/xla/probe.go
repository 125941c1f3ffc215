//go:build cgo && (linux || darwin)

package xla

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/gomlx/go-xla/pjrt"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/gomlxfeed/xla/internal/library"
	"github.com/meshfeed/meshfeed/core/status"
)

// probe is one trial of a plugin: everything that opening it will do, and a put
// and a get on every device, in each way that will be used.
type probe struct {
	path    string
	options options
	ctx     context.Context
	stage   func(doing string)
	plugin  *plugin
	client  *pjrt.Client
	kind    kind
	facts   gomlxfeed.Facts
}

// Probe implements gomlxfeed.Opener.
func (opener) Probe(ctx context.Context, spec gomlxfeed.Spec, stage func(doing string)) (gomlxfeed.Facts, error) {
	o, err := parseOptions(spec)
	if err != nil {
		return gomlxfeed.Facts{}, err
	}
	if err := spareMetadata(); err != nil {
		return gomlxfeed.Facts{}, err
	}
	plugins.Lock()
	defer plugins.Unlock()
	return tryOut(&probe{path: spec.Path, options: o, ctx: ctx, stage: stage})
}

// spareMetadata keeps libtpu from asking the cloud what kind of machine this
// is where there is no TPU: it asks for minutes. It changes the environment, so
// it is for child processes.
func spareMetadata() error {
	const variable = "TPU_SKIP_MDS_QUERY"
	if _, set := os.LookupEnv(variable); set {
		return nil
	}
	for _, pattern := range []string{"/dev/accel*", "/dev/vfio/[0-9]*"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return nil
		}
	}
	return os.Setenv(variable, "1")
}

// tryOut goes through the steps of a trial. plugins is locked.
func tryOut(p *probe) (gomlxfeed.Facts, error) {
	for _, step := range []struct {
		doing string
		run   func() error
	}{
		{"loading the plugin", p.load},
		{"initialising the plugin", p.initialise},
		{"creating a client", p.create},
		{"listing the devices", p.list},
		{"placing on the devices", p.place},
		{"destroying the client", p.end},
	} {
		if err := p.ctx.Err(); err != nil {
			return gomlxfeed.Facts{}, fail(status.CodeOf(err), "%w", err)
		}
		p.stage(step.doing)
		if err := step.run(); err != nil {
			return gomlxfeed.Facts{}, err
		}
	}
	return p.facts, nil
}

func (p *probe) load() (err error) {
	p.plugin, err = load(p.path)
	return err
}

func (p *probe) initialise() error {
	_, err := p.plugin.known(unknown)
	return err
}

// create creates a client in order to hear what it runs on, and another where
// that needs other options. Only CUDA tells beforehand: plugins have no common
// way to say it, and a GPU's memory would be taken whole.
func (p *probe) create() error {
	known, err := pjrt.GetPlugin(p.plugin.names[unknown])
	if err != nil {
		return failed("be initialised", err)
	}
	guess := unknown
	if _, says := known.Attributes()["cuda_version"]; says {
		guess = cuda
	}
	if err := p.connect(known, guess); err != nil {
		return err
	}
	p.kind = kindOf(p.facts.Platform)
	if err := p.options.check(p.kind, p.facts.Platform); err != nil {
		return err
	}
	if p.kind == guess || maps.EqualFunc(p.options.client(p.kind), p.options.client(guess), same) {
		return nil
	}
	if err := p.end(); err != nil {
		return err
	}
	return p.connect(known, p.kind)
}

func same(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

func (p *probe) connect(known *pjrt.Plugin, as kind) (err error) {
	if p.client, err = known.NewClient(p.options.client(as)); err != nil {
		return explained(as, failed("create a client", err))
	}
	p.facts.Platform = p.client.Platform()
	if p.facts.Platform == "" {
		return fail(status.Incompatible, "its client does not say what it runs on")
	}
	return nil
}

func (p *probe) list() error {
	p.facts.Name, p.facts.API = nameOf(p.facts.Platform), p.plugin.api()
	p.facts.Shared = p.plugin.shares(p.kind, p.options)
	holders := map[int]int{}
	for i, d := range p.client.AddressableDevices() {
		id := d.LocalHardwareID()
		if first, taken := holders[id]; taken {
			return fail(status.Unsupported, "its devices %d and %d have the same hardware id %d, and GoMLX knows the device of a buffer by that id", first, i, id).
				WithHint("ask for one device, if the plugin has such an option")
		}
		holders[id] = i
		about, err := d.GetDescription()
		if err != nil {
			return failed(fmt.Sprintf("describe device %d", i), err)
		}
		p.facts.Devices = append(p.facts.Devices, about.DebugString())
	}
	if len(p.facts.Devices) == 0 {
		return fail(status.Unsupported, "its client has no devices")
	}
	return nil
}

func (p *probe) end() error {
	if err := p.client.Destroy(); err != nil {
		return failed("destroy a client", err)
	}
	return nil
}

// abandon ends what a trial that failed has left, in a process that goes on.
func (p *probe) abandon() {
	if p.client != nil {
		_ = p.client.Destroy() // the trial's error says more
	}
}

// shares says whether the memory of buffers is used as it stands. Only CPUs
// compute on the host's memory; a client of another platform may have the
// function too, and would be slow or wrong.
func (p *plugin) shares(k kind, o options) bool {
	return k == cpu && o.shared && len(p.table.Missing(library.ForSharing())) == 0
}
