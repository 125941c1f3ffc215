package loader_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
)

// Every error alone, with its whole message.
func TestRefused(t *testing.T) {
	type change struct {
		doc     func(*layout.Document)
		options func(*loader.Options)
		code    status.Code
		want    string
	}
	const invalid, unfit, none = status.InvalidArgument, status.Incompatible, status.NotFound
	for _, c := range []change{
		{options: func(o *loader.Options) { o.Layout = nil }, code: invalid, want: "loader: there is no layout; set Options.Layout, or Options.BatchSize for batches of all fields"},
		{options: func(o *loader.Options) { o.Process = -1 }, code: status.OutOfRange, want: "loader: Options.Process is -1, but the layout has processes 0 to 1; number processes from 0; if the run has processes outside the mesh, say in Options.Processes how many it has"},
		{options: func(o *loader.Options) { o.BatchSize = 8 }, code: invalid, want: "loader: Options.BatchSize is 8, but Options.Layout says how large its batches are; set one of the two"},
		{options: func(o *loader.Options) { o.Layout, o.BatchSize = nil, -8 }, code: invalid, want: "loader: Options.BatchSize is -8, but must be positive"},
		{options: func(o *loader.Options) { o.Processes = -1 }, code: invalid, want: "loader: Options.Processes is -1, but must be positive, or 0 for the layout's number"},
		{options: func(o *loader.Options) { o.Epochs = -2 }, code: invalid, want: "loader: Options.Epochs is -2, but must be positive, 0 for one epoch per loop, or -1 for no end"},
		{options: func(o *loader.Options) { o.Prefetch = -2 }, code: invalid, want: "loader: Options.Prefetch is -2, but must be from -1 to 65536"},
		{options: func(o *loader.Options) { o.MaxHostBytes = -1 }, code: invalid, want: "loader: Options.MaxHostBytes is -1, but must be positive, or 0 for no bound"},
		{options: func(o *loader.Options) { o.Workers = 65 }, code: invalid, want: "loader: Options.Workers is 65, but must be from 1 to 64, or 0 to choose"},
		{options: func(o *loader.Options) { o.Order = "best.1" }, code: invalid, want: `sampler: there is no order "best.1"; use one of sequential.1, shuffle.1, local.1:G:B with G parts for batches of B, or blocks.1:W:B:H with windows of W blocks of B records; loaders and layouts also take sequential, shuffle, local, blocks, blocks:W, or blocks:W:B with windows of W blocks of B records`},
		{options: func(o *loader.Options) { o.Seed = 1<<53 + 1 }, code: invalid, want: "sampler: seed 9007199254740993 is not within ±2^53; use a seed that JSON carries exactly"},
		{options: func(o *loader.Options) { o.Fill = map[string]any{"lable": 0} }, code: none, want: `loader: there is a fill value for field "lable", but the dataset does not have it`},
		{options: func(o *loader.Options) { o.State = []byte("{}") }, code: invalid, want: `loader: this is not a saved state: a state needs the key "meshfeed"; pass on a saved state, unchanged`},
		{
			doc:  func(d *layout.Document) { d.Arrays[0].Field = "picture" },
			code: none, want: `loader: array "image" takes field "picture", which the dataset does not have; the fields are "image", "label"`,
		},
		{
			doc:  func(d *layout.Document) { d.Arrays[1].Type = dtype.Float32 },
			code: invalid, want: `loader: array "label" is float32, but field "label" is int64; write "int64", or "int32" to narrow it`,
		},
		{
			doc:  func(d *layout.Document) { d.Arrays[0].Type = dtype.Float64 },
			code: invalid, want: `loader: array "image" is float64, but field "image" is float32; write "float32"`,
		},
		{
			doc:  func(d *layout.Document) { d.Arrays[0].RowShape = []int{4, 2} },
			code: invalid, want: `loader: rows of array "image" have shape (4, 2), but rows of field "image" have (2, 4); write (2, 4) after the batch dimensions`,
		},
		{
			doc: func(d *layout.Document) {
				d.Arrays[0].Columns, d.Arrays[0].RowShape = [][2]int{{0, 1}}, []int{1, 2}
			},
			code: invalid, want: `loader: rows of array "image" have shape (1, 2), but rows of field "image" have (2, 4); write (1, 4) after the batch dimensions`,
		},
		{
			doc:  func(d *layout.Document) { d.Arrays[0].Columns = [][2]int{{1, 3}} },
			code: status.OutOfRange, want: `loader: array "image" takes columns [1, 3), but the rows of field "image" have 2; columns are counted along the row's first dimension, from 0`,
		},
		{
			doc:  func(d *layout.Document) { d.Arrays[1].Columns, d.Arrays[1].RowShape = [][2]int{{0, 1}}, []int{1} },
			code: invalid, want: `loader: rows of array "label" have shape (1,), but rows of field "label" have (); leave columns out: the rows of the field are scalars`,
		},
		{
			doc: func(d *layout.Document) {
				d.Arrays = append(d.Arrays, layout.ArraySpec{Name: "w", Static: true, RowShape: []int{4}, Type: dtype.Float32})
			},
			code: invalid, want: `loader: array "w" has no batch dimension, so it cannot be loaded; begin its shape with the batch dimension, or plan it in a layout of its own`,
		},
		{
			doc:  func(d *layout.Document) { d.Dataset = &layout.DatasetSpec{Records: 96} },
			code: unfit, want: "loader: the layout is for a dataset of 96 records, but this one has 80; open the dataset that was planned for, or change /dataset/records",
		},
		{
			doc: func(d *layout.Document) {
				d.Dataset = &layout.DatasetSpec{Records: 80, Fingerprint: "00000000000000000000000000000000"}
			},
			code: unfit, want: "loader: the layout is for the dataset with fingerprint 00000000000000000000000000000000, but this one has " + fingerprint(t) + "; open the dataset that was planned for, or change /dataset/fingerprint",
		},
		{
			doc:  func(d *layout.Document) { d.Batch.Size = []int{96} },
			code: invalid, want: `loader: an epoch of 80 records has no step of 96; use a smaller batch, or remainder "pad"`,
		},
		{
			doc:  func(d *layout.Document) { d.Batch.Size, d.Batch.Remainder = []int{12}, layout.Refuse },
			code: invalid, want: `loader: 80 records do not divide into steps of 12 (8 are left), but the remainder is "error"; choose a batch size that divides, or remainder "drop" or "pad"`,
		},
		{
			doc:  func(d *layout.Document) { d.Batch.Size, d.Batch.Remainder = []int{1 << 38}, layout.Pad },
			code: status.ResourceExhausted, want: "loader: one batch takes 6184752906496 bytes in process 0, but may take 68719476736; use a smaller batch, or more processes",
		},
		{
			doc: func(d *layout.Document) {
				d.Batch.Size, d.Batch.Remainder = []int{1 << 16, 2}, layout.Pad
				d.Arrays = nil
				for i := range 5 {
					d.Arrays = append(d.Arrays, layout.ArraySpec{Name: fmt.Sprint(i), Field: "label", Type: dtype.Int64, Spec: sharding.P(nil, "data")})
				}
			},
			code: status.ResourceExhausted, want: "loader: the blocks of process 0 take their rows from 393216 separate runs, but may take them from 262144; partition the first batch dimension rather than a later one, or make the first one smaller",
		},
	} {
		d := document(8)
		if c.doc != nil {
			c.doc(d)
		}
		o := loader.Options{Layout: newLayout(t, d)}
		if c.options != nil {
			c.options(&o)
		}
		_, err := loader.New(digits(80), o)
		wantError(t, err, c.code, c.want)
	}
}

