package host

import (
	"cmp"
	"context"
	"sync"

	"github.com/tetratelabs/wazero"

	"github.com/meshfeed/meshfeed/core/status"
)

// Validator is a compiled layout validator and its idle instances.
type Validator struct {
	options Options
	module  []byte
	cache   wazero.CompilationCache
	running chan struct{} // has an element for each call that runs

	mu      sync.Mutex
	engines [2]*engine // for calls that cannot be interrupted, and for calls that can
	idle    int        // instances of both
	closed  bool
}

// Open compiles a layout validator. The error is InvalidArgument for bytes that are
// not a WebAssembly module, and Incompatible for a module with other exports.
func Open(ctx context.Context, module []byte, o Options) (*Validator, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	v := &Validator{options: o, module: module, running: make(chan struct{}, o.MaxInstances)}
	if o.CacheDir != "" {
		if v.cache, err = wazero.NewCompilationCacheWithDir(o.CacheDir); err != nil {
			return nil, status.Errorf(status.IO, "host", "the cache in %s: %w", o.CacheDir, err)
		}
	}
	// The check does not count towards Options.Timeout.
	if err := v.lend(ctx, checkVersion); err != nil {
		_ = v.Close() // the first error is the cause
		return nil, err
	}
	return v, nil
}

func checkVersion(ctx context.Context, in *instance) error {
	version, err := in.call(ctx, "mf_version")
	if err == nil && version != Version {
		return status.Errorf(status.Incompatible, "host", "the module has version %d, but this release runs version %d", version, Version)
	}
	return err
}

// Close frees the module and all instances. It must not be called while
// another call runs.
func (v *Validator) Close() (err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	for _, e := range v.engines {
		if e != nil {
			err = cmp.Or(err, e.close())
		}
	}
	if v.cache != nil {
		err = cmp.Or(err, v.cache.Close(context.Background()))
	}
	v.engines, v.cache = [2]*engine{}, nil
	return err
}

// ask calls an export with an input.
func (v *Validator) ask(ctx context.Context, input []byte, name string, more ...uint64) (reply []byte, err error) {
	err = v.with(ctx, func(ctx context.Context, in *instance) error {
		reply, err = in.ask(ctx, input, name, more...)
		return err
	})
	return reply, err
}

// with calls use with an instance. It waits while MaxInstances calls run.
func (v *Validator) with(ctx context.Context, use func(ctx context.Context, in *instance) error) error {
	if v.options.Timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, v.options.Timeout)
		defer cancel()
		ctx = limited
	}
	if ctx.Err() == nil {
		select {
		case v.running <- struct{}{}:
			defer func() { <-v.running }()
		case <-ctx.Done():
		}
	}
	if cause := ctx.Err(); cause != nil {
		return status.Errorf(status.CodeOf(cause), "host", "the module was not asked: %w", cause)
	}
	return v.lend(ctx, use)
}

// lend calls use with an idle or a new instance.
func (v *Validator) lend(ctx context.Context, use func(ctx context.Context, in *instance) error) error {
	e, err := v.engine(ctx)
	if err != nil {
		return err
	}
	in, err := v.take(ctx, e)
	if err != nil {
		return err
	}
	err = use(ctx, in)
	v.release(e, in, err)
	return err
}

// engine returns the compilation of the module for calls with this context.
func (v *Validator) engine(ctx context.Context) (*engine, error) {
	which := 0
	if ctx.Done() != nil || v.options.Timeout > 0 {
		which = 1
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return nil, status.Closed("host", "the layout validator is closed")
	}
	if v.engines[which] == nil {
		e, err := v.compile(ctx, which == 1)
		if err != nil {
			return nil, err
		}
		v.engines[which] = e
	}
	return v.engines[which], nil
}

// take returns an idle instance, or else a new one.
func (v *Validator) take(ctx context.Context, e *engine) (*instance, error) {
	v.mu.Lock()
	if n := len(e.idle); n > 0 {
		in := e.idle[n-1]
		e.idle = e.idle[:n-1]
		v.idle--
		v.mu.Unlock()
		return in, nil
	}
	v.mu.Unlock()
	return e.instantiate(ctx)
}

// release keeps an instance for later calls, or closes it if it must not be used
// again.
func (v *Validator) release(e *engine, in *instance, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil || v.closed || v.idle >= v.options.MaxIdle || in.module.Memory().Size() > KeepMemory {
		_ = in.module.Close(context.Background()) // an error leaves nothing to do
		return
	}
	e.idle = append(e.idle, in)
	v.idle++
}
