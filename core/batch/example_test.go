package batch_test

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/dtype"
)

// Two blocks in one slab have an aligned slot each.
func ExampleSlots() {
	offsets, size := batch.Slots([]batch.Block{
		{Type: dtype.Float32, Shape: []int{5}, Bytes: 20},
		{Type: dtype.Bool, Shape: []int{3}, Bytes: 3},
	})
	fmt.Println(offsets, size)
	// Output: [0 64] 128
}

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
		copy(b.Bytes(0), "filled by a gatherer")
		b.Release()
	}
	live, _ := heap.Live()
	fmt.Println(live, heap.Idle())
	// Output: 0 1
}
