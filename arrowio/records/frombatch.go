// Code generated from package records18 by go generate; DO NOT EDIT.

package records

import (
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/meshfeed/meshfeed/arrowio/internal/goarrow"
	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/source"
)

// FromBatch returns a batch of a loader as a record batch, which uses the memory of the
// batch without a copy. It takes that memory. Release of the record batch, and of all
// arrays that were retained, frees it. After an error the batch still has its memory.
//
// The columns are the arrays of plan, the layout of the loader, in their order. Rows with
// a shape are fixed-size lists, one inside the other. Booleans are converted to bits, and
// bfloat16 to float32. A complex number is a list of its two parts. Dates, times and
// durations have the type that schema, the schema of the loader's source, names. The
// result has no padding rows and no mask: the last record batch of an epoch may have fewer
// rows.
//
// The error is Unsupported unless the batch has each array in one block, as on a mesh of one
// device, and one batch dimension. It is InvalidArgument if the batch has other arrays than
// plan.
func FromBatch(plan *layout.Layout, schema source.Schema, b *batch.Batch) (arrow.Record, error) {
	columns, rows, err := goarrow.Rows(plan, schema, b)
	if err != nil {
		return nil, err
	}
	fields, arrays := make([]arrow.Field, len(columns)), make([]arrow.Array, len(columns))
	for i, c := range columns {
		arrays[i] = arrayOf(c, int(rows))
		defer arrays[i].Release()
		fields[i] = arrow.Field{Name: c.Name, Type: arrays[i].DataType(), Nullable: true}
	}
	return array.NewRecord(arrow.NewSchema(fields, nil), arrays, rows), nil
}

// arrayOf builds the array of a column from the inside out.
func arrayOf(c goarrow.Column, rows int) arrow.Array {
	buffer := memory.NewBufferBytes(c.Data)
	if c.Free != nil {
		buffer = memory.NewBufferWithAllocator(c.Data, owner{memory.DefaultAllocator, c.Free})
	}
	defer buffer.Release()
	length := rows
	for _, n := range c.Shape {
		length *= n
	}
	data := array.NewData(typeOf(c), length, []*memory.Buffer{nil, buffer}, nil, 0, 0)
	for d := len(c.Shape) - 1; d >= 0; d-- {
		length /= c.Shape[d]
		lists := array.NewData(arrow.FixedSizeListOf(int32(c.Shape[d]), data.DataType()), length, []*memory.Buffer{nil}, []arrow.ArrayData{data}, 0, 0)
		data.Release()
		data = lists
	}
	defer data.Release()
	return array.MakeFromData(data)
}

// owner frees memory that it did not allocate.
type owner struct {
	memory.Allocator
	free func()
}

func (o owner) Free([]byte) { o.free() }

// typeOf returns the type of a column's elements.
func typeOf(c goarrow.Column) arrow.DataType {
	kind, name, zone := goarrow.Temporal(c.Logical)
	unit := units[name]
	switch kind {
	case "date32":
		return arrow.FixedWidthTypes.Date32
	case "date64":
		return arrow.FixedWidthTypes.Date64
	case "time32":
		return &arrow.Time32Type{Unit: unit}
	case "time64":
		return &arrow.Time64Type{Unit: unit}
	case "timestamp":
		return &arrow.TimestampType{Unit: unit, TimeZone: zone}
	case "duration":
		return &arrow.DurationType{Unit: unit}
	case "year_month_interval":
		return arrow.FixedWidthTypes.MonthInterval
	}
	return types[c.Type]
}

var units = map[string]arrow.TimeUnit{"s": arrow.Second, "ms": arrow.Millisecond, "us": arrow.Microsecond, "ns": arrow.Nanosecond}

var types = map[dtype.Type]arrow.DataType{
	dtype.Bool: arrow.FixedWidthTypes.Boolean,
	dtype.Int8: arrow.PrimitiveTypes.Int8, dtype.Int16: arrow.PrimitiveTypes.Int16,
	dtype.Int32: arrow.PrimitiveTypes.Int32, dtype.Int64: arrow.PrimitiveTypes.Int64,
	dtype.Uint8: arrow.PrimitiveTypes.Uint8, dtype.Uint16: arrow.PrimitiveTypes.Uint16,
	dtype.Uint32: arrow.PrimitiveTypes.Uint32, dtype.Uint64: arrow.PrimitiveTypes.Uint64,
	dtype.Float16: arrow.FixedWidthTypes.Float16,
	dtype.Float32: arrow.PrimitiveTypes.Float32, dtype.Float64: arrow.PrimitiveTypes.Float64,
}
