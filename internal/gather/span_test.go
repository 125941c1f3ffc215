package gather

import (
	"encoding/binary"
	"errors"
	"testing"
)

// TestSpans copies and narrows spans of many lengths, and compares every byte.
func TestSpans(t *testing.T) {
	for _, conversion := range []Conversion{Copy, Int64ToInt32} {
		var spans []Span
		var want []byte
		dst, value := make([]byte, 8*2000), uint64(0)
		rest := dst
		for length := range 60 {
			src := []byte{}
			for range length {
				value++
				src = binary.LittleEndian.AppendUint64(src, value)
				want = binary.LittleEndian.AppendUint32(want, uint32(value))
				if conversion == Copy {
					want = binary.LittleEndian.AppendUint32(want, 0)
				}
			}
			size := len(src)
			if conversion != Copy {
				size /= 2
			}
			spans, rest = append(spans, Span{rest[:size:size], src}), rest[size:]
		}
		if err := conversion.Copy(spans); err != nil {
			t.Fatal(err)
		}
		if got := dst[:len(want)]; string(got) != string(want) {
			t.Errorf("conversion %d: got %x, want %x", conversion, got, want)
		}
	}
	spans := []Span{{make([]byte, 4), make([]byte, 8)}, {make([]byte, 8), []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}}}
	if e, ok := errors.AsType[*RangeError](Int64ToInt32.Copy(spans)); !ok || e.Row != 1 || e.Value != int64(1<<32) {
		t.Errorf("%+v", e)
	}
}
