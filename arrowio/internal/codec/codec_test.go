package codec_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"runtime"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/meshfeed/meshfeed/arrowio/internal/codec"
	"github.com/meshfeed/meshfeed/internal/parquet"
	"github.com/meshfeed/meshfeed/tests/random"
)

var codecs = []parquet.Codec{parquet.Snappy, parquet.Gzip, parquet.Brotli, parquet.Zstd, parquet.LZ4, parquet.LZ4Hadoop}

// compress compresses data as a writer of Parquet does.
func compress(t testing.TB, data []byte, c parquet.Codec) []byte {
	t.Helper()
	var out bytes.Buffer
	write := func(w io.WriteCloser, err error) []byte {
		if err == nil {
			_, err = w.Write(data)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	switch c {
	case parquet.Snappy:
		return s2.EncodeSnappy(nil, data)
	case parquet.Gzip:
		return write(gzip.NewWriter(&out), nil)
	case parquet.Brotli:
		return write(brotli.NewWriter(&out), nil)
	case parquet.Zstd:
		return write(zstd.NewWriter(&out))
	}
	block := make([]byte, lz4.CompressBlockBound(len(data)))
	n, err := lz4.CompressBlock(data, block, nil)
	if err != nil {
		t.Fatal(err)
	}
	if block = block[:n]; c == parquet.LZ4 {
		return block
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	return append(binary.BigEndian.AppendUint32(head, uint32(n)), block...)
}

func text(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i * i >> 7)
	}
	return data
}

// TestCheckSize accepts the best compressed pages, and refuses sizes that no page can have.
func TestCheckSize(t *testing.T) {
	for _, c := range codecs {
		for _, size := range []int{0, 1, 1000, 16 << 20} {
			stored := len(compress(t, make([]byte, size), c))
			if err := codec.CheckSize(stored, size, c); err != nil {
				t.Error(err)
			}
		}
		if err := codec.CheckSize(100, 1<<30, c); err == nil {
			t.Errorf("%v: a page of 100 bytes has 1 GiB after decompression", c)
		}
	}
	if err := codec.CheckSize(100, 1<<30, parquet.Uncompressed); err != nil {
		t.Error(err) // the caller compares the sizes
	}
}

// TestDecompress decompresses pages of several sizes, and refuses a page if its
// header promises another size.
func TestDecompress(t *testing.T) {
	for _, c := range codecs {
		for _, n := range []int{1, 100, 1 << 16, 3 << 20} {
			want := text(n)
			packed := compress(t, want, c)
			got := make([]byte, n)
			if err := codec.Decompress(got, packed, c); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%v: %d bytes: %v", c, n, err)
			}
			for _, size := range []int{n - 1, n + 1} {
				if err := codec.Decompress(make([]byte, size), packed, c); err == nil {
					t.Errorf("%v: %d bytes were accepted as %d", c, n, size)
				}
			}
			if err := codec.Decompress(make([]byte, n), packed[:len(packed)-1], c); err == nil && c != parquet.Gzip {
				t.Errorf("%v: a page of %d bytes without its last byte was accepted", c, n)
			}
		}
	}
}

// TestHadoopBlocks: a page may have several blocks, or a single one without sizes.
func TestHadoopBlocks(t *testing.T) {
	want := text(1000)
	blocks := append(compress(t, want[:600], parquet.LZ4Hadoop), compress(t, want[600:], parquet.LZ4Hadoop)...)
	for _, packed := range [][]byte{blocks, compress(t, want, parquet.LZ4)} {
		got := make([]byte, len(want))
		if err := codec.Decompress(got, packed, parquet.LZ4Hadoop); err != nil || !bytes.Equal(got, want) {
			t.Error(err)
		}
	}
}

func TestUnknownCodec(t *testing.T) {
	err := codec.Decompress(nil, nil, parquet.LZO)
	if err == nil || err.Error() != "compressed with lzo, which is not read" || codec.Supported(parquet.LZO) {
		t.Error(err)
	}
}

// TestBombs decompresses pages that have many more bytes than their headers promise. The
// memory that it takes is bounded by the promise.
func TestBombs(t *testing.T) {
	bomb := make([]byte, 32<<20)
	for _, c := range codecs {
		packed := compress(t, bomb, c)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := codec.Decompress(make([]byte, 1000), packed, c)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; err == nil || used > 24<<20 {
			t.Errorf("%v: %v, %d bytes were allocated", c, err, used)
		}
	}
}

// TestDamaged decompresses damaged pages, without a panic or a hang. A decoder that is
// used again after an error must decode the next page.
func TestDamaged(t *testing.T) {
	r := random.New(t)
	want := text(5000)
	for _, c := range codecs {
		packed, got := compress(t, want, c), make([]byte, len(want))
		refused := 0
		for range 300 {
			if codec.Decompress(got, random.Damage(r, packed), c) != nil {
				refused++
			}
			if err := codec.Decompress(got, packed, c); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%v: after a damaged page: %v", c, err)
			}
		}
		if refused == 0 {
			t.Errorf("%v: no damage was found", c)
		}
	}
}

// FuzzDecompress: any page is decompressed or refused.
func FuzzDecompress(f *testing.F) {
	for _, c := range codecs {
		f.Add(int(c), 300, compress(f, text(300), c))
	}
	f.Fuzz(func(t *testing.T, c, size int, data []byte) {
		if size < 0 || size > 1<<20 {
			return
		}
		_ = codec.Decompress(make([]byte, size), data, parquet.Codec(c))
	})
}
