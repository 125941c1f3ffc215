//go:build unix

package gather

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// page returns size bytes that end, or begin, at a page that cannot be read.
func page(t *testing.T, size int, atEnd bool) []byte {
	t.Helper()
	unit := unix.Getpagesize()
	inner := (size + unit - 1) / unit * unit
	all, err := unix.Mmap(-1, 0, inner+2*unit, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(all) })
	for _, guard := range [][]byte{all[:unit], all[unit+inner:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	if atEnd {
		return all[unit+inner-size : unit+inner]
	}
	return all[unit : unit+size]
}

// TestEveryLength copies rows of every length from the end (or beginning) of a
// mapping to the end (or beginning) of another, at every distance of up to 40
// bytes. The list of addresses ends at such a page, too. A read or a write of one
// byte too far faults.
func TestEveryLength(t *testing.T) {
	const most = 40 * 2410
	for _, atEnd := range []bool{false, true} {
		src, dst := page(t, most, atEnd), page(t, most, atEnd)
		rows := unsafe.Slice((*uintptr)(unsafe.Pointer(unsafe.SliceData(page(t, 8*40, true)))), 40)
		r := rand.New(rand.NewPCG(1, 2))
		for i := range src {
			src[i] = byte(r.Uint32())
		}
		for _, run := range lengths() {
			for _, n := range []int{1, 3, 9, 40} {
				for _, streaming := range []bool{false, true}[:1+run/streamRun] {
					everyLength(t, src, dst, rows[40-n:], run, r.IntN(40), atEnd, Options{Streaming: streaming})
				}
			}
		}
	}
}

// lengths returns the lengths around each size where a copy changes.
func lengths() (list []int) {
	for n := 1; n <= 130; n++ {
		list = append(list, n)
	}
	for _, n := range []int{leadBytes, 512, 1024, streamRun, streamRun + 64} {
		list = append(list, n-1, n, n+1)
	}
	return append(list, 2369)
}

// everyLength takes rows of run bytes that lie gap bytes apart, in a random
// order, with one source row and one destination row against the guard page.
func everyLength(t *testing.T, src, dst []byte, rows []uintptr, run, gap int, atEnd bool, o Options) {
	t.Helper()
	n, stride, want := len(rows), run+gap, []byte(nil)
	for i, k := range rand.New(rand.NewPCG(uint64(run), uint64(n))).Perm(n) {
		at := k * stride
		if atEnd {
			at = len(src) - k*stride - run
		}
		rows[i] = address(src[at:])
		want = append(want, src[at:at+run]...)
	}
	part := dst[:n*run]
	if atEnd {
		part = dst[len(dst)-n*run:]
	}
	clear(part)
	p := Compile([]int{run}, 1, [][][2]int{{{0, run}}}, Copy)
	if err := Run(rows, []Job{{p, [2]int{0, n}, part}}, o); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(part, want) {
		t.Fatalf("%d rows of %d bytes, %d apart, %+v: wrong bytes", n, run, stride, o)
	}
}

// TestLongRows copies rows that take several calls of assembly, and columns of rows.
func TestLongRows(t *testing.T) {
	const n = 3
	for _, c := range []struct{ lines, cols, take int }{
		{1, callBytes + 1, callBytes + 1}, {1, 3*callBytes - 7, 3*callBytes - 70}, {2, callBytes + 200, callBytes + 100},
		{700, 501, 470}, {9000, 12, 11},
	} {
		row := c.lines * c.cols
		src, dst := page(t, n*row, true), page(t, n*c.lines*c.take, true)
		for i := range src {
			src[i] = byte(i ^ i>>8 ^ i>>16)
		}
		shape, boxes := []int{c.lines, c.cols}, [][][2]int{{{0, c.lines}, {c.cols - c.take, c.cols}}}
		p := Compile(shape, 1, boxes, Copy)
		rows, want := make([]uintptr, n), []byte(nil)
		for i, k := range []int{2, 0, 1} {
			rows[i] = address(src[k*row:])
			want = append(want, reference(src[k*row:(k+1)*row], shape, 1, boxes)...)
		}
		for _, o := range []Options{{}, {Streaming: true}} {
			clear(dst)
			if err := Run(rows, []Job{{p, [2]int{0, n}, dst}}, o); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(dst, want) {
				t.Fatalf("%d of %d columns, %d lines, %+v: wrong bytes", c.take, c.cols, c.lines, o)
			}
		}
	}
}

// TestStridedAtPageEnd takes a column from the right edge of rows. The last row
// ends with its mapping.
func TestStridedAtPageEnd(t *testing.T) {
	for cols := 1; cols <= 70; cols++ {
		for take := 1; take <= cols; take++ {
			const lines, n = 5, 6
			src, dst := page(t, n*lines*cols, true), page(t, n*lines*take, true)
			rows := make([]uintptr, n)
			for i := range src {
				src[i] = byte(i * 7)
			}
			shape, boxes := []int{lines, cols}, [][][2]int{{{0, lines}, {cols - take, cols}}}
			var want []byte
			for i := range rows {
				row := src[i*lines*cols : (i+1)*lines*cols]
				rows[i] = address(row)
				want = append(want, reference(row, shape, 1, boxes)...)
			}
			if err := Run(rows, []Job{{Compile(shape, 1, boxes, Copy), [2]int{0, n}, dst}}, Options{}); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(dst, want) {
				t.Fatalf("%d of %d columns: wrong bytes", take, cols)
			}
		}
		if cols > 20 {
			cols += 3
		}
	}
}
