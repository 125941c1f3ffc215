// Package host runs the layout validator's WebAssembly module from Go: the one
// that a page has, or that somebody published, instead of the code of this
// release. The module is sandboxed: it sees a clock and the bytes it is given,
// no files, no network and no environment.
//
//	v, err := host.Open(ctx, module, host.Options{})
//	defer v.Close()
//	reply, err := v.Describe(ctx, text) // JSON, as package answer documents it
//
// A Validator may be used by any number of goroutines. Every call has an
// instance of the module to itself; an instance that trapped, that was
// interrupted, or that has grown is not used again.
package host

import (
	"context"
	"encoding/binary"
	"math"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/meshfeed/meshfeed/core/status"
)

// Version is the version of the exports that this package understands.
const Version = 1

// Bounds on an instance's memory.
const (
	MaxMemory  = 256 << 20 // an instance that asks for more has failed
	KeepMemory = 128 << 20 // one that has more is not used again
	pageSize   = 64 << 10
)

// Options of a validator.
type Options struct {
	// CacheDir keeps compiled modules, which saves half a second at every
	// Open. Empty for none.
	CacheDir string
}

// Validator is a compiled module and its idle instances.
type Validator struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	cache    wazero.CompilationCache

	mu     sync.Mutex
	idle   []*instance
	closed bool
}

// Open compiles a module. The error is InvalidArgument for bytes that are no
// such module, and Incompatible for one with other exports.
func Open(ctx context.Context, module []byte, o Options) (*Validator, error) {
	config := wazero.NewRuntimeConfig().WithMemoryLimitPages(MaxMemory / pageSize).WithCloseOnContextDone(true)
	v := &Validator{}
	if o.CacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(o.CacheDir)
		if err != nil {
			return nil, status.Errorf(status.IO, "host", "the cache in %s: %w", o.CacheDir, err)
		}
		v.cache = cache
		config = config.WithCompilationCache(cache)
	}
	v.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	if err := v.compile(ctx, module); err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
}

func (v *Validator) compile(ctx context.Context, module []byte) error {
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, v.runtime); err != nil {
		return status.Errorf(status.Internal, "host", "WASI: %w", err)
	}
	compiled, err := v.runtime.CompileModule(ctx, module)
	if err != nil {
		return status.Errorf(status.InvalidArgument, "host", "the file is no WebAssembly module: %w", err).
			WithHint("make wasm builds one as .build/meshfeed.wasm")
	}
	v.compiled = compiled
	for _, name := range exports {
		if compiled.ExportedFunctions()[name] == nil {
			return status.Errorf(status.Incompatible, "host", "the module does not export %s, so it is no layout validator", name).
				WithHint("make wasm builds one as .build/meshfeed.wasm")
		}
	}
	in, err := v.take(ctx)
	if err != nil {
		return err
	}
	version, err := in.call(ctx, "mf_version")
	v.give(in, err)
	if err == nil && version != Version {
		return status.Errorf(status.Incompatible, "host", "the module has version %d, but this release runs version %d", version, Version)
	}
	return err
}

// Close frees the module and all instances. It must not be called while
// another call runs.
func (v *Validator) Close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed, v.idle = true, nil
	err := v.runtime.Close(context.Background())
	if v.cache != nil {
		if e := v.cache.Close(context.Background()); err == nil {
			err = e
		}
	}
	return err
}

// Describe answers about a layout document.
func (v *Validator) Describe(ctx context.Context, text []byte) (reply []byte, err error) {
	return v.ask(ctx, text, "mf_describe")
}

// Samples answers about an order.
func (v *Validator) Samples(ctx context.Context, question []byte) (reply []byte, err error) {
	return v.ask(ctx, question, "mf_samples")
}

// Schema answers about the file of size bytes that ends with the tail.
func (v *Validator) Schema(ctx context.Context, tail []byte, size int64) (reply []byte, err error) {
	return v.ask(ctx, tail, "mf_schema", math.Float64bits(float64(size)))
}

func (v *Validator) ask(ctx context.Context, input []byte, name string, more ...uint64) (reply []byte, err error) {
	err = v.with(ctx, func(in *instance) error {
		reply, err = in.ask(ctx, input, name, more...)
		return err
	})
	return reply, err
}

// Table names a part of one of the tables about a document.
type Table struct{ Array, What, From, Count uint32 }

// Tables answers about a layout document with the parts of tables asked for,
// in their order.
func (v *Validator) Tables(ctx context.Context, text []byte, parts ...Table) (tables [][]float64, err error) {
	err = v.with(ctx, func(in *instance) error {
		if _, err := in.ask(ctx, text, "mf_describe"); err != nil {
			return err
		}
		for _, p := range parts {
			reply, err := in.reply(ctx, "mf_table", uint64(p.Array), uint64(p.What), uint64(p.From), uint64(p.Count))
			if err != nil {
				return err
			}
			tables = append(tables, numbers(reply))
		}
		return nil
	})
	return tables, err
}

func numbers(reply []byte) []float64 {
	list := make([]float64, len(reply)/8)
	for i := range list {
		list[i] = math.Float64frombits(binary.LittleEndian.Uint64(reply[8*i:]))
	}
	return list
}

// with lends an instance to use.
func (v *Validator) with(ctx context.Context, use func(in *instance) error) error {
	in, err := v.take(ctx)
	if err != nil {
		return err
	}
	err = use(in)
	v.give(in, err)
	return err
}

// take gives an idle instance, or a new one.
func (v *Validator) take(ctx context.Context) (*instance, error) {
	v.mu.Lock()
	if v.closed {
		v.mu.Unlock()
		return nil, status.New(status.InvalidState, "host", "the validator is closed")
	}
	if n := len(v.idle); n > 0 {
		in := v.idle[n-1]
		v.idle = v.idle[:n-1]
		v.mu.Unlock()
		return in, nil
	}
	v.mu.Unlock()
	return v.instantiate(ctx)
}

// give takes an instance back, unless it is not to be used again.
func (v *Validator) give(in *instance, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil || v.closed || in.module.Memory().Size() > KeepMemory {
		_ = in.module.Close(context.Background()) // whatever it held is gone with it
		return
	}
	v.idle = append(v.idle, in)
}
