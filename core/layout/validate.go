package layout

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/form"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Validate checks the conditions that New requires: values are within their bounds,
// and names are distinct. It does not check for other mistakes, such as a size that
// does not divide. [Layout.Problems] reports them. An error is InvalidArgument, with
// a JSON Pointer in its attribute "path".
func (d *Document) Validate() error {
	if !slices.Contains(loadings, d.loading()) {
		return form.Layout.Invalid("/loading", "%s is not a way of loading", wording.Quote(d.Loading)).WithHint("leave it out, or write one of %s", wording.QuotedList(loadings))
	}
	if p := d.prefetch(); p < 0 || p > MaxPrefetch {
		return form.Layout.Invalid("/prefetch", "prefetch is %d, but must be from 0 to %d", p, MaxPrefetch)
	}
	for _, check := range []func() error{d.Mesh.validate, d.Batch.validate, d.Dataset.validate, d.Budget.validate, d.validateArrays} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (s MeshSpec) validate() error {
	size, err := mesh.CheckAxes(s.Axes)
	if err != nil {
		return inMesh(err)
	}
	for i, a := range s.Axes {
		if err := checkName(jsontext.Element("/mesh/axes", i)+"/0", "an axis", a.Name); err != nil {
			return err
		}
	}
	p := s.processes()
	switch {
	case s.Devices != nil:
		return s.validateDevices(size)
	case p > MaxProcesses:
		return tooMany(p)
	case s.Processes < 0 || p > size:
		return form.Layout.Invalid("/mesh/processes", "there are %d processes, but must be from 1 to %d, the number of devices", s.Processes, size)
	case size%p != 0:
		return form.Layout.Invalid("/mesh/processes", "%d devices cannot be shared equally by %d processes", size, p).
			WithHint("list the devices as [process, id] pairs in mesh order")
	}
	return nil
}

// inMesh converts an error of package mesh to an error of a document.
func inMesh(err error) error {
	e, _ := errors.AsType[*status.Error](err)
	path, _ := e.Attr("path").(string)
	return form.Layout.Invalid("/mesh"+path, "%s", e.Msg).WithHint("%s", e.Hint)
}

func (s MeshSpec) validateDevices(size int) error {
	if s.Processes != 0 {
		return form.Layout.Invalid("/mesh/processes", "the processes follow from the devices").WithHint("leave out processes or devices")
	}
	if err := mesh.CheckDevices(s.Devices, size); err != nil {
		return inMesh(err)
	}
	if n := distinct(s.Devices); n > MaxProcesses {
		return tooMany(n)
	}
	return nil
}

func tooMany(processes int) error {
	return form.Layout.Invalid("/mesh/processes", "there are %d processes, but a mesh may have %d", processes, MaxProcesses).
		WithHint("give each process more devices")
}

// distinct counts the processes of the devices. If the devices are too few to
// exceed MaxProcesses, it returns 1.
func distinct(devices []mesh.Device) int {
	if len(devices) <= MaxProcesses {
		return 1
	}
	numbers := make([]int, len(devices))
	for i, d := range devices {
		numbers[i] = d.Process
	}
	slices.Sort(numbers)
	return len(slices.Compact(numbers))
}

func (b *BatchSpec) validate() error {
	if b == nil {
		return nil
	}
	if len(b.Size) < 1 || len(b.Size) > MaxRank {
		return form.Layout.Invalid("/batch/size", "the batch has %d dimensions, but must have from 1 to %d", len(b.Size), MaxRank)
	}
	rows := int64(1)
	for i, n := range b.Size {
		path := "/batch/size"
		if len(b.Size) > 1 {
			path = jsontext.Element(path, i)
		}
		if n < 1 {
			return form.Layout.Invalid(path, "the batch size is %d, but must be at least 1", n)
		}
		if rows = plus(0, rows, int64(n)); rows > MaxRecords {
			return form.Layout.Invalid(path, "the batch is larger than 2^40 rows")
		}
	}
	if !slices.Contains([]string{"", Drop, Pad, Refuse}, b.Remainder) {
		return form.Layout.Invalid("/batch/remainder", "%s is not a way to treat the remainder", wording.Quote(b.Remainder)).WithHint(`write "drop", "pad" or "error"`)
	}
	return b.validateMade()
}

// validateMade checks the arrays that the loader computes: mask and extras.
func (b *BatchSpec) validateMade() error {
	if b.Remainder != Pad && b.Mask != "" {
		return form.Layout.Invalid("/batch/mask", "there is a mask only where the remainder is padded").WithHint(`leave it out, or write "remainder": "pad"`)
	}
	if b.Remainder != Pad && b.MaskSpec != nil {
		return form.Layout.Invalid("/batch/mask_spec", "there is a mask only where the remainder is padded").WithHint(`leave it out, or write "remainder": "pad"`)
	}
	if err := checkName("/batch/mask", "a mask", b.mask()); err != nil {
		return err
	}
	if strings.Contains(b.mask(), "/") {
		return form.Layout.Invalid("/batch/mask", "the mask is named %s, but it is at the top of the tree", wording.Quote(b.mask())).WithHint(`choose a name without "/"`)
	}
	for i, name := range b.Extras {
		if name != ExtraKey && name != ExtraRecord {
			return form.Layout.Invalid(jsontext.Element("/batch/extras", i), "%s is not an extra", wording.Quote(name)).WithHint(`the extras are "key" and "record"`)
		}
		if slices.Contains(b.Extras[:i], name) {
			return form.Layout.Invalid(jsontext.Element("/batch/extras", i), "extra %s occurs twice", wording.Quote(name)).WithHint("name it once")
		}
	}
	return checkSpecSize("/batch/mask_spec", b.MaskSpec)
}

func (s *DatasetSpec) validate() error {
	if s == nil {
		return nil
	}
	if s.Records < 0 || s.Records > MaxRecords {
		return form.Layout.Invalid("/dataset/records", "the dataset has %d records, but may have from 0 to 2^40", s.Records)
	}
	if s.Fingerprint != "" && (len(s.Fingerprint) != 32 || strings.Trim(s.Fingerprint, "0123456789abcdef") != "") {
		return form.Layout.Invalid("/dataset/fingerprint", "%s is not a fingerprint", wording.Quote(s.Fingerprint)).WithHint("a fingerprint is 32 hexadecimal digits in lower case")
	}
	if s.Seed < -MaxInteger || s.Seed > MaxInteger {
		return form.Layout.Invalid("/dataset/seed", "seed %d is outside ±2^53", s.Seed)
	}
	if s.Order != "" {
		if err := checkName("/dataset/order", "an order", s.Order); err != nil {
			return err
		}
	}
	seen := make(map[string]bool, len(s.Fields))
	for _, f := range s.Fields {
		path := "/dataset/fields/" + jsontext.Escape(f.Name)
		if err := checkName(path, "a field", f.Name); err != nil {
			return err
		}
		if seen[f.Name] {
			return form.Layout.Invalid(path, "field %s occurs twice", wording.Quote(f.Name)).WithHint("name every field once")
		}
		seen[f.Name] = true
		if err := checkShape(path, f.Shape, f.Type, 0); err != nil {
			return err
		}
	}
	return nil
}

func (s BudgetSpec) validate() error {
	for _, b := range []struct {
		key   string
		bytes int64
	}{{"device_bytes", s.DeviceBytes}, {"host_bytes", s.HostBytes}} {
		if b.bytes < 0 || b.bytes > MaxInteger {
			return form.Layout.Invalid("/budget/"+b.key, "the budget is %d bytes, but must be from 1 to 2^53", b.bytes).WithHint("leave it out for no bound")
		}
	}
	return nil
}

func (d *Document) validateArrays() error {
	if len(d.Arrays) > MaxArrays {
		return form.Layout.Invalid("/arrays", "there are %d arrays, but may be %d", len(d.Arrays), MaxArrays)
	}
	seen := make(map[string]bool, len(d.Arrays))
	for i := range d.Arrays {
		a := &d.Arrays[i]
		path := arrayPath(a.Name)
		if err := checkName(path, "an array", a.Name); err != nil {
			return err
		}
		if seen[a.Name] {
			return form.Layout.Invalid(path, "array %s occurs twice", wording.Quote(a.Name)).WithHint("name every array once")
		}
		seen[a.Name] = true
		if err := d.validateArray(path, a); err != nil {
			return err
		}
	}
	return nil
}

func (d *Document) validateArray(path string, a *ArraySpec) error {
	batchDims := 0
	switch {
	case a.Static && (a.Field != "" || a.Columns != nil):
		return form.Layout.Invalid(path, "array %s has no batch dimension, so it is not read and takes neither field nor columns", wording.Quote(a.Name)).
			WithHint("begin its shape with the batch dimension, or leave them out")
	case !a.Static && d.Batch == nil:
		return form.Layout.Invalid(path+"/shape", "array %s has a batch dimension, but there is no batch", wording.Quote(a.Name)).WithHint(`add "batch": {"size": …}`)
	case !a.Static:
		batchDims = len(d.Batch.Size)
	}
	if a.Field != "" {
		if err := checkName(path+"/field", "the field of an array", a.Field); err != nil {
			return err
		}
	}
	if err := checkColumns(path+"/columns", a.Columns); err != nil {
		return err
	}
	if err := checkShape(path, a.RowShape, a.Type, batchDims); err != nil {
		return err
	}
	return checkSpecSize(path+"/spec", a.Spec)
}

func checkColumns(path string, columns [][2]int) error {
	if columns != nil && len(columns) == 0 {
		return form.Layout.Invalid(path, "columns names no range").WithHint("leave it out for the whole row")
	}
	for i, c := range columns {
		if c[0] < 0 || c[1] <= c[0] || c[1] > MaxInteger {
			return form.Layout.Invalid(jsontext.Element(path, i), "columns [%d, %d) is not a range", c[0], c[1]).WithHint("give [start, stop] with 0 <= start < stop")
		}
	}
	return nil
}

// checkShape checks the dimensions after the batch dimensions.
func checkShape(path string, shape []int, t dtype.Type, batchDims int) error {
	if rank := len(shape) + batchDims; rank > MaxRank {
		return form.Layout.Invalid(path+"/shape", "the shape has rank %d, but may have %d", rank, MaxRank)
	}
	for d, n := range shape {
		if n < 0 || n > MaxInteger {
			return form.Layout.Invalid(jsontext.Element(path+"/shape", d+batchDims), "the dimension is %d, but must be from 0 to 2^53", n)
		}
	}
	if !t.Valid() {
		return form.Layout.Invalid(path+"/dtype", "there is no element type")
	}
	return nil
}

func checkSpecSize(path string, spec sharding.PartitionSpec) error {
	if len(spec) > MaxRank {
		return form.Layout.Invalid(path, "the spec has %d entries, but may have %d", len(spec), MaxRank)
	}
	for i, entry := range spec {
		if len(entry) > mesh.MaxAxes {
			return form.Layout.Invalid(jsontext.Element(path, i), "the entry names %d axes, but a mesh may have %d", len(entry), mesh.MaxAxes)
		}
		for _, axis := range entry {
			if err := checkName(jsontext.Element(path, i), "an axis", axis); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkName(path, what, name string) error {
	if name == "" {
		return form.Layout.Invalid(path, "%s has no name", what).WithHint("a name has at least one character")
	}
	if len(name) > MaxName {
		return form.Layout.Invalid(wording.Cut(path, MaxName), "%s is named %s, which has %d bytes, but may have %d", what, wording.Quote(name), len(name), MaxName).WithHint("choose a shorter name")
	}
	if !utf8.ValidString(name) {
		return form.Layout.Invalid(path, "%s is named %s, which is not valid UTF-8", what, wording.Quote(name))
	}
	return nil
}
