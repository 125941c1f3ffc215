package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/picture"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/source"
)

// fit trains the network for a.epochs epochs of images.
func fit(ctx context.Context, net *model.Store, images source.Source, d *gomlxfeed.Devices, a arguments, out io.Writer) error {
	lay, err := layoutOver(d, layout.Drop)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, picture.Text(lay, picture.Options{}))

	ring, err := d.Ring(lay) // batches are gathered where the devices read them
	if err != nil {
		return err
	}
	defer ring.Close()
	l, err := loader.New(images, loader.Options{Layout: lay, Allocator: ring, Shuffle: true, Seed: 0, Epochs: -1})
	if err != nil {
		return err
	}
	defer l.Close()
	ds, err := datasetOf(l, d)
	if err != nil {
		return err
	}
	if a.digests != "" {
		file, err := os.Create(a.digests)
		if err != nil {
			return err
		}
		defer file.Close()
		ds = watched(ds, file)
	}
	steps := a.epochs * int(l.StepsPerEpoch())
	fmt.Fprintf(out, "training: %d steps of %d images, %d epochs\n", steps, batchSize, a.epochs)
	return loop(ctx, net, ds, l, d, steps, out)
}

// datasetOf returns a dataset for GoMLX's trainer, which has one type for one
// device and another for several.
func datasetOf(l *loader.Loader, d *gomlxfeed.Devices) (train.Dataset, error) {
	o := gomlxfeed.DatasetOptions{Name: "digits", Inputs: []string{"image"}, Labels: []string{"label"}}
	if d.Num() == 1 {
		return gomlxfeed.NewDataset(l, d, o)
	}
	return gomlxfeed.NewDistributedDataset(l, d, o)
}

// loop runs GoMLX's training loop, which splits every step over the devices.
func loop(ctx context.Context, net *model.Store, ds train.Dataset, l *loader.Loader, d *gomlxfeed.Devices, steps int, out io.Writer) error {
	adam := optimizer.Adam().LearningRate(0.003).Done()
	loop := train.NewLoop(train.NewTrainer(d.Backend(), net, logits, crossEntropy, adam, nil, nil))
	began, compiled := time.Now(), time.Time{}
	var trained int
	loop.OnStep("progress", 0, func(_ *train.Loop, metrics []*tensors.Tensor) error {
		trained++
		if trained == 1 {
			compiled = time.Now()
		}
		if trained == 1 || trained%(5*int(l.StepsPerEpoch())) == 0 {
			fmt.Fprintf(out, "  step %4d  loss %.4f\n", trained, tensors.ToScalar[float32](metrics[0]))
		}
		return context.Cause(ctx) // nil unless Ctrl-C was pressed
	})
	_, err := loop.RunSteps(ds, steps)
	if ctx.Err() != nil {
		return fmt.Errorf("stopped after step %d; the loader continues from %s", trained, l.State())
	}
	if err != nil {
		return err
	}
	took := time.Since(compiled).Seconds()
	fmt.Fprintf(out, "%.2f s to the first step, which compiles; then %.0f rows per second, %.1f %% of the time waiting for data\n",
		compiled.Sub(began).Seconds(), float64((steps-1)*batchSize)/took, 100*l.Stats().ConsumerWait.Seconds()/took)
	return nil
}
