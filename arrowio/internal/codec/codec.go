// Package codec decompresses the pages of Parquet files and the buffers of Arrow IPC files. It
// takes no more memory than the sizes in the metadata of a file, whatever the content claims.
package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/meshfeed/meshfeed/internal/guard"
	"github.com/meshfeed/meshfeed/internal/parquet"
)

// maxWindow bounds the window of a zstd frame in a page.
const maxWindow = 128 << 20

// Supported reports whether Decompress knows a codec.
func Supported(c parquet.Codec) bool { return c == parquet.Uncompressed || decoders[c] != nil }

// maxRatios bounds how many bytes of a page come from one compressed byte.
var maxRatios = map[parquet.Codec]int{
	parquet.Snappy:    22,       // a copy of 64 bytes takes 3
	parquet.Gzip:      1032,     // a copy of 258 bytes takes 2 bits
	parquet.Brotli:    4 << 20,  // a block of 16 MiB takes 4 bytes or more
	parquet.Zstd:      32 << 10, // a block of 128 KiB takes 4 bytes
	parquet.LZ4:       255,      // each byte of a length stands for 255 bytes
	parquet.LZ4Hadoop: 255,
}

// CheckSize returns an error if so many compressed bytes of a page cannot become size
// bytes. Call it before memory is taken for them.
func CheckSize(stored, size int, c parquet.Codec) error {
	if ratio := maxRatios[c]; ratio > 0 && size/ratio > stored {
		return fmt.Errorf("%d bytes cannot be %d after decompression with %v", stored, size, c)
	}
	return nil
}

// Decompress fills dst with the bytes of a compressed page, which must be as many. It
// allocates no more than a constant amount of memory beside dst.
func Decompress(dst, src []byte, c parquet.Codec) error {
	decode := decoders[c]
	if decode == nil {
		return fmt.Errorf("compressed with %v, which is not read", c)
	}
	if err := guard.Call("parquet", func() error { return decode(dst, src) }); err != nil {
		return fmt.Errorf("%v: %w", c, err)
	}
	return nil
}

var decoders = map[parquet.Codec]func(dst, src []byte) error{
	parquet.Snappy:    unsnappy,
	parquet.Gzip:      ungzip,
	parquet.Brotli:    unbrotli,
	parquet.Zstd:      unzstd,
	parquet.LZ4:       unlz4,
	parquet.LZ4Hadoop: unlz4Hadoop,
}

var errSize = errors.New("the page does not have the size that its header promises")

func unsnappy(dst, src []byte) error {
	if n, err := s2.DecodedLen(src); err != nil || n != len(dst) {
		return errors.Join(err, errSize)
	}
	_, err := s2.Decode(dst, src)
	return err
}

func unlz4(dst, src []byte) error {
	n, err := lz4.UncompressBlock(src, dst)
	if err == nil && n != len(dst) {
		err = errSize
	}
	return err
}

// unlz4Hadoop decompresses the codec LZ4 of old writers: blocks of Hadoop, each with its
// sizes in eight bytes, and from other writers a single block without sizes.
func unlz4Hadoop(dst, src []byte) error {
	if unhadoop(dst, src) == nil {
		return nil
	}
	return unlz4(dst, src)
}

func unhadoop(dst, src []byte) error {
	for len(src) > 0 {
		if len(src) < 8 {
			return errSize
		}
		size, stored := uint64(binary.BigEndian.Uint32(src)), uint64(binary.BigEndian.Uint32(src[4:]))
		if size > uint64(len(dst)) || stored > uint64(len(src)-8) {
			return errSize
		}
		if err := unlz4(dst[:size], src[8:8+stored]); err != nil {
			return err
		}
		dst, src = dst[size:], src[8+stored:]
	}
	if len(dst) > 0 {
		return errSize
	}
	return nil
}

// The decoders are kept, because making one takes longer than decoding a small page.
var (
	gzips   sync.Pool // holds *gzip.Reader
	brotlis sync.Pool // holds *brotli.Reader
	zstds   sync.Pool // holds *zstd.Decoder
)

func ungzip(dst, src []byte) (err error) {
	r, ok := gzips.Get().(*gzip.Reader)
	if !ok {
		r = new(gzip.Reader)
	}
	if err := r.Reset(bytes.NewReader(src)); err != nil {
		return err
	}
	if err := exactly(r, dst); err != nil {
		return err
	}
	gzips.Put(r)
	return nil
}

func unbrotli(dst, src []byte) error {
	r, ok := brotlis.Get().(*brotli.Reader)
	if !ok {
		r = brotli.NewReader(nil)
	}
	if err := r.Reset(bytes.NewReader(src)); err != nil {
		return err
	}
	if err := exactly(r, dst); err != nil {
		return err
	}
	brotlis.Put(r)
	return nil
}

// exactly fills dst, and checks that no more bytes follow.
func exactly(r io.Reader, dst []byte) error {
	if _, err := io.ReadFull(r, dst); err != nil {
		return err
	}
	return ended(r, errSize)
}

// ended returns an error unless a stream has ended: tooLong, or the error of a read.
func ended(r io.Reader, tooLong error) error {
	var more [1]byte
	switch n, err := io.ReadFull(r, more[:]); {
	case n > 0:
		return tooLong
	case err != io.EOF:
		return err
	}
	return nil
}

func unzstd(dst, src []byte) error {
	r, ok := zstds.Get().(*zstd.Decoder)
	if !ok {
		var err error
		r, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			return err
		}
	}
	out, err := r.DecodeAll(src, dst[:0:len(dst)])
	if err != nil {
		return err
	}
	zstds.Put(r)
	if len(out) != len(dst) {
		return errSize
	}
	return nil
}
