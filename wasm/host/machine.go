package host

import (
	"cmp"
	"context"
	"sync"

	"github.com/tetratelabs/wazero"

	"github.com/meshfeed/meshfeed/core/status"
)

// kind is what a module does, with the functions that it must export.
type kind struct {
	name    string
	exports []string
	file    string // where make wasm builds one
}

// machine is a compiled module and its idle instances.
type machine struct {
	kind    kind
	options Options
	module  []byte
	cache   wazero.CompilationCache
	running chan struct{} // has an element for each call that runs

	mu      sync.Mutex
	engines [2]*engine // for calls that cannot be interrupted, and for calls that can
	idle    int        // instances of both
	closed  bool
}

// open compiles the module.
func (m *machine) open(ctx context.Context, k kind, module []byte, o Options) (err error) {
	if o, err = o.withDefaults(); err != nil {
		return err
	}
	m.kind, m.options, m.module, m.running = k, o, module, make(chan struct{}, o.MaxInstances)
	if o.CacheDir != "" {
		if m.cache, err = wazero.NewCompilationCacheWithDir(o.CacheDir); err != nil {
			return status.Errorf(status.IO, "host", "the cache in %s: %w", o.CacheDir, err)
		}
	}
	// The check does not count towards Options.Timeout.
	if err := m.lend(ctx, checkVersion); err != nil {
		m.Close()
		return err
	}
	return nil
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
func (m *machine) Close() (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, e := range m.engines {
		if e != nil {
			err = cmp.Or(err, e.close())
		}
	}
	if m.cache != nil {
		err = cmp.Or(err, m.cache.Close(context.Background()))
	}
	m.engines, m.cache = [2]*engine{}, nil
	return err
}

// ask calls an export with an input.
func (m *machine) ask(ctx context.Context, input []byte, name string, more ...uint64) (reply []byte, err error) {
	err = m.with(ctx, func(ctx context.Context, in *instance) error {
		reply, err = in.ask(ctx, input, name, more...)
		return err
	})
	return reply, err
}

// with calls use with an instance. It waits while MaxInstances calls run.
func (m *machine) with(ctx context.Context, use func(ctx context.Context, in *instance) error) error {
	if m.options.Timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, m.options.Timeout)
		defer cancel()
		ctx = limited
	}
	if ctx.Err() == nil {
		select {
		case m.running <- struct{}{}:
			defer func() { <-m.running }()
		case <-ctx.Done():
		}
	}
	if cause := ctx.Err(); cause != nil {
		return status.Errorf(status.CodeOf(cause), "host", "the module was not asked: %w", cause)
	}
	return m.lend(ctx, use)
}

// lend calls use with an idle or a new instance.
func (m *machine) lend(ctx context.Context, use func(ctx context.Context, in *instance) error) error {
	e, err := m.engine(ctx)
	if err != nil {
		return err
	}
	in, err := m.take(ctx, e)
	if err != nil {
		return err
	}
	err = use(ctx, in)
	m.release(e, in, err)
	return err
}

// engine returns the compilation of the module for calls with this context.
func (m *machine) engine(ctx context.Context) (*engine, error) {
	which := 0
	if ctx.Done() != nil || m.options.Timeout > 0 {
		which = 1
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, status.Closed("host", "the %s is closed", m.kind.name)
	}
	if m.engines[which] == nil {
		e, err := m.compile(ctx, which == 1)
		if err != nil {
			return nil, err
		}
		m.engines[which] = e
	}
	return m.engines[which], nil
}

// take returns an idle instance, or else a new one.
func (m *machine) take(ctx context.Context, e *engine) (*instance, error) {
	m.mu.Lock()
	if n := len(e.idle); n > 0 {
		in := e.idle[n-1]
		e.idle = e.idle[:n-1]
		m.idle--
		m.mu.Unlock()
		return in, nil
	}
	m.mu.Unlock()
	return e.instantiate(ctx)
}

// release keeps an instance for later calls, or closes it if it must not be used
// again.
func (m *machine) release(e *engine, in *instance, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil || m.closed || m.idle >= m.options.MaxIdle || in.module.Memory().Size() > KeepMemory {
		_ = in.module.Close(context.Background()) // an error leaves nothing to do
		return
	}
	e.idle = append(e.idle, in)
	m.idle++
}
