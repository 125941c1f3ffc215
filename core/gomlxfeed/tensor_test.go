package gomlxfeed

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
)

func opened(t *testing.T, spec string) *Devices {
	t.Helper()
	d, err := Open(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func noise(r *rand.Rand, t dtype.Type, size int) []byte {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(r.Uint32())
		if t == dtype.Bool {
			data[i] &= 1
		}
	}
	return data
}

func TestEveryTypeComesBack(t *testing.T) {
	r := random.New(t)
	for _, spec := range []string{"go", "virtual:3"} {
		d := opened(t, spec)
		for _, typ := range dtype.All() {
			for _, dims := range [][]int{nil, {3}, {2, 5, 7}, {4, 0, 2}} {
				size := typ.Size()
				for _, n := range dims {
					size *= n
				}
				dev := r.IntN(d.Num())
				want, got := noise(r, typ, size), make([]byte, size)
				put, err := d.put(dev, typ, dims, want)
				if err != nil {
					t.Fatal(err)
				}
				if name := put.DType().String(); !strings.EqualFold(name, typ.String()) {
					t.Errorf("%s is %s to GoMLX", arrayText(typ, dims), name)
				}
				if on, err := put.Device(); err != nil || int(on) != dev {
					t.Fatalf("%s is on device %v (%v), not %d", arrayText(typ, dims), on, err, dev)
				}
				if err := d.read(put, got); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s on %s: put and read differ (%v)", arrayText(typ, dims), spec, err)
				}
				made, memory, err := d.empty(dev, typ, dims)
				if err != nil {
					t.Fatal(err)
				}
				copy(memory, want)
				clear(got)
				if err := d.read(made, got); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s on %s: what was written is not read (%v)", arrayText(typ, dims), spec, err)
				}
				if n, live := d.Live(); n != 2 || live != int64(2*size) {
					t.Fatalf("live: %d buffers, %d bytes", n, live)
				}
				for _, err := range []error{d.free(put), d.free(made)} {
					if err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if n, live := d.Live(); n != 0 || live != 0 {
			t.Errorf("%s: %d buffers of %d bytes were left", spec, n, live)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestPlacingIsChecked(t *testing.T) {
	d := opened(t, "virtual:2")
	defer d.Close()
	data := make([]byte, 8)
	_, after := d.put(0, dtype.Float32, []int{2}, data[:7])
	_, outside := d.put(2, dtype.Float32, []int{2}, data)
	_, negative := d.put(-1, dtype.Float32, []int{2}, data)
	_, shape := d.put(0, dtype.Float32, []int{2, -1}, data)
	_, huge := d.put(0, dtype.Float32, []int{1 << 40, 1 << 40}, data)
	_, _, typed := d.empty(1, dtype.Invalid, nil)
	tensor, err := d.put(1, dtype.Float32, []int{2}, data)
	if err != nil {
		t.Fatal(err)
	}
	short := d.read(tensor, data[:4])
	if err := d.disown(tensor); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err  error
		code status.Code
		want string
	}{
		{after, status.InvalidArgument, "gomlxfeed: cannot place on device 0: float32[2] has 8 bytes, but 7 were given"},
		{outside, status.OutOfRange, "gomlxfeed: cannot place on device 2: virtual has devices 0 to 1"},
		{negative, status.OutOfRange, "gomlxfeed: cannot place on device -1: virtual has devices 0 to 1"},
		{shape, status.InvalidArgument, "gomlxfeed: cannot place on device 0: float32[2,-1] does not fit into memory"},
		{huge, status.InvalidArgument, "gomlxfeed: cannot place on device 0: float32[1099511627776,1099511627776] does not fit into memory"},
		{typed, status.InvalidArgument, "gomlxfeed: GoMLX has no element type invalid"},
		{short, status.InvalidArgument, "gomlxfeed: cannot read a tensor of 8 bytes into 4"},
		{d.disown(tensor), status.InvalidState, "gomlxfeed: cannot hand over a tensor that was freed or handed over, or that belongs to other devices"},
		{d.free(tensor), status.InvalidState, "gomlxfeed: cannot free a tensor that was freed or handed over, or that belongs to other devices"},
		{d.read(tensor, data), status.InvalidState, "gomlxfeed: cannot read a tensor that was freed or handed over, or that belongs to other devices"},
	} {
		if c.err == nil || c.err.Error() != c.want || status.CodeOf(c.err) != c.code {
			t.Errorf("got %v (%v)\nwant %s (%v)", c.err, status.CodeOf(c.err), c.want, c.code)
		}
	}
}

// Data that is not aligned is copied before it is read as elements.
func TestAligned(t *testing.T) {
	words := make([]uint64, 3)
	data := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 24)
	for i := range data {
		data[i] = byte(i)
	}
	for _, c := range []struct{ from, size int }{{0, 16}, {1, 1}, {1, 2}, {2, 2}, {2, 4}, {4, 8}, {8, 16}, {3, 8}} {
		got := aligned(data[c.from:c.from+16], c.size)
		stays := c.from%min(c.size, 8) == 0
		if &got[0] == &data[c.from] != stays || uintptr(unsafe.Pointer(&got[0]))%uintptr(min(c.size, 8)) != 0 || !bytes.Equal(got, data[c.from:c.from+16]) {
			t.Errorf("bytes from %d as elements of %d: got %v", c.from, c.size, got)
		}
	}
	if len(aligned(nil, 8)) != 0 {
		t.Error("nothing became something")
	}
	w, d := newWitness(t, 1, false)
	for at := range 8 {
		placed, err := d.put(0, dtype.Float64, []int{2}, make([]byte, 24)[at:at+16])
		if err != nil {
			t.Fatal(err)
		}
		if err := d.free(placed); err != nil {
			t.Error(err)
		}
	}
	if w.odd > 0 {
		t.Errorf("%d arrays came to the backend at odd addresses", w.odd)
	}
}
