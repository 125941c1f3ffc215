package arrowio

import (
	"flag"
	"runtime"
	"syscall"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/internal/spare"
	"github.com/meshfeed/meshfeed/internal/guard"
)

var decodePath = flag.String("decode", "", "the encoded file that BenchmarkDecode decodes")

// BenchmarkDecode decodes all units of all fields of a file, as many at a time as -cpu
// says. It leaves their memory to the next ones, as the worker does that writes them to disk.
// Python's tests.bench.decoding compares it with pyarrow. It reports the processor time too,
// because other programs slow it down less.
func BenchmarkDecode(b *testing.B) {
	if *decodePath == "" {
		b.Skip("-decode names no file")
	}
	d, err := Open(*decodePath)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	units, workers := len(d.Facts().Units()), runtime.GOMAXPROCS(0)
	all := func() error {
		return guard.Parallel(b.Context(), "arrowio", units*len(d.files.Fields), workers, func(i int) error {
			decoded, err := d.decoded.Once(b.Context(), int32(i%units), d.files.Fields[i/units], false)
			if err == nil {
				spare.Give(decoded.Levels[len(decoded.Levels)-1].Data)
			}
			return err
		})
	}
	for range 3 { // new memory does not count
		if err := all(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	began := processorTime(b)
	for b.Loop() {
		if err := all(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(processorTime(b)-began)/float64(b.N), "cpu-ns/op")
}

// processorTime returns the nanoseconds that all threads of this process took.
func processorTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
