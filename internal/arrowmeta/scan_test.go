package arrowmeta_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"sync/atomic"
	"testing"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// counting counts the calls and bytes of a reader.
type counting struct {
	io.ReaderAt
	calls, bytes atomic.Int64
}

func (c *counting) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, off)
	c.calls.Add(1)
	c.bytes.Add(int64(n))
	return n, err
}

// sparse is a file with zero bytes outside parts.
type sparse struct {
	size  int64
	parts map[int64][]byte // by offset, a multiple of step
	step  int64
}

func (s sparse) ReadAt(p []byte, off int64) (int, error) {
	n := int(min(int64(len(p)), s.size-off))
	clear(p[:n])
	for at := off / s.step * s.step; at < off+int64(n); at += s.step {
		if part := s.parts[at]; at >= off {
			copy(p[at-off:n], part)
		} else if skip := off - at; skip < int64(len(part)) {
			copy(p[:n], part[skip:])
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// largeStream returns a stream of n batches. Each message takes step bytes.
func largeStream(n int, step int64) sparse {
	s := sparse{parts: map[int64][]byte{}, step: step}
	put := func(m []byte) {
		s.parts[s.size] = m
		s.size += step
	}
	put(framed(flat(with(message(1, columnsAB, 0), 10, step-int64(len(framed(flat(message(1, columnsAB, 1)), 0))))), 0))
	head := int64(len(framed(flat(message(3, validAB, 1)), 0)))
	for range n {
		put(framed(flat(message(3, validAB, step-head)), 0))
	}
	s.parts[s.size] = endOfStream
	s.size += 8
	return s
}

// TestStreamReadsNoBodies: a stream with large bodies takes about one read per
// message, of headers alone. A stream with small ones takes few reads.
func TestStreamReadsNoBodies(t *testing.T) {
	const batches = 1000
	for step, most := range map[int64]struct{ calls, bytes int64 }{
		1 << 20: {batches + 10, 1 << 20},
		512:     {30, 2 << 20},
	} {
		s := largeStream(batches, step)
		r := &counting{ReaderAt: s}
		f, err := arrowmeta.Read(r, s.size)
		if err != nil || len(f.Batches) != batches {
			t.Fatalf("step %d: %d batches, %v", step, len(f.Batches), err)
		}
		if r.calls.Load() > most.calls || r.bytes.Load() > most.bytes {
			t.Errorf("step %d: the walk took %d reads of %d bytes, more than %+v", step, r.calls.Load(), r.bytes.Load(), most)
		}
		r.calls.Store(0)
		r.bytes.Store(0)
		rows := int64(0)
		err = f.Scan(r, 0, batches, func(_ int, b *arrowmeta.RecordBatch) error {
			rows += b.Length
			return nil
		})
		if err != nil || rows != 2*batches {
			t.Fatalf("step %d: %d rows, %v", step, rows, err)
		}
		if r.calls.Load() > batches || r.bytes.Load() > 1<<20 {
			t.Errorf("step %d: the scan took %d reads of %d bytes, more than one of each header", step, r.calls.Load(), r.bytes.Load())
		}
	}
}

// TestScanConcurrently scans the parts of a file on several goroutines.
func TestScanConcurrently(t *testing.T) {
	s := largeStream(400, 512)
	f, err := arrowmeta.Read(s, s.size)
	if err != nil {
		t.Fatal(err)
	}
	var rows atomic.Int64
	failed := make(chan error, 4)
	for part := range 4 {
		go func() {
			failed <- f.Scan(s, 100*part, 100*part+100, func(_ int, b *arrowmeta.RecordBatch) error {
				rows.Add(b.Length)
				return nil
			})
		}()
	}
	for range 4 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if rows.Load() != 800 {
		t.Errorf("%d rows, want 800", rows.Load())
	}
}

// manyBatches returns a file of n small record batches.
func manyBatches(n int) []byte {
	m := framed(flat(message(3, validAB, int64(bodyAB))), bodyAB)
	b := []byte("ARROW1\x00\x00")
	values := make([]int64, 0, 3*n)
	for range n {
		values = append(values, int64(len(b)), int64(len(m)-bodyAB), int64(bodyAB))
		b = append(b, m...)
	}
	footer := flat(fields{4: int16(4), 6: columnsAB, 10: numbers(3, values...)})
	b = append(append(b, endOfStream...), footer...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(footer)))
	return append(b, "ARROW1"...)
}

// BenchmarkScan measures the time per record batch header of two columns.
func BenchmarkScan(b *testing.B) {
	const batches = 100_000
	data := manyBatches(batches)
	f, err := read(data)
	if err != nil {
		b.Fatal(err)
	}
	r := bytes.NewReader(data)
	b.ReportAllocs()
	for b.Loop() {
		rows := int64(0)
		err := f.Scan(r, 0, batches, func(_ int, batch *arrowmeta.RecordBatch) error {
			rows += batch.Length
			return nil
		})
		if err != nil || rows != 2*batches {
			b.Fatal(rows, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batches, "ns/batch")
}

// BenchmarkRead measures the time per record batch of reading a footer, and of
// reading the messages of a stream.
func BenchmarkRead(b *testing.B) {
	const batches = 100_000
	file := manyBatches(batches)
	end := bytes.LastIndex(file, endOfStream) + 8
	stream := append(framed(flat(message(1, columnsAB, 0)), 0), file[8:end]...)
	for name, data := range map[string][]byte{"footer": file, "stream": stream} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if f, err := read(data); err != nil || len(f.Batches) != batches {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batches, "ns/batch")
		})
	}
}

// BenchmarkSchema reads a schema of a thousand columns.
func BenchmarkSchema(b *testing.B) {
	columns := make([]fields, 1000)
	for i := range columns {
		columns[i] = tripleField("column")
	}
	data := streamOf(schemaOf(columns...), 0)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := read(data); err != nil {
			b.Fatal(err)
		}
	}
}
