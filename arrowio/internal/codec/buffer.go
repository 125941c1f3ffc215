package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// MaxBuffer bounds the decompressed bytes of a buffer.
const MaxBuffer = 2 << 30

// Buffer returns the content of a stored buffer of Arrow IPC. A compressed buffer begins with
// its decompressed size, which check may refuse; -1 stands for bytes as they are.
func Buffer(how arrowmeta.Compression, stored []byte, check func(size int64) error) ([]byte, error) {
	if how == arrowmeta.Uncompressed || len(stored) == 0 {
		return stored, nil
	}
	size := int64(binary.LittleEndian.Uint64(stored)) // arrowmeta has checked that there are 8 bytes
	stored = stored[8:]
	if size == -1 {
		return stored, nil
	}
	if err := check(size); err != nil {
		return nil, err
	}
	return decompress(how, stored, size)
}

// decompress returns exactly size bytes, or fails. It allocates no more than that,
// whatever the frames claim.
func decompress(how arrowmeta.Compression, stored []byte, size int64) (out []byte, err error) {
	err = guard.Call("arrowio", func() error {
		if how == arrowmeta.LZ4Frame {
			out, err = unlz4Frame(stored, size)
		} else {
			out, err = unzstdFrame(stored, size)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%v: %w", how, err)
	}
	return out, nil
}

// The decoders of frames are kept, because making one costs more than decoding a small buffer.
var (
	lz4Frames  sync.Pool // holds *lz4.Reader
	zstdFrames sync.Pool // holds *zstd.Decoder, for whole frames
)

func unlz4Frame(stored []byte, size int64) ([]byte, error) {
	r, ok := lz4Frames.Get().(*lz4.Reader)
	if !ok {
		r = lz4.NewReader(nil)
	}
	r.Reset(bytes.NewReader(stored))
	out, err := readExactly(r, size)
	if err == nil {
		lz4Frames.Put(r)
	}
	return out, err
}

// maxFrameWindow bounds the window of a zstd frame that is decoded as a stream.
const maxFrameWindow = 64 << 20

// zstdRatio is above zstd's best ratio: 128 KiB become 4 bytes.
const zstdRatio = 40 << 10

// unzstdFrame decodes a frame at once if its header has its size, as Arrow's writers set it.
// Otherwise it decodes the frame as a stream.
func unzstdFrame(stored []byte, size int64) ([]byte, error) {
	var head zstd.Header
	if err := head.Decode(stored); err != nil {
		return nil, err
	}
	if !head.SingleSegment {
		r, err := zstd.NewReader(bytes.NewReader(stored), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxFrameWindow))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return readExactly(r, size)
	}
	if head.FrameContentSize != uint64(size) || size/zstdRatio > int64(len(stored)) {
		return nil, fmt.Errorf("%d bytes of a frame of %d where %d are announced", len(stored), head.FrameContentSize, size)
	}
	r, ok := zstdFrames.Get().(*zstd.Decoder)
	if !ok {
		var err error
		r, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxBuffer), zstd.WithDecoderMaxWindow(MaxBuffer), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			return nil, err
		}
	}
	out, err := r.DecodeAll(stored, make([]byte, 0, size))
	if err != nil {
		return nil, err
	}
	zstdFrames.Put(r)
	if int64(len(out)) != size {
		return nil, fmt.Errorf("%d bytes instead of %d", len(out), size)
	}
	return out, nil
}

// readExactly reads size bytes and makes sure that no more follow. Memory grows
// with the bytes that are read.
func readExactly(r io.Reader, size int64) ([]byte, error) {
	out := make([]byte, 0, min(size, 1<<20))
	for int64(len(out)) < size {
		if len(out) == cap(out) {
			grown := make([]byte, len(out), min(size, 4*int64(cap(out))))
			copy(grown, out)
			out = grown
		}
		n, err := r.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if int64(len(out)) < size {
		return nil, fmt.Errorf("%d bytes instead of %d", len(out), size)
	}
	return out, ended(r, fmt.Errorf("more than the %d bytes that were announced", size))
}
