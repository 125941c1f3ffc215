package batch_test

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/dtype"
)

// The memory of a released batch is reused.
func ExampleHeap() {
	heap := batch.NewHeap(2)
	blocks := []batch.Block{{Type: dtype.Float32, Shape: []int{5}, Bytes: 20}}
	for range 3 {
		memory, err := heap.Alloc(blocks)
		if err != nil {
			fmt.Println(err)
			return
		}
		b := batch.New(blocks, memory, batch.Step{}, nil)
		copy(memory.Dst(0), "filled by a gatherer")
		b.Release()
	}
	fmt.Println(heap.Live())
	// Output: 0 0
}
