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
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	pages    uint32 // the largest memory of an instance, in pages of 64 KiB
	idle     []*instance
}

// compile compiles the module for calls that can be interrupted, or for calls
// that cannot. Code that cannot be interrupted is faster.
func (v *Validator) compile(ctx context.Context, interruptible bool) (*engine, error) {
	config := wazero.NewRuntimeConfig().WithMemoryLimitPages(v.options.MemoryPages).WithCloseOnContextDone(interruptible)
	if v.cache != nil {
		config = config.WithCompilationCache(v.cache)
	}
	e := &engine{runtime: wazero.NewRuntimeWithConfig(ctx, config), pages: v.options.MemoryPages}
	if err := e.load(ctx, v.module); err != nil {
		_ = e.close() // the first error is the cause
		return nil, err
	}
	return e, nil
}

// exports lists the functions of a layout validator.
var exports = []string{"_initialize", "mf_version", "mf_input", "mf_describe", "mf_table", "mf_samples", "mf_schema"}

const hint = "make wasm builds one as .build/meshfeed.wasm"

// refused returns the error for a module that cannot be compiled.
func (e *engine) refused(module []byte, err error) error {
	what, help := "the module cannot be compiled", hint
	if !bytes.HasPrefix(module, []byte("\x00asm")) {
		what = "the file is not a WebAssembly module"
	} else if e.pages < DefaultMemoryPages {
		help = "if it needs more memory, raise Options.MemoryPages; " + hint
	}
	return status.Errorf(status.InvalidArgument, "host", what+": %w", err).WithHint("%s", help)
}

// load compiles the module and checks that it has all exports.
func (e *engine) load(ctx context.Context, module []byte) (err error) {
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, e.runtime); err != nil {
		return status.Errorf(status.Internal, "host", "WASI: %w", err)
	}
	if e.compiled, err = e.runtime.CompileModule(ctx, module); err != nil {
		return e.refused(module, err)
	}
	for _, name := range exports {
		if e.compiled.ExportedFunctions()[name] == nil {
			return status.Errorf(status.Incompatible, "host", "the module does not export %s, so it is not a layout validator", name).
				WithHint("%s", hint)
		}
	}
	return nil
}

func (e *engine) close() error { return e.runtime.Close(context.Background()) }