func fingerprint(t *testing.T) string {
	f, err := digits(80).Fingerprint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f.String()
}

// One error names everything that is wrong.
func TestEveryErrorIsNamed(t *testing.T) {
	d := document(8)
	d.Arrays[0].Field, d.Arrays[1].Type = "picture", dtype.Bool
	_, err := loader.New(digits(80), loader.Options{Layout: newLayout(t, d), Epochs: -7})
	wantError(t, err, status.InvalidArgument, `loader: Options.Epochs is -7, but must be positive, 0 for one epoch per loop, or -1 for no end
loader: array "image" takes field "picture", which the dataset does not have; the fields are "image", "label"
loader: array "label" is bool, but field "label" is int64; write "int64", or "int32" to narrow it`)
}

func TestLayoutWithProblems(t *testing.T) {
	d := document(7)
	lay := newLayout(t, d)
	_, err := loader.New(digits(80), loader.Options{Layout: lay})
	if err == nil || status.CodeOf(err) != status.InvalidArgument || lay.Err() == nil {
		t.Fatalf("got %v", err)
	}
}

func TestEmptyDataset(t *testing.T) {
	d := document(8)
	d.Batch.Remainder = layout.Pad
	_, err := loader.New(digits(0), loader.Options{Layout: newLayout(t, d)})
	wantError(t, err, status.InvalidArgument, "loader: an epoch of 0 records has no step of 8; the dataset is empty")
}

