package arrowmeta_test

import (
	"fmt"
	"log"
	"os"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// Print the schema of a file, and the position of the rows of one column.
func ExampleRead() {
	r, err := os.Open("testdata/fixed.arrow")
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		log.Fatal(err)
	}
	f, err := arrowmeta.Read(r, info.Size())
	if err != nil {
		log.Fatal(err)
	}
	for i := range f.Schema.Fields {
		field := &f.Schema.Fields[i]
		fmt.Println(field.Name, field.TypeString())
	}
	elements := &f.Columns[0].Children[0].Children[0] // elements of image, a list of lists
	err = f.Scan(r, 0, len(f.Batches), func(i int, b *arrowmeta.RecordBatch) error {
		values := b.Buffers(elements)[1] // after the validity bitmap
		fmt.Printf("batch %d: %d rows at byte %d\n", i, b.Length, f.Batches[i].Body()+values.Offset)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// image fixed_size_list<fixed_size_list<float32>[3]>[4]
	// tensor fixed_size_list<float32>[12]
	// bytes fixed_size_binary[4]
	// holes fixed_size_list<int8>[2]
	// batch 0: 3 rows at byte 1128
	// batch 1: 2 rows at byte 1872
}
