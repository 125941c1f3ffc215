package cstream

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/tests/random"
)

// raggedColumns are columns of text and lists. Every seventh row is null.
var raggedColumns = []testColumn{
	{name: "text", typ: arrow.BinaryTypes.String, append: orNull(func(b array.Builder, i int) { b.(*array.StringBuilder).Append(word(i)) })},
	{name: "large", typ: arrow.BinaryTypes.LargeBinary, append: orNull(func(b array.Builder, i int) { b.(*array.BinaryBuilder).Append([]byte(word(i))) })},
	{name: "view", typ: arrow.BinaryTypes.StringView, append: orNull(func(b array.Builder, i int) { b.(*array.StringViewBuilder).Append(word(i)) })},
	{name: "words", typ: arrow.ListOf(arrow.BinaryTypes.String), append: orNull(func(b array.Builder, i int) {
		list := b.(*array.ListBuilder)
		list.Append(true)
		for k := range i % 4 {
			list.ValueBuilder().(*array.StringBuilder).Append(word(i + k))
		}
	})},
	{name: "category", typ: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, append: orNull(func(b array.Builder, i int) {
		if err := b.(*array.BinaryDictionaryBuilder).AppendString(word(i)); err != nil {
			panic(err)
		}
	})},
	{name: "tokens", typ: arrow.LargeListOf(arrow.PrimitiveTypes.Int16), append: orNull(func(b array.Builder, i int) {
		list := b.(*array.LargeListBuilder)
		list.Append(true)
		for k := range i % 4 {
			list.ValueBuilder().(*array.Int16Builder).Append(int16(i + k))
		}
	})},
}

func word(i int) string { return strings.Repeat("ä", i%9) + fmt.Sprint(i%5) }

func orNull(add func(b array.Builder, i int)) func(b array.Builder, i int) {
	return func(b array.Builder, i int) {
		if i%7 == 6 {
			b.AppendNull()
			return
		}
		add(b, i)
	}
}

// raggedRow is what a reader must return for row i of a column of raggedColumns.
func raggedRow(span *source.Span, i int) {
	if i%7 == 6 {
		return
	}
	span.Row = []byte{}
	switch span.Field {
	case 3:
		span.Lists = [][]int64{{}}
		for k := range i % 4 {
			span.Row = append(span.Row, word(i+k)...)
			span.Lists[0] = append(span.Lists[0], int64(len(word(i+k))))
		}
	case 5:
		for k := range i % 4 {
			span.Row = append(span.Row, le(int16(i+k))...)
		}
	default:
		span.Row = append(span.Row, word(i)...)
	}
}

// TestRagged runs the suite of all sources over ragged columns of batches that are cut from
// longer arrays.
func TestRagged(t *testing.T) {
	rng := random.New(t)
	var batches [][2]int
	var rows []int
	for range 4 {
		to := rng.IntN(40) + 1
		from := rng.IntN(to)
		batches = append(batches, [2]int{from, to})
		for i := from; i < to; i++ {
			rows = append(rows, i)
		}
	}
	sourcetest.Suite{
		Open: func(t *testing.T) source.Source {
			s, err := Read(unsafe.Pointer(export(t, raggedColumns, batches)), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if schema := s.Schema(); len(schema.Fields) != len(raggedColumns) || len(schema.Fixed()) != 0 {
				t.Fatalf("schema %+v", schema)
			}
			return s
		},
		Ragged: func(span *source.Span) { raggedRow(span, rows[span.Record]) },
	}.Run(t)
}
