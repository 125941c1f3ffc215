package host

import (
	"bytes"
	"context"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/meshfeed/meshfeed/core/status"
)

// engine is one compilation of the module, with its idle instances.
type engine struct {
	kind     kind
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	pages    uint32 // the largest memory of an instance, in pages of 64 KiB
	idle     []*instance
}

// compile compiles the module for calls that can be interrupted, or for calls
// that cannot. Code that cannot be interrupted is faster.
func (m *machine) compile(ctx context.Context, interruptible bool) (*engine, error) {
	config := wazero.NewRuntimeConfig().WithMemoryLimitPages(m.options.MemoryPages).WithCloseOnContextDone(interruptible)
	if m.cache != nil {
		config = config.WithCompilationCache(m.cache)
	}
	e := &engine{kind: m.kind, runtime: wazero.NewRuntimeWithConfig(ctx, config), pages: m.options.MemoryPages}
	if err := e.load(ctx, m.module); err != nil {
		_ = e.close() // the first error is the cause
		return nil, err
	}
	return e, nil
}

// hint explains where a module of the right kind comes from.
func (e *engine) hint() string { return "make wasm builds one as " + e.kind.file }

// refused returns the error for a module that cannot be compiled.
func (e *engine) refused(module []byte, err error) error {
	what, hint := "the module cannot be compiled", e.hint()
	if !bytes.HasPrefix(module, []byte("\x00asm")) {
		what = "the file is not a WebAssembly module"
	} else if e.pages < DefaultMemoryPages {
		hint = "if it needs more memory, raise Options.MemoryPages; " + hint
	}
	return status.Errorf(status.InvalidArgument, "host", what+": %w", err).WithHint("%s", hint)
}

// load compiles the module and checks that it has all exports.
func (e *engine) load(ctx context.Context, module []byte) (err error) {
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, e.runtime); err != nil {
		return status.Errorf(status.Internal, "host", "WASI: %w", err)
	}
	if e.compiled, err = e.runtime.CompileModule(ctx, module); err != nil {
		return e.refused(module, err)
	}
	for _, name := range e.kind.exports {
		if e.compiled.ExportedFunctions()[name] == nil {
			return status.Errorf(status.Incompatible, "host", "the module does not export %s, so it is not a %s", name, e.kind.name).
				WithHint("%s", e.hint())
		}
	}
	return nil
}

func (e *engine) close() error { return e.runtime.Close(context.Background()) }
