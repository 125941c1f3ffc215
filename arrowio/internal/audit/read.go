package audit

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/bits"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/core/status"
)

// pieceLen is the number of values that are read at once. It is a multiple of 8, so
// that every piece of a bitmap begins at a whole byte.
const pieceLen = 1 << 16

// pieces reads n values of width bytes in pieces of pieceLen values. It calls visit
// for each piece, with the number of its first value. Visit must not keep the
// values, because the memory is reused.
func (c *column) pieces(b buffer, width, n int64, visit func(first int64, values []byte) error) error {
	memory := make([]byte, min(n, pieceLen)*width)
	for first := int64(0); first < n; first += pieceLen {
		values := memory[:min(n-first, pieceLen)*width]
		if err := c.read(b, values, first*width); err != nil {
			return err
		}
		if err := visit(first, values); err != nil {
			return err
		}
	}
	return nil
}

// read fills p with the bytes of a buffer from off on. It fails if the context has
// ended.
func (c *column) read(b buffer, p []byte, off int64) error {
	if err := status.Ended("arrowio", "the verification", c.ctx.Err()); err != nil {
		return err
	}
	n, err := b.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// validity checks that the validity bitmap has as many nulls as the metadata state.
// If there are nulls, it sets c.nulls.
func (c *column) validity() error {
	node := c.node()
	if !c.Validity || c.batch.Buffers(c.Column)[0].Length == 0 {
		return nil // arrowmeta has checked that the column has no nulls
	}
	b, err := c.openAny(0)
	if err != nil || b.Size() == 0 && node.Nulls == 0 {
		return err
	}
	if need := (node.Length + 7) / 8; b.Size() < need {
		return c.fault("the validity bitmap has %d bytes, too few for %d values", b.Size(), node.Length)
	}
	valid := int64(0)
	err = c.pieces(b, 1, (node.Length+7)/8, func(first int64, bitmap []byte) error {
		if rest := node.Length - 8*first; rest < 8*int64(len(bitmap)) {
			bitmap[len(bitmap)-1] &= 1<<(rest&7) - 1 // bits after the last value are undefined
		}
		for _, b := range bitmap {
			valid += int64(bits.OnesCount8(b))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if nulls := node.Length - valid; nulls != node.Nulls {
		return c.fault("metadata count %d nulls among %d values, but the validity bitmap has %d", node.Nulls, node.Length, nulls)
	}
	if node.Nulls > 0 {
		c.nulls = b
	}
	return nil
}

// valid reads the validity bitmap of n values, beginning with value first, which
// must be a multiple of 8. It returns nil if no value of the column is null.
func (c *column) valid(first, n int64) ([]byte, error) {
	if c.nulls == nil {
		return nil, nil
	}
	bitmap := make([]byte, (n+7)/8)
	return bitmap, c.read(c.nulls, bitmap, first/8)
}

func isNull(bitmap []byte, i int) bool { return bitmap != nil && bitmap[i>>3]>>(i&7)&1 == 0 }

// integer returns the i-th integer of values. It returns math.MaxInt64 for a larger
// unsigned value.
func integer(values []byte, i int, width int64, signed bool) int64 {
	at := values[int64(i)*width:]
	switch {
	case width == 1 && signed:
		return int64(int8(at[0]))
	case width == 1:
		return int64(at[0])
	case width == 2 && signed:
		return int64(int16(binary.LittleEndian.Uint16(at)))
	case width == 2:
		return int64(binary.LittleEndian.Uint16(at))
	case width == 4 && signed:
		return int64(int32(binary.LittleEndian.Uint32(at)))
	case width == 4:
		return int64(binary.LittleEndian.Uint32(at))
	case signed:
		return int64(binary.LittleEndian.Uint64(at))
	}
	return int64(min(binary.LittleEndian.Uint64(at), math.MaxInt64))
}

// windowBytes is the largest number of bytes that a window reads at once.
const windowBytes = 64 << 10

// window reads parts of a buffer. It reads more bytes than a part has, because the
// next part mostly follows directly.
type window struct {
	column *column
	buffer buffer
	at     int64  // the position of bytes in the buffer
	bytes  []byte // read last
	memory []byte // backs bytes
}

// slice returns n bytes of the buffer from off on. The caller has checked that n is
// at most windowBytes, and that the buffer has these bytes.
func (w *window) slice(off, n int64) ([]byte, error) {
	if off < w.at || off+n > w.at+int64(len(w.bytes)) {
		if w.memory == nil {
			w.memory = make([]byte, min(windowBytes, w.buffer.Size()))
		}
		w.at, w.bytes = off, w.memory[:min(int64(len(w.memory)), w.buffer.Size()-off)]
		if err := w.column.read(w.buffer, w.bytes, off); err != nil {
			w.bytes = nil
			return nil, err
		}
	}
	return w.bytes[off-w.at : off-w.at+n], nil
}

// utf8 reports whether the bytes [from, to) of the buffer are UTF-8.
func (w *window) utf8(from, to int64) (bool, error) {
	for from < to {
		n := min(to-from, windowBytes)
		p, err := w.slice(from, n)
		if err != nil {
			return false, err
		}
		if from+n < to {
			p = p[:n-unfinished(p)]
		}
		if !utf8.Valid(p) {
			return false, nil
		}
		from += int64(len(p))
	}
	return true, nil
}

// unfinished returns the number of bytes at the end of p that begin an
// incomplete character.
func unfinished(p []byte) int64 {
	for k := 1; k < utf8.UTFMax && k <= len(p); k++ {
		if tail := p[len(p)-k:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return int64(k)
		}
	}
	return 0
}
