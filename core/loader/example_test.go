package loader_test

import (
	"context"
	"fmt"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// exampleLayout shards the record numbers of batches over two devices.
func exampleLayout(size int, remainder string) *layout.Layout {
	lay, err := layout.New(&layout.Document{
		Mesh:   layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 2}}},
		Arrays: []layout.ArraySpec{{Name: "x", Type: dtype.Float32, Spec: sharding.P("data")}},
		Batch:  &layout.BatchSpec{Size: []int{size}, Remainder: remainder, Extras: []string{layout.ExtraRecord}},
	})
	if err != nil {
		panic(err)
	}
	return lay
}

func exampleSource() source.Source {
	return synthetic.New(10, source.Field{Name: "x", Type: dtype.Float32})
}

// records returns the low words of the extra "record", block by block.
func records(b *batch.Batch) (list []int32) {
	for i, block := range b.Blocks() {
		if block.Name != layout.ExtraRecord {
			continue
		}
		words, err := loader.BlockValues[uint32](b, i)
		if err != nil {
			panic(err)
		}
		for k := 0; k < len(words); k += 2 {
			list = append(list, int32(words[k]))
		}
	}
	return list
}

func Example() {
	ctx := context.Background()
	l, err := loader.New(exampleSource(), loader.Options{Layout: exampleLayout(4, layout.Pad), Epochs: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	for b, err := range l.All(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("step", b.Step().Index, "records", records(b))
		b.Release()
	}
	// Output:
	// step 0 records [0 1 2 3]
	// step 1 records [4 5 6 7]
	// step 2 records [8 9 -1 -1]
}

// A run stops after one batch of four. It continues with a batch of eight: the rest
// of the epoch, and padding.
func ExampleLoader_State() {
	l, err := loader.New(exampleSource(), loader.Options{Layout: exampleLayout(4, layout.Drop), Shuffle: true, Seed: 7})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	b, err := l.Next(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(records(b))
	b.Release()
	saved := l.State().JSON()
	fmt.Printf("%s\n", saved)

	l, err = loader.New(exampleSource(), loader.Options{Layout: exampleLayout(8, layout.Pad), Shuffle: true, Seed: 7, State: saved})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	for b, err := range l.All(context.Background()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(records(b))
		b.Release()
	}
	// Output:
	// [6 9 1 0]
	// {"meshfeed":1,"order":"shuffle.1","dataset":"a00f249698038d4662913566e65f5265","records":10,"seed":7,"epoch":0,"position":4}
	// [4 7 3 2 8 5 -1 -1]
}

func ExampleLoader_Seek() {
	l, err := loader.New(exampleSource(), loader.Options{Layout: exampleLayout(4, layout.Drop)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	fmt.Println(l.Seek(batch.Cursor{Epoch: 2, Position: 3}), l.Epoch(), l.Len())
	fmt.Println(l.Seek(batch.Cursor{Epoch: 2, Position: 8}), l.Epoch(), l.Len()) // no step is left in epoch 2
	fmt.Println(l.Seek(batch.Cursor{Epoch: 2, Position: 11}))
	// Output:
	// <nil> 2 1
	// <nil> 3 2
	// loader: position 11 is outside the epoch of 10 records
}

// A step is left out, and the certificate names it.
func ExampleLoader_Skip() {
	l, err := loader.New(exampleSource(), loader.Options{Layout: exampleLayout(2, layout.Drop), Epochs: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	for b, err := range l.All(context.Background()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(records(b))
		b.Release()
		if l.Step() == 1 { // after a spike of the loss
			fmt.Println(l.Skip(2))
		}
	}
	c, err := l.Certificate()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Runs()[0])
	fmt.Println(c.Covers(context.Background(), certificate.Cursor{}, certificate.Cursor{Epoch: 1}))
	// Output:
	// [0 1]
	// <nil>
	// [6 7]
	// [8 9]
	// process 0 of 1: delivered [0, 2) of epoch 0, [6, 10) of epoch 0; skipped [2, 6) of epoch 0
	// <nil>
}

func ExampleLoader_Records() {
	l, err := loader.New(exampleSource(), loader.Options{Layout: exampleLayout(4, layout.Pad)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	fmt.Println(l.Records(batch.Cursor{Position: 8}))
	// Output: [8 9 -1 -1] <nil>
}

func ExampleParseState() {
	s, err := loader.ParseState([]byte(`{"meshfeed":1,"order":"shuffle.1","dataset":"a00f249698038d4662913566e65f5265","records":10,"seed":7,"epoch":3,"position":4}`))
	fmt.Println(s.Epoch, s.Position, err)
	// Output: 3 4 <nil>
}
