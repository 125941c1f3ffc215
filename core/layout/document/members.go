package document

import (
	"slices"
	"strconv"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/internal/form"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// document is a layout document with what only its text says.
type document struct {
	layout.Document
	list   bool              // batch.size is a list, not an integer
	shapes []batchDimensions // batch dimensions of every array's shape
}

// members is the table of a document.
func (d *document) members() []*form.Member {
	prefetch := func(to *int) form.Value { return form.Integer(to, "a number of batches", 0, layout.MaxPrefetch) }
	return []*form.Member{
		form.Key("mesh", Mesh(&d.Mesh), "").Required(),
		form.Key("arrays", form.ByName(&d.Arrays, "an object of arrays", nil, layout.MaxArrays, d.array), `The arrays of a batch by name. A name in a nested tree is joined by "/".`).Required(),
		form.Key("batch", form.Pointer(&d.Batch, d.batch), "The size of a batch, and what is added to it. Without it no array has a batch dimension."),
		form.Key("dataset", form.Pointer(&d.Dataset, dataset), "What is known about the dataset; a loader compares it with the one it gets."),
		form.Key("loading", form.Choice(&d.Loading, "a way of loading", layout.LoadProcess, layout.LoadGlobal, layout.LoadDevice, layout.LoadReshard), "What every process reads: "+
			"the rows of its own blocks, whole batches, one block per device, or rows that the program reshards on the devices.").Default(`"process"`),
		form.Key("prefetch", form.Pointer(&d.Prefetch, prefetch), "How many batches are read ahead.").Default("2"),
		form.Key("budget", budget(&d.Budget), "What a batch may cost; left out for no bound."),
	}
}

// Mesh is a mesh. The caller checks it with [layout.MeshSpec.Build] or
// [layout.Document.Validate].
func Mesh(m *layout.MeshSpec) form.Value {
	return form.Defined("mesh", `The devices, by axes in row-major order. Either "processes" share them equally, or "devices" names each of them.`,
		form.With(`"not":{"required":["processes","devices"]}`, form.Object("a mesh",
			form.Key("axes", Axes(&m.Axes), "[name, size] of every axis.").Required(),
			form.Key("processes", form.Integer(&m.Processes, "a number of processes", 1, layout.MaxProcesses), "How many processes share the devices, in equal blocks.").Default("1"),
			form.Key("devices", form.List(&m.Devices, "a list of devices", mesh.MaxDevices, device), "[process, id] of every device, in mesh order."),
		)))
}

func device(d *mesh.Device) form.Value {
	return form.Tuple("a device as [process, id]", form.Described(`"type":"integer","minimum":0,"maximum":2147483647`, integer(&d.Process)), integer(&d.ID))
}

func integer(to *int) form.Value {
	return form.Defined("size", "", form.Integer(to, "an integer", 0, layout.MaxInteger))
}

func (d *document) array(a *layout.ArraySpec) (*string, form.Value) {
	rules := `"if":{"properties":{"shape":{"$ref":"#/$defs/sizes"}}},` +
		`"then":{"description":"An array without a batch dimension, such as a weight, is not read.","properties":{"field":false,"columns":false}}`
	members := []*form.Member{
		form.Key("shape", shape{d, a}, `The global shape. "B" is the batch dimension; "B0", "B1" and so on are the dimensions of a batch with a list as its size. They come first.`).Required(),
		form.Key("dtype", DType(&a.Type), "").Required(),
		form.Key("spec", Spec(&a.Spec), "").Default("[]"),
		form.Key("field", form.Word(&a.Field, "the name of a field"), "The field of the dataset; the array's name if left out."),
		form.Key("columns", form.With(`"minItems":1`, form.List(&a.Columns, "a list of [start, stop) ranges", MaxBytes, columns)),
			"[start, stop) ranges of the row's first dimension, gathered in this order; the whole row if left out."),
	}
	written := form.Object("", slices.Concat(members[3:], members[:3])...)
	return &a.Name, array{form.With(rules, form.Object("an array", members...)), written}
}

// array is the value of an array. Its canonical text begins with the members field and
// columns.
type array struct {
	form.Value
	written form.Value
}

func (a array) Write(w *jsontext.Writer) { a.written.Write(w) }

func columns(to *[2]int) form.Value {
	return form.Tuple("a range as [start, stop]", integer(&to[0]), integer(&to[1]))
}

func (d *document) batch(b *layout.BatchSpec) form.Value {
	rules := `"if":{"anyOf":[{"required":["mask"]},{"required":["mask_spec"]}]},` +
		`"then":{"description":"Only padding has a mask.","required":["remainder"],"properties":{"remainder":{"const":"pad"}}}`
	extra := func(to *string) form.Value {
		return form.Choice(to, "the name of an extra", layout.ExtraKey, layout.ExtraRecord)
	}
	return form.With(rules, form.Object("a batch",
		form.Key("size", d.size(&b.Size), "Rows of the global batch, over all processes; a list for several batch dimensions.").Required(),
		form.Key("remainder", form.Choice(&b.Remainder, "a way to treat the remainder", layout.Drop, layout.Pad, layout.Refuse), "What happens to the records that do not fill the last step.").
			Default(`"drop"`),
		form.Key("mask", form.Described(`"type":"string","maxLength":1024,"pattern":"^[^/]+$"`, form.Word(&b.Mask, "the name of the mask")), "The array that is true for rows that are not padding.").
			Default(`"valid"`),
		form.Key("mask_spec", Spec(&b.MaskSpec), "The mask's spec; the entries that all batch arrays share if left out."),
		form.Key("extras", form.With(`"uniqueItems":true`, form.List(&b.Extras, "a list of extras", layout.MaxRank, extra)), "Arrays that the loader makes: a random key and the number of every record.").
			Default("[]"),
	))
}

func dataset(s *layout.DatasetSpec) form.Value {
	return form.Object("a dataset",
		form.Key("records", form.Integer(&s.Records, "a number of records", 0, layout.MaxRecords), "How many records the dataset has.").Required(),
		form.Key("fields", form.ByName(&s.Fields, "an object of fields", nil, 0, field), "Shape of one row and element type, by name."),
		form.Key("fingerprint", form.Described(`"type":"string","pattern":"^[0-9a-f]{32}$"`, form.Word(&s.Fingerprint, "a fingerprint")), "The fingerprint of the dataset, as `meshfeed verify` prints it."),
		form.Key("far_bytes", form.Integer(&s.FarBytes, "a number of bytes", 0, layout.MaxInteger), "The size of the files on other machines, as stored."),
		form.Key("commits", form.List(&s.Commits, "a list of names with commits", layout.MaxCommits, commit), "The names under which the files of a hub open again: hf://datasets/ORG/NAME@COMMIT."),
		form.Key("order", form.Word(&s.Order, "the name of an order"), `"sequential.1", "shuffle.1", "local.1:G:B", "blocks.1:W:B:H", or a short name: "sequential", "shuffle", `+
			`or one with parameters that follow from the run: "local", "blocks", "blocks:W" or "blocks:W:B".`).Default(`"sequential.1"`),
		form.Key("seed", form.Integer(&s.Seed, "a seed", -layout.MaxInteger, layout.MaxInteger), "The seed of the order.").Default("0"),
	)
}

func commit(to *string) form.Value { return form.Word(to, "a name with a commit") }

func field(f *layout.FieldSpec) (*string, form.Value) {
	return &f.Name, form.Object("a field",
		form.Key("shape", Sizes(&f.Shape), "The shape of one row.").Required(),
		form.Key("dtype", DType(&f.Type), "").Required(),
	)
}

func budget(b *layout.BudgetSpec) form.Value {
	return form.Object("a budget",
		form.Key("device_bytes", form.Integer(&b.DeviceBytes, "a number of bytes", 1, layout.MaxInteger), "Bytes per device, of one batch."),
		form.Key("host_bytes", form.Integer(&b.HostBytes, "a number of bytes", 1, layout.MaxInteger), "Bytes per process, of all batches read ahead."),
	)
}

// size is the size of a batch: a number, or a list of numbers, which is the embedded value.
type size struct {
	form.Value
	document *document
	to       *[]int
}

func (d *document) size(to *[]int) form.Value {
	rows := func(to *int) form.Value { return form.Integer(to, "a batch size", 1, layout.MaxRecords) }
	return size{form.OneOrList(to, "a batch size", layout.MaxRank, rows, rows), d, to}
}

func (v size) Read(r *jsontext.Reader) error {
	v.document.list = r.Kind() == jsontext.List
	return v.Value.Read(r)
}

func (v size) Write(w *jsontext.Writer) {
	if size := *v.to; len(size) == 1 {
		w.Int(int64(size[0]))
	} else {
		v.Value.Write(w)
	}
}

// shape is the shape of an array.
type shape struct {
	document *document
	*layout.ArraySpec
}

// batchDimensions are the names of the batch dimensions at the start of a shape,
// such as "B". They are checked after the whole document is read, because the batch
// may come after the arrays.
type batchDimensions struct {
	names []string
	path  string
}

func (a shape) Read(r *jsontext.Reader) error {
	batch := batchDimensions{path: r.Pointer()}
	a.RowShape = []int{}
	err := r.List("a shape", layout.MaxRank, func(int) error {
		if r.Kind() != jsontext.String {
			size, err := r.Int(`a size or "B"`, 0, layout.MaxInteger)
			a.RowShape = append(a.RowShape, size)
			return err
		}
		name, err := r.Text("a batch dimension")
		if err == nil && len(a.RowShape) > 0 {
			return r.Fail("the batch dimensions come first, but %s is after %d", wording.Quote(name), a.RowShape[len(a.RowShape)-1])
		}
		batch.names = append(batch.names, name)
		return err
	})
	a.Static = len(batch.names) == 0
	a.document.shapes = append(a.document.shapes, batch)
	return err
}

func (a shape) Write(w *jsontext.Writer) {
	w.Open('[')
	if batch := a.document.Batch; !a.Static && batch != nil {
		for _, name := range dimensionNames(len(batch.Size), len(batch.Size) != 1) {
			w.String(name)
		}
	}
	for _, n := range a.RowShape {
		w.Int(int64(n))
	}
	w.Close(']')
}

func (a shape) Given() bool { return true }

func (a shape) Describe(s *form.Schema) {
	s.Rule(`"type":"array","maxItems":32`)
	s.Object("items", func(s *form.Schema) {
		s.AnyOf(`"type":"string","pattern":"^B([0-9]|[12][0-9]|3[01])?$"`, Size(new(int)))
	})
}

// dimensionNames names the dimensions of a batch in a shape. The size of the batch is a
// list or a number.
func dimensionNames(dims int, list bool) []string {
	if !list {
		return []string{"B"}
	}
	var names []string
	for i := range dims {
		names = append(names, "B"+strconv.Itoa(i))
	}
	return names
}

// checkBatchDimensions compares the batch dimensions that a shape names with
// the batch. Validate reports a batch that is missing.
func (d *document) checkBatchDimensions(have batchDimensions) error {
	if d.Batch == nil || len(d.Batch.Size) == 0 || len(have.names) == 0 {
		return nil
	}
	want := dimensionNames(len(d.Batch.Size), d.list)
	for i, name := range have.names {
		if i >= len(want) || name != want[i] {
			return form.Layout.Invalid(jsontext.Element(have.path, i), "%s is not the batch dimension expected here", wording.Quote(name)).
				WithHint("begin the shape with %s", wording.QuotedList(want))
		}
	}
	if len(have.names) < len(want) {
		return form.Layout.Invalid(have.path, "the shape names %d of the %d batch dimensions", len(have.names), len(want)).
			WithHint("begin the shape with %s", wording.QuotedList(want))
	}
	return nil
}
