package view_test

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// A map computes a field of 4-byte integers from the labels of each record, ahead of the step.
func ExampleMap() {
	ds := synthetic.New(8, source.Field{Name: "label", Type: dtype.Int64}) // or arrowio.Open
	mapped, err := view.Map(ds, view.Mapping{
		Fields: []string{"label"},
		Out:    []source.Field{{Name: "odd", Type: dtype.Int32}},
		Key:    "odd.1",
		Func: func(_ context.Context, rows *view.Rows) error {
			out := rows.Fixed(0) // memory for the rows of the first field of Out
			for i, label := range rows.In[0] {
				binary.LittleEndian.PutUint32(out[4*i:], uint32(label.Row[0]&1))
			}
			return nil
		},
	})
	if err != nil {
		panic(err)
	}
	l, err := loader.New(mapped, loader.Options{BatchSize: 8})
	if err != nil {
		panic(err)
	}
	defer l.Close()
	b, err := l.Next(context.Background())
	if err != nil {
		panic(err)
	}
	defer b.Release()
	labels, _ := loader.Values[int64](b, "label")
	odd, _ := loader.Values[int32](b, "odd")
	for i := range labels {
		if int32(labels[i]&1) != odd[i] {
			fmt.Println(labels[i], odd[i])
		}
	}
	fmt.Println(len(odd), "rows")
	// Output: 8 rows
}
