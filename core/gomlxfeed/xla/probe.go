//go:build cgo && (linux || darwin)

package xla

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"github.com/gomlx/go-xla/pjrt"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/gomlxfeed/xla/internal/library"
	"github.com/meshfeed/meshfeed/core/status"
)

// probe is one trial of a plugin. It does everything that opening does, and puts
// and gets an array on every device in each way that a batch may use.
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
	if err := skipMetadataServer(); err != nil {
		return gomlxfeed.Facts{}, err
	}
	plugins.Lock()
	defer plugins.Unlock()
	return tryOut(&probe{path: spec.Path, options: o, ctx: ctx, stage: stage})
}

// skipMetadataServer stops libtpu from querying the cloud's metadata server on a
// machine without a TPU, which would take minutes. It changes the environment, so
// it may run in a child process only.
func skipMetadataServer() error {
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

// tryOut runs the steps of a trial. The caller holds the lock of plugins.
func tryOut(p *probe) (gomlxfeed.Facts, error) {
	for _, step := range []struct {
		doing string
		run   func() error
	}{
		{"loading the plugin", p.load},
		{"initializing the plugin", p.initialize},
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

func (p *probe) initialize() error {
	_, err := p.plugin.register(unknown)
	return err
}

// create creates a client to learn its platform. If the platform needs other
// options, create replaces the client by another one. CUDA plugins are recognized
// before the first client, because that client would take all memory of a GPU.
func (p *probe) create() error {
	known, err := pjrt.GetPlugin(p.plugin.names[unknown])
	if err != nil {
		return failed("be initialized", err)
	}
	guess := unknown
	if _, found := known.Attributes()["cuda_version"]; found {
		guess = cuda
	}
	if err := p.connect(known, guess); err != nil {
		return err
	}
	p.kind = kindOf(p.facts.Platform)
	if err := p.options.check(p.kind, p.facts.Platform); err != nil {
		return err
	}
	if p.kind == guess || reflect.DeepEqual(p.options.client(p.kind), p.options.client(guess)) {
		return nil
	}
	if err := p.end(); err != nil {
		return err
	}
	return p.connect(known, p.kind)
}

func (p *probe) connect(known *pjrt.Plugin, as kind) (err error) {
	if p.client, err = known.NewClient(p.options.client(as)); err != nil {
		return explained(as, failed("create a client", err))
	}
	p.facts.Platform = p.client.Platform()
	if p.facts.Platform == "" {
		return fail(status.Incompatible, "its client does not report a platform")
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
			return fail(status.Unsupported, "its devices %d and %d have the same hardware id %d, but GoMLX identifies devices by this id", first, i, id).
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

// abandon destroys the client of a failed trial in a process that continues.
func (p *probe) abandon() {
	if p.client != nil {
		_ = p.client.Destroy() // the error of the trial is reported
	}
}

// shares reports whether buffers are host memory that meshfeed may write to. Only
// CPUs compute on host memory. A client of another platform may have the function
// too, but would be slow or wrong.
func (p *plugin) shares(k kind, o options) bool {
	return k == cpu && o.shared && len(p.table.Missing(library.ForSharing())) == 0
}
