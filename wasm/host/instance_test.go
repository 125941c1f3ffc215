package host

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/core/status"
)

const unreachable = "\x03\x00\x00\x0b"

// module makes a module with the exports of a validator. mf_describe has the given
// body, mf_samples traps, and mf_schema grows the memory by 128 MiB.
func module(describe string) []byte {
	const grow = "\x0a\x00\x41\x80\x10\x40\x00\x1a\x42\x00\x0b"
	section := func(id byte, body string) string { return string(id) + size(body) + body }
	var names, functions, code strings.Builder
	types := map[string]byte{"_initialize": 0, "mf_version": 1, "mf_input": 2, "mf_describe": 3, "mf_table": 4, "mf_samples": 3, "mf_schema": 5}
	bodies := map[string]string{
		"_initialize": "\x02\x00\x0b", "mf_version": "\x04\x00\x41\x01\x0b", "mf_input": "\x04\x00\x41\x08\x0b",
		"mf_describe": describe, "mf_table": "\x04\x00\x42\x00\x0b", "mf_samples": unreachable, "mf_schema": grow,
	}
	for i, name := range exports {
		names.WriteString(size(name) + name + "\x00" + string(rune(i)))
		functions.WriteByte(types[name])
		code.WriteString(bodies[name])
	}
	const signatures = "\x06\x60\x00\x00\x60\x00\x01\x7f\x60\x01\x7f\x01\x7f\x60\x01\x7f\x01\x7e\x60\x04\x7f\x7f\x7f\x7f\x01\x7e\x60\x02\x7f\x7c\x01\x7e"
	return []byte("\x00asm\x01\x00\x00\x00" + section(1, signatures) + section(3, "\x07"+functions.String()) + section(5, "\x01\x00\x10") +
		section(7, "\x07"+names.String()) + section(10, "\x07"+code.String()))
}

// size writes a length in LEB128.
func size(s string) string {
	if n := len(s); n >= 128 {
		return string([]byte{byte(n&127 | 128), byte(n >> 7)})
	}
	return string([]byte{byte(len(s))})
}

func TestInstancesAreReplaced(t *testing.T) {
	ctx := t.Context()
	v, err := Open(ctx, module(unreachable), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	idle := func(want int, after string) {
		t.Helper()
		if v.idle != want {
			t.Errorf("%d idle instances after %s, want %d", v.idle, after, want)
		}
	}
	idle(1, "opening")
	_, err = v.Describe(ctx, []byte("x"))
	if err == nil || !strings.HasPrefix(err.Error(), "host: mf_describe: the module trapped: wasm error: unreachable") || status.CodeOf(err) != status.Internal {
		t.Errorf("got %v", err)
	}
	idle(0, "a trap")
	if _, err := v.Tables(ctx, []byte("x"), Table{}); err == nil {
		t.Error("no trap")
	}
	idle(0, "a trap")
	if reply, err := v.Schema(ctx, nil, 0); len(reply) > 0 || err != nil {
		t.Errorf("got %v, %v", reply, err)
	}
	idle(0, "an instance has grown")
	e, err := v.engine(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var used []*instance
	for range DefaultMaxIdle + 3 {
		in, err := v.take(ctx, e)
		if err != nil {
			t.Fatal(err)
		}
		used = append(used, in)
	}
	for _, in := range used {
		v.release(e, in, nil)
	}
	idle(DefaultMaxIdle, "more were in use")
}

// An error contains what Go's runtime wrote before it ended.
func TestStderr(t *testing.T) {
	in := &instance{stderr: &output{}, limit: 256 << 20}
	_, _ = in.stderr.Write([]byte("runtime: out of memory: cannot allocate\nfatal error"))
	err := in.failed(t.Context(), "mf_describe", errors.New("exit"))
	if want := "host: mf_describe needs more than 256 MiB of memory; ask about less at once, or raise Options.MemoryPages"; err.Error() != want || status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
	in = &instance{stderr: &output{}}
	_, _ = in.stderr.Write([]byte("panic: x\ngoroutine 1"))
	if err := in.failed(t.Context(), "mf_table", errors.New("exit")); err.Error() != "host: mf_table: the module trapped: exit; it said: panic: x" {
		t.Errorf("got %v", err)
	}
	for range 10 {
		_, _ = in.stderr.Write(make([]byte, maxOutput))
	}
	if in.stderr.Len() > 2*maxOutput {
		t.Errorf("%d bytes are kept", in.stderr.Len())
	}
}

// TestInterrupted interrupts a call that does not end.
func TestInterrupted(t *testing.T) {
	v, err := Open(t.Context(), endless(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = v.Describe(ctx, nil)
	if !errors.Is(err, context.DeadlineExceeded) || status.CodeOf(err) != status.Timeout {
		t.Errorf("got %v", err)
	}
	if v.idle != 0 {
		t.Error("the interrupted instance would be used again")
	}
}

// endless makes a module with an mf_describe that does not end.
func endless() []byte { return module("\x08\x00\x03\x40\x0c\x00\x0b\x00\x0b") } // loop { continue }

func TestTimeout(t *testing.T) {
	v, err := Open(context.Background(), endless(), Options{Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if _, err := v.Describe(context.Background(), nil); status.CodeOf(err) != status.Timeout {
		t.Errorf("got %v", err)
	}
}

// A call waits while another one has the only instance.
func TestCallsWaitForTheirTurn(t *testing.T) {
	v, err := Open(t.Context(), endless(), Options{MaxInstances: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	busy, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := v.Describe(busy, nil)
		ended <- err
	}()
	for len(v.running) == 0 {
		runtime.Gosched()
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = v.Samples(short, nil)
	if want := "host: the module was not asked: context deadline exceeded"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	end()
	if err := <-ended; status.CodeOf(err) != status.Cancelled {
		t.Errorf("got %v", err)
	}
	if _, err := v.Schema(t.Context(), nil, 0); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

// The context of a call decides which compilation it uses.
func TestTwoCompilations(t *testing.T) {
	v, err := Open(context.Background(), module("\x04\x00\x42\x00\x0b"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if v.engines[0] == nil || v.engines[1] != nil {
		t.Error("a context without end has the compilation for interruption")
	}
	if _, err := v.Describe(t.Context(), nil); err != nil || v.engines[1] == nil {
		t.Errorf("a context that can end: %v", err)
	}
	if a, b := len(v.engines[0].idle), len(v.engines[1].idle); a != 1 || b != 1 || v.idle != 2 {
		t.Errorf("%d and %d idle instances, %d in all", a, b, v.idle)
	}
}

func TestMemoryPages(t *testing.T) {
	v, err := Open(t.Context(), module(unreachable), Options{MemoryPages: 100})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if _, err := v.Schema(t.Context(), nil, 0); err != nil { // it may not grow by 128 MiB
		t.Fatal(err)
	}
	if v.idle != 1 {
		t.Error("the instance has grown")
	}
}

func TestWrongOptions(t *testing.T) {
	for _, o := range []Options{{MaxInstances: -1}, {Timeout: -1}, {MemoryPages: 65537}} {
		if _, err := Open(t.Context(), nil, o); status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
