package ipcfile

import (
	"fmt"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// putSchema adds the table Schema, with all fields and metadata.
func putSchema(b *flatbuffers.Builder, s *arrowmeta.Schema) (flatbuffers.UOffsetT, error) {
	fields, err := putFields(b, s.Fields)
	if err != nil {
		return 0, err
	}
	metadata := putMetadata(b, s.Metadata)
	b.StartObject(4)
	b.PrependUOffsetTSlot(1, fields, 0)
	b.PrependUOffsetTSlot(2, metadata, 0)
	return b.EndObject(), nil
}

// putFields adds a vector of tables Field.
func putFields(b *flatbuffers.Builder, fields []arrowmeta.Field) (flatbuffers.UOffsetT, error) {
	tables := make([]flatbuffers.UOffsetT, len(fields))
	for i := range fields {
		var err error
		if tables[i], err = putField(b, &fields[i]); err != nil {
			return 0, err
		}
	}
	return putTables(b, tables), nil
}

func putTables(b *flatbuffers.Builder, tables []flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	b.StartVector(4, len(tables), 4)
	for i := len(tables) - 1; i >= 0; i-- {
		b.PrependUOffsetT(tables[i])
	}
	return b.EndVector(len(tables))
}

// putField adds the table Field.
func putField(b *flatbuffers.Builder, f *arrowmeta.Field) (flatbuffers.UOffsetT, error) {
	if f.Dictionary != nil {
		return 0, fmt.Errorf("field %q: dictionaries are not written", f.Name)
	}
	children, err := putFields(b, f.Type.Children)
	if err != nil {
		return 0, err
	}
	typ, err := putType(b, &f.Type)
	if err != nil {
		return 0, fmt.Errorf("field %q: %w", f.Name, err)
	}
	name, metadata := b.CreateString(f.Name), putMetadata(b, f.Metadata)
	b.StartObject(7)
	b.PrependUOffsetTSlot(0, name, 0)
	b.PrependBoolSlot(1, f.Nullable, false)
	b.PrependByteSlot(2, byte(f.Type.Kind), 0)
	b.PrependUOffsetTSlot(3, typ, 0)
	b.PrependUOffsetTSlot(5, children, 0)
	b.PrependUOffsetTSlot(6, metadata, 0)
	return b.EndObject(), nil
}

// putMetadata adds a vector of tables KeyValue, or nothing if it is empty.
func putMetadata(b *flatbuffers.Builder, m arrowmeta.Metadata) flatbuffers.UOffsetT {
	if len(m) == 0 {
		return 0
	}
	pairs := make([]flatbuffers.UOffsetT, len(m))
	for i, kv := range m {
		key, value := b.CreateString(kv.Key), b.CreateString(kv.Value)
		b.StartObject(2)
		b.PrependUOffsetTSlot(0, key, 0)
		b.PrependUOffsetTSlot(1, value, 0)
		pairs[i] = b.EndObject()
	}
	return putTables(b, pairs)
}

// units has the numbers of the enumeration TimeUnit.
var units = map[arrowmeta.Unit]int16{arrowmeta.Second: 0, arrowmeta.Millisecond: 1, arrowmeta.Microsecond: 2, arrowmeta.Nanosecond: 3}

// putType adds the table with the parameters of a type. Parameters that have their default
// value are left out.
func putType(b *flatbuffers.Builder, t *arrowmeta.Type) (flatbuffers.UOffsetT, error) {
	zone := flatbuffers.UOffsetT(0)
	if t.TimeZone != "" {
		zone = b.CreateString(t.TimeZone)
	}
	b.StartObject(2)
	switch t.Kind {
	case arrowmeta.Bool, arrowmeta.Binary, arrowmeta.String, arrowmeta.LargeBinary, arrowmeta.LargeString, arrowmeta.List, arrowmeta.LargeList:
	case arrowmeta.Int:
		b.PrependInt32Slot(0, int32(t.BitWidth), 0)
		b.PrependBoolSlot(1, t.Signed, false)
	case arrowmeta.Float:
		b.PrependInt16Slot(0, map[int]int16{16: 0, 32: 1, 64: 2}[t.BitWidth], 0)
	case arrowmeta.Date:
		b.PrependInt16Slot(0, map[int]int16{32: 0, 64: 1}[t.BitWidth], 1)
	case arrowmeta.Time:
		b.PrependInt16Slot(0, units[t.Unit], 1)
		b.PrependInt32Slot(1, int32(t.BitWidth), 32)
	case arrowmeta.Timestamp:
		b.PrependInt16Slot(0, units[t.Unit], 0)
		b.PrependUOffsetTSlot(1, zone, 0)
	case arrowmeta.Duration:
		b.PrependInt16Slot(0, units[t.Unit], 1)
	case arrowmeta.Interval:
		if t.Unit != arrowmeta.YearMonth {
			return 0, fmt.Errorf("the type %v is not written", t)
		}
	case arrowmeta.FixedSizeBinary:
		b.PrependInt32Slot(0, int32(t.ByteWidth), 0)
	case arrowmeta.FixedSizeList:
		b.PrependInt32Slot(0, int32(t.ListSize), 0)
	default:
		return 0, fmt.Errorf("the type %v is not written", t)
	}
	return b.EndObject(), nil
}
