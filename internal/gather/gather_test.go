package gather

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
)

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// reference takes the boxes of a row element by element, in C order.
func reference(row []byte, shape []int, size int, boxes [][][2]int) []byte {
	var out []byte
	for _, box := range boxes {
		index := make([]int, len(shape))
		for d := range index {
			index[d] = box[d][0]
		}
		for more := !empty(box); more; {
			at := 0
			for d, n := range shape {
				at = at*n + index[d]
			}
			out = append(out, row[at*size:(at+1)*size]...)
			more = advance(index, box)
		}
	}
	return out
}

func empty(box [][2]int) bool {
	for _, r := range box {
		if r[0] == r[1] {
			return true
		}
	}
	return false
}

func advance(index []int, box [][2]int) bool {
	for d := len(index) - 1; d >= 0; d-- {
		if index[d]++; index[d] < box[d][1] {
			return true
		}
		index[d] = box[d][0]
	}
	return false
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

func randomBoxes(r *rand.Rand, shape []int) [][][2]int {
	box := make([][2]int, len(shape))
	for d, n := range shape {
		box[d] = [2]int{0, n}
		if r.IntN(2) == 0 {
			a := r.IntN(n)
			box[d] = [2]int{a, a + 1 + r.IntN(n-a)}
		}
	}
	boxes := [][][2]int{box}
	for len(shape) > 0 && r.IntN(3) == 0 {
		next := append([][2]int(nil), box...)
		a := r.IntN(shape[0])
		next[0] = [2]int{a, a + 1 + r.IntN(shape[0]-a)}
		boxes = append(boxes, next)
	}
	return boxes
}

// TestRun compares random programs over random jobs with the reference. Guard bytes
// surround every destination.
func TestRun(t *testing.T) {
	r := random.New(t)
	for range 500 {
		testRun(t, r)
	}
}

func testRun(t *testing.T, r *rand.Rand) {
	shape := make([]int, r.IntN(5))
	for d := range shape {
		shape[d] = 1 + r.IntN([]int{3, 9, 40}[r.IntN(3)])
		if product(shape[:d+1]) > 20000 {
			shape[d] = 1
		}
	}
	size := []int{1, 2, 4, 8, 16}[r.IntN(5)]
	row := product(shape) * size
	rows, data, zero := randomRows(r, 1+r.IntN(60), row)
	jobs := make([]Job, 1+r.IntN(6))
	var want [][]byte
	guarded := make([][]byte, len(jobs))
	for i := range jobs {
		boxes := randomBoxes(r, shape)
		p := Compile(shape, size, boxes, Copy)
		a := r.IntN(len(rows) + 1)
		b := a + r.IntN(len(rows)-a+1)
		var out []byte
		for k := a; k < b; k++ {
			from := data[k]
			if rows[k] == 0 {
				from = zero
			}
			out = append(out, reference(from, shape, size, boxes)...)
		}
		want = append(want, out)
		shift := r.IntN(70)
		guarded[i] = bytes.Repeat([]byte{0xA5}, shift+len(out)+70)
		jobs[i] = Job{p, [2]int{a, b}, guarded[i][shift : shift+len(out)]}
	}
	if err := Run(rows, jobs, Options{Zeros: true, Streaming: r.IntN(2) == 0}); err != nil {
		t.Fatal(err)
	}
	for i, j := range jobs {
		if !bytes.Equal(j.Dst, want[i]) {
			t.Fatalf("shape %v size %d job %d rows %v: wrong bytes", shape, size, i, j.Rows)
		}
		whole := guarded[i]
		if n := bytes.Count(whole, []byte{0xA5}) - bytes.Count(j.Dst, []byte{0xA5}); n != len(whole)-len(j.Dst) {
			t.Fatalf("shape %v size %d job %d rows %v: wrote outside", shape, size, i, j.Rows)
		}
	}
}

// randomRows returns n rows at odd addresses, some of them zero.
func randomRows(r *rand.Rand, n, size int) (rows []uintptr, data [][]byte, zero []byte) {
	rows, data = make([]uintptr, n), make([][]byte, n)
	zeros := r.IntN(3) == 0
	for i := range rows {
		buffer := make([]byte, size+r.IntN(64)+1)
		data[i] = buffer[len(buffer)-size:]
		for k := range data[i] {
			data[i][k] = byte(r.Uint32())
		}
		if !zeros || r.IntN(3) > 0 {
			rows[i] = address(buffer) + uintptr(len(buffer)-size)
		}
	}
	return rows, data, make([]byte, size)
}

func TestRunChecksJobs(t *testing.T) {
	p := Compile([]int{4}, 2, [][][2]int{{{0, 4}}}, Copy)
	for _, j := range []Job{
		{p, [2]int{0, 1}, make([]byte, 7)}, {p, [2]int{0, 3}, make([]byte, 24)},
		{p, [2]int{-1, 0}, make([]byte, 8)}, {p, [2]int{2, 1}, nil},
	} {
		if err := Run(make([]uintptr, 2), []Job{j}, Options{}); status.CodeOf(err) != status.Internal {
			t.Errorf("job %v: got %v", j.Rows, err)
		}
	}
	err := Run(make([]uintptr, 2), []Job{{p, [2]int{0, 1}, make([]byte, 7)}}, Options{})
	if want := "gather: a job takes rows [0 1] of 2, 8 bytes each, into 7 bytes"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestRunAllocatesNothing, whatever the number of rows.
func TestRunAllocatesNothing(t *testing.T) {
	data, dst := make([]byte, 64<<10), make([]byte, 64<<10)
	p := Compile([]int{16}, 4, [][][2]int{{{0, 16}}}, Copy)
	rows := make([]uintptr, 1024)
	for i := range rows {
		rows[i] = address(data) + uintptr(i*64)
	}
	jobs := []Job{{p, [2]int{0, 512}, dst[:32<<10]}, {p, [2]int{512, 1024}, dst[32<<10:]}}
	if n := testing.AllocsPerRun(10, func() { _ = Run(rows, jobs, Options{}) }); n > 0 {
		t.Errorf("%v allocations per run", n)
	}
}

// TestStrided takes random boxes of rows in Fortran order, mirrored, with gaps and
// repeated. It compares them with boxes of a contiguous copy of the row.
func TestStrided(t *testing.T) {
	r := random.New(t)
	for range 500 {
		size := []int{1, 2, 4, 8, 16}[r.IntN(5)]
		shape, strides, data, origin := randomStrided(r, size)
		row := contiguous(data, origin, shape, strides, size)
		boxes := randomBoxes(r, shape)
		p := CompileStrided(strides, size, boxes, Copy)
		dst := make([]byte, 4*p.Bytes())
		rows := []uintptr{address(data) + uintptr(origin), 0, address(data) + uintptr(origin), 0}
		if err := Run(rows, []Job{{p, [2]int{0, 4}, dst}}, Options{Zeros: true}); err != nil {
			t.Fatal(err)
		}
		want := reference(row, shape, size, boxes)
		pair := slices.Concat(want, make([]byte, len(want)))
		if !bytes.Equal(dst, slices.Concat(pair, pair)) {
			t.Fatalf("shape %v strides %v size %d boxes %v: wrong bytes", shape, strides, size, boxes)
		}
		runtime.KeepAlive(data)
	}
}

// randomStrided returns a view of a contiguous array. Dimensions are permuted,
// mirrored, have gaps, or are repeated by a stride of zero.
func randomStrided(r *rand.Rand, size int) (shape, strides []int, data []byte, origin int) {
	stride := size
	for range r.IntN(4) {
		n, step := 1+r.IntN(9), 1+r.IntN(2)
		shape, strides = append(shape, n), append(strides, stride*step)
		stride *= n * step
		switch r.IntN(4) {
		case 0:
			origin += (n - 1) * strides[len(strides)-1]
			strides[len(strides)-1] *= -1
		case 1:
			shape, strides = append(shape, 1+r.IntN(3)), append(strides, 0)
		}
	}
	r.Shuffle(len(shape), func(i, j int) {
		shape[i], shape[j] = shape[j], shape[i]
		strides[i], strides[j] = strides[j], strides[i]
	})
	data = make([]byte, stride)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return shape, strides, data, origin
}

func contiguous(data []byte, origin int, shape, strides []int, size int) []byte {
	var out []byte
	index, box := make([]int, len(shape)), make([][2]int, len(shape))
	for d, n := range shape {
		box[d][1] = n
	}
	for more := true; more; more = advance(index, box) {
		at := origin
		for d, i := range index {
			at += i * strides[d]
		}
		out = append(out, data[at:at+size]...)
	}
	return out
}

func FuzzRun(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { testRun(t, random.From(seed)) })
}

// BenchmarkRun copies 3 MB per iteration from rows in random order in 256 MB.
func BenchmarkRun(b *testing.B) {
	data := make([]byte, 256<<20)
	for i := range data {
		data[i] = byte(i >> 12)
	}
	for _, size := range []int{4, 52, 104, 512, 2048, 12288} {
		for _, o := range []Options{{}, {Streaming: true}} {
			b.Run(fmt.Sprintf("%dB/%+v", size, o), func(b *testing.B) { benchmark(b, data, size, o) })
		}
	}
}

func benchmark(b *testing.B, data []byte, size int, o Options) {
	n := min(3<<20/size, 4096)
	order := rand.New(rand.NewPCG(1, 1)).Perm(len(data) / size)
	rows := make([]uintptr, len(order))
	for i, k := range order {
		rows[i] = address(data) + uintptr(k*size)
	}
	jobs := []Job{{Compile([]int{size}, 1, [][][2]int{{{0, size}}}, Copy), [2]int{0, n}, make([]byte, n*size)}}
	b.SetBytes(int64(n * size))
	at := 0
	for b.Loop() {
		if at+n > len(rows) {
			at = 0
		}
		if err := Run(rows[at:at+n], jobs, o); err != nil {
			b.Fatal(err)
		}
		at += n
	}
}

// TestManyRows copies parts of so many rows that a copy takes several calls of
// assembly, and the last rows have no later row to prefetch.
func TestManyRows(t *testing.T) {
	for _, run := range []int{64, 100, 2000} {
		for _, n := range []int{1, aheadRows, aheadRows + 1, 2*callBytes/run + aheadRows + 3} {
			const stride = 2100
			src := make([]byte, n*stride)
			for i := range src {
				src[i] = byte(i ^ i>>8 ^ i>>16)
			}
			rows, want := make([]uintptr, n), []byte(nil)
			for i := range rows {
				k := (i*7919 + 5) % n
				rows[i] = address(src[k*stride:])
				want = append(want, src[k*stride+50:k*stride+50+run]...)
			}
			p := Compile([]int{stride}, 1, [][][2]int{{{50, 50 + run}}}, Copy)
			dst := make([]byte, n*run)
			if err := Run(rows, []Job{{p, [2]int{0, n}, dst}}, Options{}); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(dst, want) {
				t.Errorf("%d bytes of %d rows: wrong bytes", run, n)
			}
			runtime.KeepAlive(src)
		}
	}
}
