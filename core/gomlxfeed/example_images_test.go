package gomlxfeed_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/core/view/raster"
)

// pictures opens an archive of 000.jpg and 000.cls, and so on. Images get 16 by 16 pixels, with a random crop
// in every epoch. A label is a digit of text, which a function reads.
func pictures(path string) source.Source {
	files := must(arrowio.Open(path))
	images := must(view.DecodeImage(files, "jpg", raster.Options{Height: 16, Width: 16, RandomCrop: true, RandomFlip: true}))
	return must(view.Map(images, view.Mapping{
		Fields: []string{"cls"},
		Out:    []source.Field{{Name: "label", Type: dtype.Int32}},
		Key:    "digit.1",
		Func: func(_ context.Context, rows *view.Rows) error {
			out := rows.Fixed(0)
			for i, text := range rows.In[0] {
				binary.LittleEndian.PutUint32(out[4*i:], uint32(text.Row[0]-'0'))
			}
			return nil
		},
	}))
}

// kindOf is a network of one convolution. Casting and normalizing is part of the step.
func kindOf(s *model.Scope, inputs []*graph.Node) *graph.Node {
	x := graph.AddScalar(graph.DivScalar(graph.ConvertDType(inputs[0], dtypes.Float32), 127.5), -1)
	x = activation.Relu(layers.Convolution(s.In("conv"), x).Channels(8).KernelSize(3).PadSame().Done())
	return layers.Dense(s.In("output"), graph.ReduceMean(x, 1, 2), true, 2)
}

func kindLoss(labels, logits []*graph.Node) *graph.Node {
	return loss.SparseCategoricalCrossEntropyLogits([]*graph.Node{graph.InsertAxes(labels[0], -1)}, logits)
}

// JPEG files in an archive are decoded and cropped ahead of the step, and a network learns from them. The example
// ends at the first error; a program returns it.
func Example_images() {
	path := writePictures()
	defer os.RemoveAll(filepath.Dir(path))
	ds := pictures(path)
	defer ds.Close()
	devices := must(gomlxfeed.Open(context.Background(), "go"))
	defer devices.Close()
	lay := must(layout.New(&layout.Document{
		Mesh: layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 1}}},
		Arrays: []layout.ArraySpec{
			{Name: "jpg", RowShape: []int{16, 16, 3}, Type: dtype.Uint8, Spec: sharding.P("data")},
			{Name: "label", Type: dtype.Int32, Spec: sharding.P("data")},
		},
		Batch: &layout.BatchSpec{Size: []int{16}},
	}))
	l := must(loader.New(ds, loader.Options{Layout: lay, Shuffle: true, Epochs: -1}))
	defer l.Close()
	batches := must(gomlxfeed.NewDataset(l, devices, gomlxfeed.DatasetOptions{Inputs: []string{"jpg"}, Labels: []string{"label"}}))
	net := model.NewStore()
	net.SetParam(model.ParamInitialSeed, int64(1))
	adam := optimizer.Adam().LearningRate(0.02).Done()
	loop := train.NewLoop(train.NewTrainer(devices.Backend(), net, kindOf, kindLoss, adam, nil, nil))
	before := tensors.ToScalar[float32](must(loop.RunSteps(batches, 1))[0])
	after := tensors.ToScalar[float32](must(loop.RunSteps(batches, 60))[0])
	fmt.Printf("the loss fell below a third: %v\n", after < before/3)
	// Output:
	// the loss fell below a third: true
}

// writePictures writes images of stripes, which lie (0) or stand (1).
func writePictures() string {
	var archive bytes.Buffer
	w, random := tar.NewWriter(&archive), rand.New(rand.NewPCG(1, 2))
	add := func(name string, data []byte) {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o600}); err != nil {
			panic(err)
		}
		must(w.Write(data))
	}
	for i := range 64 {
		img, width := image.NewGray(image.Rect(0, 0, 60, 40+i%7)), 4+random.IntN(4)
		for y := range img.Rect.Dy() {
			for x := range img.Rect.Dx() {
				img.SetGray(x, y, color.Gray{Y: uint8(40 + 180*([]int{y, x}[i%2]/width%2))})
			}
		}
		var file bytes.Buffer
		if err := jpeg.Encode(&file, img, nil); err != nil {
			panic(err)
		}
		add(fmt.Sprintf("%03d.jpg", i), file.Bytes())
		add(fmt.Sprintf("%03d.cls", i), []byte{'0' + byte(i%2)})
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	path := filepath.Join(must(os.MkdirTemp("", "pictures")), "train.tar")
	if err := os.WriteFile(path, archive.Bytes(), 0o600); err != nil {
		panic(err)
	}
	return path
}
