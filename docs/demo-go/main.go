// Command demo-go trains a GoMLX model on real images over the devices of a
// mesh. Each device gets its part of every batch from meshfeed.
//
//	make demo-go
//	go run ./docs/demo-go -data demo-out/data -backend virtual:8
//	go run -tags xla ./docs/demo-go -data demo-out/data -backend 'xla:/abs/plugin.so?devices=8'
//
// It shows, in order: Arrow files as fields and records, devices, which device
// holds which part of a batch, training by GoMLX's own loop, and the accuracy. The
// test set is padded and has a mask. If the accuracy is below 95 %, the program
// exits with 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
)

const (
	batchSize = 64
	enough    = 0.95 // accuracy below which the program fails
)

// arguments are the values of the command line.
type arguments struct {
	data, backend, digests string
	epochs                 int
}

func main() {
	gomlxfeed.RunProbe() // gomlxfeed runs this program again to try a plugin; that process ends here
	var a arguments
	flag.StringVar(&a.data, "data", "demo-out/data", "the `folder` with train-*.arrow and test.arrow")
	flag.StringVar(&a.backend, "backend", "virtual:8", "the devices: go, virtual:N or xla:/abs/plugin.so?devices=N")
	flag.IntVar(&a.epochs, "epochs", 20, "how often to see every image")
	flag.StringVar(&a.digests, "digests", "", "write the SHA-256 of every global batch to this `file`")
	flag.Parse()
	if a.epochs < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	if err := run(ctx, a, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo-go:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, a arguments, out io.Writer) (err error) {
	images, err := arrowio.Open(filepath.Join(a.data, "train-*.arrow"))
	if err != nil {
		return err
	}
	defer images.Close()
	tests, err := arrowio.Open(filepath.Join(a.data, "test.arrow"))
	if err != nil {
		return err
	}
	defer tests.Close()
	devices, err := gomlxfeed.Open(ctx, a.backend)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, devices.Close()) }()
	fmt.Fprintf(out, "%s: %d devices, such as %s\n", devices.Name(), devices.Num(), devices.Describe(0))
	fmt.Fprintf(out, "%d images in %d files, and %d for the test\n\n", images.Len(), len(images.Files()), tests.Len())

	net := newNetwork()
	if err := fit(ctx, net, images, devices, a, out); err != nil {
		return err
	}
	accuracy, err := evaluate(ctx, net, tests, devices)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "accuracy: %.1f %% of %d test images\n", 100*accuracy, tests.Len())
	if accuracy < enough {
		return fmt.Errorf("the accuracy is %.1f %%, but at least %.0f %% was expected", 100*accuracy, 100*enough)
	}
	return nil
}

// layoutOver splits batches over the axis "data" of a mesh of all devices.
func layoutOver(d *gomlxfeed.Devices, remainder string) (*layout.Layout, error) {
	return layout.New(&layout.Document{
		Mesh: layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: d.Num()}}},
		Arrays: []layout.ArraySpec{
			{Name: "image", RowShape: []int{8, 8}, Type: dtype.Float32, Spec: sharding.P("data")},
			{Name: "label", Type: dtype.Int32, Spec: sharding.P("data")},
		},
		Batch: &layout.BatchSpec{Size: []int{batchSize}, Remainder: remainder},
	})
}
