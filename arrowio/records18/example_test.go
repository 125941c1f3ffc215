package records18_test

import (
	"context"
	"fmt"
	"io"
	"log"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/meshfeed/meshfeed/arrowio/records18"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/stream"
)

const plan = `{"meshfeed": 1, "mesh": {"axes": [["data", 2]]}, "batch": {"size": 4, "remainder": "pad"},
 "arrays": {"label": {"shape": ["B"], "dtype": "uint8", "spec": ["data"]}}}`

// send writes 2 records, then 3, then 1.
func send(to *io.PipeWriter) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "label", Type: arrow.PrimitiveTypes.Uint8}}, nil)
	w := ipc.NewWriter(to, ipc.WithSchema(schema))
	for _, labels := range [][]byte{{1, 2}, {3, 4, 5}, {6}} {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		b.Field(0).(*array.Uint8Builder).AppendValues(labels, nil)
		record := b.NewRecordBatch()
		if err := w.Write(record); err != nil {
			log.Fatal(err)
		}
		record.Release()
		b.Release()
	}
	to.CloseWithError(w.Close())
}

// A pipe, a socket or a query delivers its records once. The batches of its reader cross
// the borders of record batches, and the last one is padded.
func ExampleFromReader() {
	from, to := io.Pipe()
	go send(to)
	reader, err := ipc.NewReader(from)
	if err != nil {
		log.Fatal(err)
	}
	defer reader.Release()
	lay, err := document.Layout([]byte(plan))
	if err != nil {
		log.Fatal(err)
	}
	s, err := records18.FromReader(reader, stream.Options{Layout: lay})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for b, err := range s.All(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		for i, block := range lay.Process(0).Blocks {
			bytes, err := b.Bytes(i)
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(b.Blocks()[i].Name, block.Index, bytes)
		}
		b.Release()
	}
	// Output:
	// label [0:2] [1 2]
	// label [2:4] [3 4]
	// valid [0:2] [1 1]
	// valid [2:4] [1 1]
	// label [0:2] [5 6]
	// label [2:4] [0 0]
	// valid [0:2] [1 1]
	// valid [2:4] [0 0]
}