// skipping has a column that cannot be an array, and a ragged field.
type skipping struct{ source.Source }

func (s skipping) Schema() source.Schema {
	schema := s.Source.Schema()
	schema.Fields = append(slices.Clone(schema.Fields), source.Field{Name: "tokens", Type: dtype.Int32, Ragged: 2})
	schema.Skipped = []source.Skipped{{Name: "caption", Type: "utf8", Reason: "its rows have different lengths"}}
	return schema
}

func TestSkippedColumn(t *testing.T) {
	d := document(8)
	d.Arrays[0].Field = "caption"
	_, err := loader.New(skipping{digits(80)}, loader.Options{Layout: newLayout(t, d)})
	wantError(t, err, status.Unsupported, `loader: array "image" takes column "caption" of type utf8, which cannot be an array: its rows have different lengths`)
	d.Arrays[0].Field = "tokens"
	_, err = loader.New(skipping{digits(80)}, loader.Options{Layout: newLayout(t, d)})
	wantError(t, err, status.Unsupported, `loader: array "image" takes column "tokens" of type list<list<int32>>, which cannot be an array: its rows are nested lists of different lengths; store them with one length`)
}

// The wait for a fingerprint can be canceled.
func TestNewContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	part, err := view.Slice(slow{digits(80)}, 0, 40)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := loader.NewContext(ctx, part, loader.Options{Layout: newLayout(t, document(8))}); status.CodeOf(err) != status.Cancelled {
		t.Errorf("got %v", err)
	}
}

type slow struct{ source.Source }

func (slow) Fingerprint(ctx context.Context) (source.Fingerprint, error) {
	<-ctx.Done()
	return source.Fingerprint{}, ctx.Err()
}

// Options override the document.
func TestOrderAndSeed(t *testing.T) {
	for _, c := range []struct {
		dataset *layout.DatasetSpec
		o       loader.Options
		order   string
		seed    int64
	}{
		{nil, loader.Options{}, "sequential.1", 0},
		{nil, loader.Options{Shuffle: true, Seed: 4}, "shuffle.1", 4},
		{&layout.DatasetSpec{Records: 80, Order: "shuffle.1", Seed: 9}, loader.Options{}, "shuffle.1", 9},
		{&layout.DatasetSpec{Records: 80, Order: "shuffle.1", Seed: 9}, loader.Options{Seed: 2}, "shuffle.1", 2},
		{&layout.DatasetSpec{Records: 80, Order: "shuffle.1", Seed: 9}, loader.Options{Shuffle: true}, "shuffle.1", 0},
		{&layout.DatasetSpec{Records: 80, Order: "shuffle.1", Seed: 9}, loader.Options{Order: "sequential.1"}, "sequential.1", 0},
	} {
		d := document(8)
		d.Dataset = c.dataset
		c.o.Layout = newLayout(t, d)
		if s := newLoader(t, digits(80), c.o).State(); s.Order != c.order || s.Seed != c.seed {
			t.Errorf("%+v: got %s, seed %d", c.o, s.Order, s.Seed)
		}
	}
	_, err := loader.New(digits(80), loader.Options{Layout: newLayout(t, document(8)), Order: "sequential", Shuffle: true})
	wantError(t, err, status.InvalidArgument, `loader: Options.Shuffle is set, but Options.Order is "sequential"; leave one of them out`)
}
