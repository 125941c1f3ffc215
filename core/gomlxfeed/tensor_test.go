package gomlxfeed

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/gomlx/compute"

	"github.com/meshfeed/meshfeed/core/dtype"
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
				dev := compute.DeviceNum(r.IntN(d.Num()))
				want, got := noise(r, typ, size), make([]byte, size)
				put, err := d.put(dev, shapeOf(typ, dims), want)
				if err != nil {
					t.Fatal(err)
				}
				if name := put.DType().String(); !strings.EqualFold(name, typ.String()) {
					t.Errorf("%s is %s to GoMLX", arrayText(typ, dims), name)
				}
				if on, err := put.Device(); err != nil || on != dev {
					t.Fatalf("%s is on device %v (%v), not %d", arrayText(typ, dims), on, err, dev)
				}
				if err := d.read(put, got); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s on %s: put and read differ (%v)", arrayText(typ, dims), spec, err)
				}
				made, memory, err := d.empty(dev, shapeOf(typ, dims))
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
				for _, err := range []error{d.free(put, size), d.free(made, size)} {
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
		t.Error("an empty slice became longer")
	}
	counts, d := newCountingBackend(t, 1, false)
	for at := range 8 {
		placed, err := d.put(0, shapeOf(dtype.Float64, []int{2}), make([]byte, 24)[at:at+16])
		if err != nil {
			t.Fatal(err)
		}
		if err := d.free(placed, 16); err != nil {
			t.Error(err)
		}
	}
	if counts.misaligned > 0 {
		t.Errorf("%d arrays came to the backend at misaligned addresses", counts.misaligned)
	}
}
