// Package host runs the WebAssembly module of the layout validator from Go, for
// example the module of another release. The module is sandboxed: it has a clock and
// its input, but no files, no network and no environment.
//
//	v, err := host.Open(ctx, module, host.Options{})
//	defer v.Close()
//	reply, err := v.Describe(ctx, text) // JSON, as package reply documents it
//
// Any number of goroutines may use a Validator. Every call has an instance of the
// module for itself. An instance that trapped, was interrupted, or has more than
// KeepMemory bytes is not used again.
//
// A call that can be interrupted takes 2 to 7 times as long, because the compiled code
// checks for interruption in every loop. So there is a second compilation without these
// checks, for calls with a context that never ends.
package host

import (
	"context"
	"encoding/binary"
	"math"
	"runtime"
	"time"

	"github.com/meshfeed/meshfeed/core/status"
)

// Version is the version of the exports that this package calls.
const Version = 1

// Defaults and bounds of Options.
const (
	DefaultMemoryPages = 6144     // 384 MiB
	maxMemoryPages     = 1 << 16  // 4 GiB: a module cannot address more
	DefaultMaxIdle     = 2        // instances
	KeepMemory         = 64 << 20 // bytes; an instance with more is not used again
	pageSize           = 64 << 10
)

// Options configures a Validator. The zero value is good for most programs.
type Options struct {
	// CacheDir is a directory for compiled modules, which saves half a second
	// per Open. "" means none.
	CacheDir string

	// MaxInstances is the number of calls that run at the same time, each on its
	// own instance. Further calls wait. 0 means the number of processors, but at
	// least 4.
	MaxInstances int

	// MaxIdle is the number of idle instances that are kept for later calls, each
	// with at most KeepMemory bytes. 0 means DefaultMaxIdle, and a negative number
	// none.
	MaxIdle int

	// Timeout bounds every call, including its wait, but not Open. 0 means that
	// only the context bounds calls.
	Timeout time.Duration

	// MemoryPages is the most pages of 64 KiB of an instance. The error of a call
	// that needs more is ResourceExhausted. 0 means DefaultMemoryPages.
	MemoryPages uint32
}

// withDefaults checks the options and fills in the defaults.
func (o Options) withDefaults() (Options, error) {
	if o.MaxInstances < 0 || o.Timeout < 0 || o.MemoryPages > maxMemoryPages {
		return o, status.Errorf(status.InvalidArgument, "host", "expected MaxInstances and Timeout of at least 0 and MemoryPages of at most %d, got %d, %v and %d", maxMemoryPages, o.MaxInstances, o.Timeout, o.MemoryPages).
			WithHint("0 means the default")
	}
	if o.MaxInstances == 0 {
		o.MaxInstances = max(4, runtime.GOMAXPROCS(0))
	}
	if o.MaxIdle == 0 {
		o.MaxIdle = DefaultMaxIdle
	}
	if o.MemoryPages == 0 {
		o.MemoryPages = DefaultMemoryPages
	}
	return o, nil
}

// Describe returns the reply about a layout document.
func (v *Validator) Describe(ctx context.Context, text []byte) (reply []byte, err error) {
	return v.ask(ctx, text, "mf_describe")
}

// Samples returns the reply to a question about an order, as package reply
// documents both.
func (v *Validator) Samples(ctx context.Context, question []byte) (reply []byte, err error) {
	return v.ask(ctx, question, "mf_samples")
}

// Schema returns the reply about the file of size bytes that ends with tail.
func (v *Validator) Schema(ctx context.Context, tail []byte, size int64) (reply []byte, err error) {
	return v.ask(ctx, tail, "mf_schema", math.Float64bits(float64(size)))
}

// Table names Count rows, from row From on, of table What of an array.
type Table struct{ Array, What, From, Count uint32 }

// Tables returns the named rows of tables about a layout document, in order.
func (v *Validator) Tables(ctx context.Context, text []byte, parts ...Table) (tables [][]float64, err error) {
	err = v.with(ctx, func(ctx context.Context, in *instance) error {
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
