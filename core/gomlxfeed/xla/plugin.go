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

// oldest is the oldest minor version of the interface that was tried.
const oldest = 81

// plugin is a loaded library.
type plugin struct {
	path   string
	number int // among those of this process, from 1
	table  library.Table
	names  map[kind]string // under which go-xla knows it
}

// plugins are the libraries of this process, by path. They are kept, because
// they cannot be unloaded and go-xla keeps them by name too. Its list has no
// lock for what is done here, so the mutex is held while anything is opened.
var plugins struct {
	sync.Mutex
	byPath map[string]*plugin
}

// load loads a plugin and makes sure that its functions can be called.
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
	if major != 0 || minor < oldest {
		return fail(status.Incompatible, "it has version %d.%d of the PJRT interface, and 0.%d or a later 0.x is needed", major, minor, oldest).
			WithHint("take a later release of the plugin")
	}
	if missing := p.table.Missing(library.Required()); len(missing) > 0 {
		return fail(status.Incompatible, "it lacks %s, which GoMLX calls", strings.Join(missing, ", ")).
			WithHint("take a later release of the plugin")
	}
	return nil
}

// api is the version as text.
func (p *plugin) api() string {
	major, minor := p.table.Version()
	return fmt.Sprintf("PJRT %d.%d", major, minor)
}

// known registers the plugin with go-xla under a name that says what it runs
// on, and gives the name. go-xla derives from the name what it takes a plugin
// for: with the path as a name, a CPU plugin below a folder "nvidia" would be
// taken for CUDA, and would have XLA_FLAGS changed. The name is an absolute
// path, since go-xla searches and downloads for all others.
func (p *plugin) known(as kind) (string, error) {
	if name, done := p.names[as]; done {
		return name, nil
	}
	name := fmt.Sprintf("/meshfeed/%d/%s", p.number, as)
	if err := pjrt.RegisterPreloadedPlugin(name, p.table.Address()); err != nil {
		return "", failed("be initialised", err)
	}
	p.names[as] = name
	return name, nil
}
