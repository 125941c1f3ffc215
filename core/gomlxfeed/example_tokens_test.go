package gomlxfeed_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/layers/attention"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"github.com/meshfeed/meshfeed/arrowio/records18"
	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/core/view/packing"
)

const rowLength, vocabulary, width = 64, 256, 32

// packedText packs the paragraphs of a file into rows. A token is a byte. Documents with lists of
// tokens in files are opened by arrowio.Open("docs-*.parquet").
func packedText(path string) source.Source {
	text := must(os.ReadFile(path))
	schema := arrow.NewSchema([]arrow.Field{{Name: "tokens", Type: arrow.BinaryTypes.String}}, nil)
	rows := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	rows.Field(0).(*array.StringBuilder).AppendValues(strings.Split(string(text), "\n\n"), nil)
	documents := must(records18.New(schema, []arrow.RecordBatch{rows.NewRecordBatch()}, records18.Options{}))
	options := view.Packing{Options: packing.Options{Length: rowLength}, Labels: "labels"}
	return must(view.Pack(context.Background(), documents, "tokens", options))
}

// nextToken is a transformer of one layer. A token attends to itself and to earlier tokens of its document.
func nextToken(s *model.Scope, inputs []*graph.Node) *graph.Node {
	tokens, segments, positions := inputs[0], inputs[1], inputs[2]
	same := graph.Equal(graph.InsertAxes(segments, -1), graph.InsertAxes(segments, 1)) // [batch, query, key]
	earlier := graph.GreaterOrEqual(graph.InsertAxes(positions, -1), graph.InsertAxes(positions, 1))
	x := graph.Add(layers.Embedding(s.In("token"), tokens, dtypes.Float32, vocabulary, width),
		layers.Embedding(s.In("position"), positions, dtypes.Float32, rowLength, width))
	heads := attention.SelfAttention(s.In("attention"), x, 2, width/2)
	x = graph.Add(x, heads.WithQueryKeyMatrixMask(graph.LogicalAnd(same, earlier)).Done())
	hidden := activation.Gelu(layers.Dense(s.In("up"), x, true, 2*width))
	x = graph.Add(x, layers.Dense(s.In("down"), hidden, true, width))
	return layers.Dense(s.In("output"), x, true, vocabulary)
}

// labelLoss leaves out negative labels: padding, and the last token of each document.
func labelLoss(labels, logits []*graph.Node) *graph.Node {
	counts := graph.GreaterOrEqual(labels[0], graph.ZerosLike(labels[0]))
	return loss.SparseCategoricalCrossEntropyLogits([]*graph.Node{graph.InsertAxes(labels[0], -1), counts}, logits)
}

// Documents are packed into rows, and a transformer learns the next byte in each document. The
// example ends at the first error; a program returns it.
func Example_packedTokens() {
	packed := packedText("doc.go")
	defer packed.Close()
	report, _ := view.PackingOf(packed)
	fmt.Printf("more than 95 %% of the rows are tokens: %v\n", 100*report.Tokens > 95*report.Rows*rowLength)

	plan := &layout.Document{
		Mesh:  layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 1}}},
		Batch: &layout.BatchSpec{Size: []int{8}},
	}
	for _, f := range packed.Schema().Fields {
		plan.Arrays = append(plan.Arrays, layout.ArraySpec{Name: f.Name, RowShape: f.Shape, Type: f.Type, Spec: sharding.P("data")})
	}
	devices := must(gomlxfeed.Open(context.Background(), "go"))
	defer devices.Close()
	l := must(loader.New(packed, loader.Options{Layout: must(layout.New(plan)), Shuffle: true, Epochs: -1}))
	defer l.Close()
	ds := must(gomlxfeed.NewDataset(l, devices, gomlxfeed.DatasetOptions{
		Inputs: []string{"tokens", "segment_ids", "positions"}, Labels: []string{"labels"},
	}))
	net := model.NewStore()
	net.SetParam(model.ParamInitialSeed, int64(1))
	adam := optimizer.Adam().LearningRate(0.01).Done()
	loop := train.NewLoop(train.NewTrainer(devices.Backend(), net, nextToken, labelLoss, adam, nil, nil))
	before := tensors.ToScalar[float32](must(loop.RunSteps(ds, 1))[0])
	after := tensors.ToScalar[float32](must(loop.RunSteps(ds, 40))[0])
	fmt.Printf("the loss fell below 60 %%: %v\n", after < 0.6*before)
	// Output:
	// more than 95 % of the rows are tokens: true
	// the loss fell below 60 %: true
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
