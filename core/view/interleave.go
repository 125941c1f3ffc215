package view

import "encoding/binary"

// strip is how many columns are interleaved at a time, so that the current cache line
// of each fits into the first cache.
const strip = 256

// interleave copies columns, which lie one after the other in src, to rows in dst. An
// element has width bytes.
func interleave(dst, src []byte, rows, columns, width int) {
	for from := 0; from < columns; from += strip {
		to := min(from+strip, columns)
		for r := range rows {
			row := dst[(r*columns+from)*width : (r*columns+to)*width]
			column := src[(from*rows+r)*width:]
			switch width {
			case 4:
				pick4(row, column, 4*rows)
			case 8:
				pick8(row, column, 8*rows)
			default:
				pick(row, column, width*rows, width)
			}
		}
	}
}

// pick fills a row with every stride-th element of src.
func pick(row, src []byte, stride, width int) {
	for at := 0; at < len(row); at += width {
		copy(row[at:at+width], src[at/width*stride:])
	}
}

// pick4 is pick for elements of 4 bytes, without a call for each.
func pick4(row, src []byte, stride int) {
	for s := 0; len(row) >= 4; s += stride {
		binary.LittleEndian.PutUint32(row, binary.LittleEndian.Uint32(src[s:]))
		row = row[4:]
	}
}

// pick8 is pick for elements of 8 bytes.
func pick8(row, src []byte, stride int) {
	for s := 0; len(row) >= 8; s += stride {
		binary.LittleEndian.PutUint64(row, binary.LittleEndian.Uint64(src[s:]))
		row = row[8:]
	}
}
