package host

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/meshfeed/meshfeed/core/status"
)

// maxOutput bounds the standard error of an instance.
const maxOutput = 64 << 10

// instance is one running module. It serves one goroutine.
type instance struct {
	module api.Module
	stderr *output // if Go's runtime ends the program, it writes the reason there
	limit  int     // bytes of memory
}

// output keeps writes until it has maxOutput bytes.
type output struct{ bytes.Buffer }

func (w *output) Write(p []byte) (int, error) {
	if w.Len() < maxOutput {
		_, _ = w.Buffer.Write(p)
	}
	return len(p), nil
}

// instantiate starts an instance with the clocks of the system. wazero's default
// clock jumps ahead at every reading, and Go's garbage collector would not finish.
func (e *engine) instantiate(ctx context.Context) (*instance, error) {
	in := &instance{stderr: &output{}, limit: int(e.pages) * pageSize}
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize").
		WithSysNanotime().WithSysWalltime().WithSysNanosleep().WithStderr(in.stderr)
	module, err := e.runtime.InstantiateModule(ctx, e.compiled, config)
	if err != nil {
		return nil, in.failed(ctx, "_initialize", err)
	}
	in.module = module
	return in, nil
}

// ask writes the input, calls an export, and copies the reply.
func (in *instance) ask(ctx context.Context, input []byte, name string, more ...uint64) ([]byte, error) {
	at, err := in.call(ctx, "mf_input", uint64(len(input)))
	if err != nil {
		return nil, err
	}
	if at == 0 || !in.module.Memory().Write(uint32(at), input) {
		return nil, status.Errorf(status.ResourceExhausted, "host", "the module takes no input of %d bytes", len(input))
	}
	return in.reply(ctx, name, append([]uint64{uint64(len(input))}, more...)...)
}

// reply calls an export and copies the reply. The upper half of the result is the
// address of the reply in the module's memory, the lower half its length.
func (in *instance) reply(ctx context.Context, name string, args ...uint64) ([]byte, error) {
	where, err := in.call(ctx, name, args...)
	if err != nil {
		return nil, err
	}
	text, ok := in.module.Memory().Read(uint32(where>>32), uint32(where))
	if !ok {
		return nil, status.Errorf(status.Internal, "host", "%s: the reply lies outside the memory", name)
	}
	return slices.Clone(text), nil
}

func (in *instance) call(ctx context.Context, name string, args ...uint64) (uint64, error) {
	results, err := in.module.ExportedFunction(name).Call(ctx, args...)
	if err != nil {
		return 0, in.failed(ctx, name, err)
	}
	if len(results) != 1 {
		return 0, status.Errorf(status.Incompatible, "host", "%s returns %d results instead of one", name, len(results))
	}
	return results[0], nil
}

// failed returns the error of a call during which the instance ended.
func (in *instance) failed(ctx context.Context, name string, err error) error {
	if cause := ctx.Err(); cause != nil {
		return status.Errorf(status.CodeOf(cause), "host", "%s: %w", name, cause)
	}
	first, _, _ := strings.Cut(in.stderr.String(), "\n")
	if strings.Contains(first, "out of memory") {
		return status.Errorf(status.ResourceExhausted, "host", "%s needs more than %d MiB of memory", name, in.limit>>20).
			WithHint("ask about less at once, or raise Options.MemoryPages")
	}
	e := status.Errorf(status.Internal, "host", "%s: the module trapped: %w", name, err)
	if first != "" {
		e = e.WithHint("it said: %s", first)
	}
	return e
}
