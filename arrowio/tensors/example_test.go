package tensors_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"github.com/meshfeed/meshfeed/arrowio/tensors"
	"github.com/meshfeed/meshfeed/core/source"
)

// The second column of a matrix.
func Example() {
	header := `{"w":{"dtype":"I32","shape":[2,3],"data_offsets":[0,24]}}`
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	for i := range uint32(6) {
		file = binary.LittleEndian.AppendUint32(file, i)
	}
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.safetensors")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		panic(err)
	}

	ctx := context.Background()
	src, err := tensors.Open(ctx, path)
	if err != nil {
		panic(err)
	}
	defer src.Close()
	for _, field := range src.Schema().Fields {
		fmt.Println(field.Name, field.Type, field.Shape)
	}

	g, err := src.Gatherer([]source.Part{{Field: 0, Boxes: [][][2]int{{{0, 2}, {1, 2}}}}})
	if err != nil {
		panic(err)
	}
	column := make([]byte, 2*4)
	if err := g.Gather(ctx, source.Draw{}, []int64{0}, []source.Job{{Rows: [2]int{0, 1}, Dst: column}}); err != nil {
		panic(err)
	}
	fmt.Println(binary.LittleEndian.Uint32(column), binary.LittleEndian.Uint32(column[4:]))
	// Output:
	// w int32 [2 3]
	// 1 4
}
