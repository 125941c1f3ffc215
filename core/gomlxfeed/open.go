package gomlxfeed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/gomlxfeed/internal/virtual"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// OpenOptions configure the preflight: the trial of a plugin in a child process,
// before this process loads it.
type OpenOptions struct {
	// NoPreflight loads a plugin without a preflight. A crash of the plugin then
	// ends this process.
	NoPreflight bool

	// Prober is the program that is started for the preflight. Its main must call
	// RunProbe first. The default is this program if it called RunProbe, else
	// `meshfeed` on PATH.
	Prober string

	// Timeout bounds the preflight; 20 s if zero. A TPU in use by other programs
	// can take longer.
	Timeout time.Duration
}

// Facts describe a backend.
type Facts struct {
	Name     string       `json:"name"`     // "go", "virtual", "xla-cpu", "xla-cuda", "xla-tpu"
	Platform string       `json:"platform"` // as the client names it, such as "cpu"
	API      string       `json:"api"`      // version of the plugin's interface, such as "PJRT 0.81"; "" without a plugin
	Shared   bool         `json:"shared"`   // the host can write into a buffer's memory, so that no transfer is needed
	Devices  []string     `json:"devices"`  // a description of each, by device number
	DTypes   []dtype.Type `json:"dtypes"`   // element types that can be placed
}

// An Opener opens the backends of one kind of specification. A package such as
// gomlxfeed/xla registers it when it is imported.
type Opener interface {
	// Probe tries everything that Open does, and one put and get, in a child
	// process that exits afterwards. Before each step it calls stage with a name
	// ("creating the client"), so that the report of a crash names the step. It
	// may change the environment and print, because only the child is affected.
	Probe(ctx context.Context, spec Spec, stage func(doing string)) (Facts, error)

	// Open opens the backend in this process. facts is the result of Probe, or
	// nil without a preflight. Open must not change the environment or standard
	// error. Messages of errors, here and in Probe, call the plugin "it", because
	// the caller puts the specification before them.
	Open(ctx context.Context, spec Spec, facts *Facts) (Opened, error)
}

// Opened is a backend that an Opener opened. The Devices own it from then on.
type Opened struct {
	Name     string // as in Facts
	Platform string
	API      string
	DTypes   []dtype.Type // element types that were placed and read back; nil means all types of GoMLX
	Backend  compute.Backend
}

var openers = map[string]Opener{} // by kind

// Register makes specifications of a kind available to Open. A package calls it
// when it is initialized. Registering a kind twice is a bug and panics.
func Register(kind string, o Opener) {
	if openers[kind] != nil {
		panic("gomlxfeed: kind " + kind + " is registered twice")
	}
	openers[kind] = o
}

func openerOf(spec Spec) (Opener, error) {
	if o, known := openers[spec.Kind]; known {
		return o, nil
	}
	if spec.Kind == "xla" {
		return nil, status.Errorf(status.Unsupported, "gomlxfeed", "%q: this program was built without XLA", spec).
			WithHint(`a Go program imports _ "github.com/meshfeed/meshfeed/core/gomlxfeed/xla"; the command and the C library are built with -tags xla, the Python package by MESHFEED_XLA=1 pip install .`)
	}
	return nil, fail("%q: %q is not a kind of devices", spec, spec.Kind).WithHint(specForms)
}

// Open opens the devices that spec names: "go", "virtual:N" or
// "xla:/absolute/plugin.so?devices=N". It takes at most one OpenOptions.
//
// A plugin is first tried in a child process (see OpenOptions). So a plugin that
// is damaged, hangs or is incompatible causes an error and not a crash. If the
// number of devices differs from devices=N, Open fails.
func Open(ctx context.Context, spec string, o ...OpenOptions) (*Devices, error) {
	if len(o) > 1 {
		return nil, fail("Open takes at most one OpenOptions, got %d", len(o))
	}
	var options OpenOptions
	if len(o) == 1 {
		options = o[0]
	}
	s, err := parseSpec(spec)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, notOpened(s, cancelled(err))
	}
	var opened Opened
	err = guard.Call("gomlxfeed", func() (err error) {
		opened, err = s.open(ctx, options)
		return err
	})
	if err != nil {
		return nil, err
	}
	return newDevices(s, opened)
}

// open opens the backend that s names. After a preflight it sets s.Devices to the
// number of devices that exist.
func (s *Spec) open(ctx context.Context, o OpenOptions) (Opened, error) {
	switch s.Kind {
	case "go":
		b, err := gobackend.New("")
		return Opened{Name: "go", Platform: "go", Backend: b}, err
	case "virtual":
		b, err := virtual.New(s.Devices)
		return Opened{Name: "virtual", Platform: "go", Backend: b}, err
	}
	return s.openPlugin(ctx, o)
}

func (s *Spec) openPlugin(ctx context.Context, o OpenOptions) (Opened, error) {
	opener, err := openerOf(*s)
	if err != nil {
		return Opened{}, err
	}
	opened, err := s.openWith(ctx, opener, o)
	return opened, notOpened(*s, err)
}

// openWith opens a plugin. Messages of errors do not contain the specification.
func (s *Spec) openWith(ctx context.Context, opener Opener, o OpenOptions) (Opened, error) {
	if err := checkFile(s.Path); err != nil {
		return Opened{}, err
	}
	if o.NoPreflight || !canStartProbers {
		return opener.Open(ctx, *s, nil)
	}
	facts, err := preflight(ctx, *s, o)
	if err != nil {
		return Opened{}, err
	}
	s.Devices = len(facts.Devices)
	return opener.Open(ctx, *s, &facts)
}

// notOpened puts the specification before the message of an error.
func notOpened(s Spec, err error) error {
	e, ok := errors.AsType[*status.Error](err)
	if !ok {
		return err
	}
	named := *e
	named.Msg = fmt.Sprintf("%q was not opened: %s", s, e.Msg)
	return &named
}

// canStartProbers is false on systems where a child process cannot inherit a pipe
// as file 3. Openers do not support these systems either and report it.
const canStartProbers = runtime.GOOS != "windows" && runtime.GOOS != "wasip1" && runtime.GOOS != "js" && runtime.GOOS != "plan9"

// checkFile reports a missing plugin file without starting a child process.
func checkFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return status.Errorf(status.NotFound, "gomlxfeed", "there is no file %s", path)
	case err != nil:
		return status.Errorf(status.IO, "gomlxfeed", "%w", err)
	case !info.Mode().IsRegular():
		return fail("%s is not a file", path).WithHint("name the shared library itself")
	}
	return nil
}

func cancelled(cause error) error {
	return status.Errorf(status.CodeOf(cause), "gomlxfeed", "%w", cause)
}
