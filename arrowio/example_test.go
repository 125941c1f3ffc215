package arrowio_test

import (
	"context"
	"fmt"
	"log"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/loader"
)

// A loader without a layout delivers batches of all fields, here in the order of the file.
func ExampleOpen() {
	ds, err := arrowio.Open("testdata/parquet/delta.parquet")
	if err != nil {
		log.Fatal(err)
	}
	defer ds.Close()
	l, err := loader.New(ds, loader.Options{BatchSize: 8})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	for b, err := range l.All(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		labels, err := loader.Values[int32](b, "j")
		fmt.Println(labels, err)
		b.Release()
	}
	// Output:
	// [0 1 2 3 4 5 6 7] <nil>
	// [8 9 10 11 12 13 14 15] <nil>
}
