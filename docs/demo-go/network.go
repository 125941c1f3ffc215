package main

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"
)

const classes = 10

// newNetwork returns a store for the variables of logits. Their initial values
// are the same in every run.
func newNetwork() *model.Store {
	net := model.NewStore()
	net.SetParam(model.ParamInitialSeed, int64(1))
	return net
}

// logits is the model: two dense layers over the pixels of images [batch, 8, 8].
func logits(s *model.Scope, images *graph.Node) *graph.Node {
	pixels := graph.Reshape(images, images.Shape().Dim(0), -1)
	hidden := activation.Relu(layers.Dense(s.In("hidden"), pixels, true, 128))
	return layers.Dense(s.In("output"), hidden, true, classes)
}

// crossEntropy takes labels of shape [batch]. GoMLX's loss needs [batch, 1].
func crossEntropy(labels, predictions []*graph.Node) *graph.Node {
	return loss.SparseCategoricalCrossEntropyLogits([]*graph.Node{graph.InsertAxes(labels[0], -1)}, predictions)
}

// countCorrect counts the rows with a recognized digit, and all rows. It counts only rows
// where valid is true: the others are padding.
func countCorrect(s *model.Scope, images, labels, valid *graph.Node) (hits, real *graph.Node) {
	s.Store().SetTraining(images.Graph(), false)
	guess := graph.ArgMax(logits(s, images), -1, labels.DType())
	right := graph.LogicalAnd(graph.Equal(guess, labels), valid)
	return count(right), count(valid)
}

func count(b *graph.Node) *graph.Node {
	return graph.ReduceAllSum(graph.ConvertDType(b, dtypes.Int32))
}
