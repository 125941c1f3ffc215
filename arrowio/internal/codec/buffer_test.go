package codec_test

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/meshfeed/meshfeed/arrowio/internal/codec"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// pack compresses the bytes in one frame.
func pack(t *testing.T, how arrowmeta.Compression, data []byte) []byte {
	t.Helper()
	if how == arrowmeta.ZSTD {
		w, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		return w.EncodeAll(data, nil)
	}
	var out bytes.Buffer
	w := lz4.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// buffer decompresses a frame that announces a size.
func buffer(how arrowmeta.Compression, frame []byte, size int) ([]byte, error) {
	stored := append(binary.LittleEndian.AppendUint64(nil, uint64(size)), frame...)
	return codec.Buffer(how, stored, func(int64) error { return nil })
}

// TestBuffer: the result has exactly the announced size, or there is an error.
func TestBuffer(t *testing.T) {
	data := bytes.Repeat([]byte("meshfeed"), 100)
	for _, how := range []arrowmeta.Compression{arrowmeta.LZ4Frame, arrowmeta.ZSTD} {
		whole := pack(t, how, data)
		for _, c := range []struct {
			name   string
			stored []byte
			size   int
			fails  bool
		}{
			{"valid", whole, 800, false},
			{"more than announced", whole, 799, true},
			{"less than announced", whole, 801, true},
			{"two frames", append(bytes.Clone(whole), whole...), 800, true},
			{"cut", whole[:len(whole)-6], 800, true},
			{"nothing", nil, 800, true},
			{"another format", data, 800, true},
		} {
			out, err := buffer(how, c.stored, c.size)
			if c.fails != (err != nil) || err == nil && !bytes.Equal(out, data) {
				t.Errorf("%v, %s: %d bytes, %v", how, c.name, len(out), err)
			}
		}
	}
}

// TestZstdAnnouncesTooMuch: a few bytes that announce a gigabyte do not allocate it.
func TestZstdAnnouncesTooMuch(t *testing.T) {
	const size = 1 << 30
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0} // one segment; its size takes 4 bytes
	frame = binary.LittleEndian.AppendUint32(frame, size)
	frame = append(frame, 0x03|8<<3, 0, 0, 7) // the last block: 8 times 7
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := buffer(arrowmeta.ZSTD, frame, size)
	runtime.ReadMemStats(&after)
	if want := "zstd: 13 bytes of a frame of 1073741824 where 1073741824 are announced"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
		t.Errorf("%d bytes allocated", grown)
	}
}
