package loader_test

import (
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

func first(t *testing.T, l *loader.Loader) *batch.Batch {
	t.Helper()
	b, err := l.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// same checks the elements of an array against its block.
func same[T dtype.Element](t *testing.T, b *batch.Batch, array string) {
	t.Helper()
	values, err := loader.Values[T](b, array)
	if err != nil {
		t.Error(err)
		return
	}
	i := slices.IndexFunc(b.Blocks(), func(block batch.Block) bool { return block.Name == array })
	block := b.Blocks()[i]
	n := 1
	for _, d := range block.Shape {
		n *= d
	}
	elements, err := loader.BlockValues[T](b, i)
	if err != nil || len(values) != n || len(elements) != n || &elements[0] != &values[0] {
		t.Errorf("%s: %d and %d values of %d, %v", array, len(values), len(elements), n, err)
	}
}

// Without a layout a batch has all fields, each in one block, as Go's own types.
func TestValues(t *testing.T) {
	var fields []source.Field
	for _, typ := range dtype.All() {
		fields = append(fields, source.Field{Name: typ.String(), Type: typ, Shape: []int{3}})
	}
	fields = append(fields, source.Field{Name: "tokens", Type: dtype.Int32, Ragged: 1})
	l := newLoader(t, synthetic.New(8, fields...), loader.Options{BatchSize: 4, Order: "shuffle"})
	if got := l.State().Order; got != sampler.Shuffle {
		t.Errorf("the order is %q", got)
	}
	b := first(t, l)
	checkBytes(t, l, b)
	if n := len(b.Blocks()); n != len(dtype.All()) {
		t.Errorf("the batch has %d blocks", n)
	}
	same[bool](t, b, "bool")
	same[int8](t, b, "int8")
	same[int16](t, b, "int16")
	same[int32](t, b, "int32")
	same[int64](t, b, "int64")
	same[uint8](t, b, "uint8")
	same[uint16](t, b, "uint16")
	same[uint32](t, b, "uint32")
	same[uint64](t, b, "uint64")
	same[uint16](t, b, "float16")
	same[uint16](t, b, "bfloat16")
	same[float32](t, b, "float32")
	same[float64](t, b, "float64")
	same[complex64](t, b, "complex64")
	same[complex128](t, b, "complex128")

	_, err := loader.Values[int64](b, "int32")
	wantError(t, err, status.InvalidArgument, `loader: array "int32" has elements of type int32, which are read as int32, not int64`)
	_, err = loader.Values[float32](b, "bfloat16")
	wantError(t, err, status.InvalidArgument, `loader: array "bfloat16" has elements of type bfloat16, which are read as uint16, not float32`)
	_, err = loader.BlockValues[int32](b, 15)
	wantError(t, err, status.OutOfRange, "batch: there is no block 15: the batch has 15; Blocks lists them; they count from 0")
	_, err = loader.Values[int32](nil, "int32")
	wantError(t, err, status.InvalidArgument, "loader: there is no batch; give the batch of a call without an error; Next returns nil with one")
	_, err = loader.BlockValues[int32](nil, 0)
	wantError(t, err, status.InvalidArgument, "loader: there is no batch; give the batch of a call without an error; Next returns nil with one")
	b.Release()
	for _, array := range []string{"int32", "bool"} {
		_, err = loader.Values[int32](b, array)
		wantError(t, err, status.InvalidState, "batch: the batch was released or taken, and its memory belongs to another one; read a batch before its Release, or copy what is kept")
	}

	l = newLoader(t, digits(8), loader.Options{Layout: newLayout(t, document(8))})
	b = first(t, l)
	defer b.Release()
	_, err = loader.Values[int64](b, "lable")
	wantError(t, err, status.NotFound, `loader: the batch has no array "lable" in this process; it has ["image" "label"]`)
	_, err = loader.Values[float32](b, "image")
	wantError(t, err, status.InvalidArgument, `loader: this process holds array "image" in 2 blocks, one for each part of it; read each block by BlockValues; Batch.Blocks lists them`)
}
