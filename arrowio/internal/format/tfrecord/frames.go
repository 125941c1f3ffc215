package tfrecord

import (
	"encoding/binary"
	"hash/crc32"
	"math"

	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/core/status"
)

const (
	headBytes  = 12 // a length and its checksum
	frameBytes = headBytes + 4

	// maxRecord bounds a record, which is parsed in memory.
	maxRecord = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the checksum of bytes as TFRecord stores it: CRC-32C, rotated, plus a constant.
func checksum(b []byte) uint32 {
	crc := crc32.Checksum(b, castagnoli)
	return (crc>>15 | crc<<17) + 0xa282ead8
}

// Recognize reports whether bytes begin as a file of TFRecord does: with a length and its checksum.
func Recognize(head []byte) bool {
	return len(head) >= headBytes && binary.LittleEndian.Uint32(head[8:]) == checksum(head[:8])
}

// records visits the records at the beginning of a text that has whole records and a part of one. It
// returns how many bytes the whole ones have, and how many the next one has at least. Both checksums of
// each record are checked. First is the number of the first record, and at its first byte in the file.
func records(text []byte, first, at int64, visit func(number int64, record []byte) error) (whole, next int64, err error) {
	for number := first; ; number++ {
		rest := text[whole:]
		if len(rest) < headBytes {
			return whole, frameBytes, nil
		}
		if !Recognize(rest) {
			return 0, 0, damaged(number, at+whole, "its length does not have the stored checksum")
		}
		length := binary.LittleEndian.Uint64(rest)
		if length > maxRecord {
			return 0, 0, status.Errorf(status.Unsupported, "arrowio", "record %d at byte %d has %d bytes, more than %d", number, at+whole, min(length, math.MaxInt64), maxRecord).
				WithHint("write smaller records, or convert the data to WebDataset or Parquet").With("record", number)
		}
		if int64(len(rest)) < frameBytes+int64(length) {
			return whole, frameBytes + int64(length), nil
		}
		record := rest[headBytes : headBytes+length]
		if binary.LittleEndian.Uint32(rest[headBytes+length:]) != checksum(record) {
			return 0, 0, damaged(number, at+whole, "its bytes do not have the stored checksum")
		}
		if err := visit(number, record); err != nil {
			return 0, 0, format.InEntry("record", number, err)
		}
		whole += frameBytes + int64(length)
	}
}

func damaged(number, at int64, why string) error {
	return status.Errorf(status.DataLoss, "arrowio", "record %d at byte %d is damaged: %s", number, at, why).
		WithHint("write or copy the file again").With("record", number).With("offset", at)
}
