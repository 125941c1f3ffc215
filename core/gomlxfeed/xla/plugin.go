//go:build cgo && (linux || darwin)

package xla

import (
	"fmt"
	"strings"
	"sync"

	"github.com/gomlx/go-xla/pjrt"

	"github.com/meshfeed/meshfeed/core/gomlxfeed/xla/internal/library"
	"github.com/meshfeed/meshfeed/core/status"
)

// minMinor is the oldest tested minor version of the PJRT interface.
const minMinor = 81

// plugin is a loaded PJRT plugin, a shared library.
type plugin struct {
	path   string
	number int // in order of loading, from 1
	table  library.Table
	names  map[kind]string // names registered with go-xla
}

// plugins holds the loaded libraries of this process, by path. They stay loaded,
// because they cannot be unloaded and go-xla keeps them too. The list of plugins in
// go-xla is not locked, so the mutex is held while a plugin is opened.
var plugins struct {
	sync.Mutex
	byPath map[string]*plugin
}

// load loads a plugin and checks that it has the functions that go-xla calls. The
// caller holds the lock of plugins.
func load(path string) (*plugin, error) {
	if p, loaded := plugins.byPath[path]; loaded {
		return p, nil
	}
	table, err := library.Load(path)
	if err != nil {
		return nil, err
	}
	p := &plugin{path: path, number: len(plugins.byPath) + 1, table: table, names: map[kind]string{}}
	if err := p.check(); err != nil {
		return nil, err
	}
	if plugins.byPath == nil {
		plugins.byPath = map[string]*plugin{}
	}
	plugins.byPath[path] = p
	return p, nil
}

func (p *plugin) check() error {
	major, minor := p.table.Version()
	if major != 0 || minor < minMinor {
		return fail(status.Incompatible, "it has version %d.%d of the PJRT interface, but 0.%d or a later 0.x is needed", major, minor, minMinor).
			WithHint("use a later release of the plugin")
	}
	if missing := p.table.Missing(library.Required()); len(missing) > 0 {
		return fail(status.Incompatible, "it lacks %s, which GoMLX calls", strings.Join(missing, ", ")).
			WithHint("use a later release of the plugin")
	}
	return nil
}

// api returns the version of the PJRT interface as text.
func (p *plugin) api() string {
	major, minor := p.table.Version()
	return fmt.Sprintf("PJRT %d.%d", major, minor)
}

// register registers the plugin with go-xla under a name that contains its kind,
// and returns the name. go-xla derives the platform from the name. If the path were
// the name, go-xla would treat a CPU plugin in a folder "nvidia" as CUDA and would
// change XLA_FLAGS. The name has the form of an absolute path, because go-xla
// searches and downloads for other names.
func (p *plugin) register(as kind) (string, error) {
	if name, done := p.names[as]; done {
		return name, nil
	}
	name := fmt.Sprintf("/meshfeed/%d/%s", p.number, as)
	if err := pjrt.RegisterPreloadedPlugin(name, p.table.Address()); err != nil {
		return "", failed("be initialized", err)
	}
	p.names[as] = name
	return name, nil
}
