package table

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/zeebo/xxh3"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// estimateRows is the number of rows for an estimate of the size of ragged rows.
const estimateRows = 256

// raggedBytes estimates the bytes of one row of all ragged fields. The estimate depends on
// the rows alone, so that every host hashes the same blocks.
func (p *blocks) raggedBytes(ctx context.Context) (int64, error) {
	n := p.source.Len()
	if len(p.ragged) == 0 || n == 0 {
		return 0, nil
	}
	rows, err := p.source.Reader(p.ragged)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	total, count := int64(0), min(n, estimateRows)
	for i := range count {
		record := i * (n - 1) / max(count-1, 1)
		err := readReadable(ctx, rows, p.ragged, []int64{record}, func(s *source.Span) { total += int64(len(s.Row)) + 8 })
		if err != nil {
			return 0, err
		}
	}
	return (total + count - 1) / count, nil
}

// hashRagged adds rows of ragged fields to a hash: their lengths, values and nulls.
func hashRagged(ctx context.Context, rows source.Reader, fields []int, records []int64, h hash.Hash) error {
	if len(fields) == 0 {
		return nil
	}
	sum := xxh3.New()
	err := readReadable(ctx, rows, fields, records, func(s *source.Span) { hashRow(sum, s) })
	digest := sum.Sum128().Bytes()
	h.Write(digest[:])
	return err
}

// hashRow adds one row to a hash. Each part has its length before it, so that two
// different rows never have the same bytes.
func hashRow(h hash.Hash, s *source.Span) {
	if s.Null() {
		_, _ = h.Write([]byte("null"))
		return
	}
	text := binary.LittleEndian.AppendUint64(nil, uint64(len(s.Row)))
	text = binary.LittleEndian.AppendUint64(text, uint64(len(s.Nulls)))
	for _, list := range s.Lists {
		text = binary.LittleEndian.AppendUint64(text, uint64(len(list)))
		for _, length := range list {
			text = binary.LittleEndian.AppendUint64(text, uint64(length))
		}
	}
	for _, null := range s.Nulls {
		if null {
			text = append(text, 1)
		} else {
			text = append(text, 0)
		}
	}
	_, _ = h.Write(text)
	_, _ = h.Write(s.Row)
}

// readReadable visits rows field by field. A row that is damaged is visited as a text about
// it, since it must not prevent a loader from using other fields.
func readReadable(ctx context.Context, rows source.Reader, fields []int, records []int64, visit func(s *source.Span)) error {
	spans := make([]source.Span, 0, len(records))
	for _, field := range fields {
		spans = spans[:0]
		for _, record := range records {
			spans = append(spans, source.Span{Field: field, Record: record})
		}
		err := rows.Read(ctx, source.Draw{}, spans, func() error {
			for i := range spans {
				visit(&spans[i])
			}
			return nil
		})
		switch status.CodeOf(err) {
		case status.OK:
		case status.InvalidArgument, status.DataLoss:
			visit(&source.Span{Field: field, Row: fmt.Appendf(nil, "field %d is not readable", field)})
		default:
			return err
		}
	}
	return nil
}
