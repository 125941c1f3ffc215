package arrowio

import (
	"cmp"
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
)

// partition is what the directories around a file say about its records, from the outermost
// on. In the layout of Hive, a directory year=2024 holds the records of that year.
type partition []partitionKey

// partitionKey is the name and the value of one directory.
type partitionKey struct {
	name, value string
	null        bool
}

// hiveNull is the value that Hive writes in place of a null.
const hiveNull = "__HIVE_DEFAULT_PARTITION__"

// keyOf returns the key and the value that a directory names. ok is false for any other name.
func keyOf(dir string) (key partitionKey, ok bool) {
	name, value, ok := strings.Cut(dir, "=")
	if !ok || name == "" || hidden(dir) {
		return key, false
	}
	key = partitionKey{name: unescape(name), value: unescape(value)}
	if key.null = key.value == hiveNull; key.null {
		key.value = ""
	}
	return key, true
}

// unescape replaces each %XX by the byte with this hexadecimal number. Any other % stays.
func unescape(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if b, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				out.WriteByte(byte(b))
				i += 2
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// names reports whether a key has the name.
func (p partition) names(name string) bool {
	return slices.ContainsFunc(p, func(k partitionKey) bool { return k.name == name })
}

// keys lists the names of the keys.
func (p partition) keys() string {
	if len(p) == 0 {
		return "no keys"
	}
	var names []string
	for _, k := range p {
		names = append(names, strconv.Quote(k.name))
	}
	return "the keys " + strings.Join(names, ", ")
}

// with returns the partition of a directory in one with this partition. The error is
// InvalidArgument if the key has no valid name or value, or comes twice.
func (p partition) with(path string, key partitionKey) (partition, error) {
	switch {
	case !utf8.ValidString(key.name) || !utf8.ValidString(key.value):
		return nil, status.Errorf(status.InvalidArgument, "arrowio", "%s: the name of the directory stands for %q=%q, which is not UTF-8", path, key.name, key.value).
			WithHint("rename the directory").With("path", path)
	case p.names(key.name):
		return nil, status.Errorf(status.InvalidArgument, "arrowio", "%s: the key %q comes twice in the names of directories", path, key.name).
			WithHint("rename one of them, or open a directory further inside").With("path", path)
	}
	return append(slices.Clip(p), key), nil
}

// place is a directory within the partitions.
type place struct {
	dir       string
	entries   []blob.Entry
	partition partition
}

// hasPartitions reports whether some directory among the entries names a key and a value.
func hasPartitions(entries []blob.Entry) bool {
	return slices.ContainsFunc(entries, func(e blob.Entry) bool {
		_, ok := keyOf(e.Name)
		return e.Dir && ok
	})
}

// partitioned returns the files of a directory and of all partitions in it, in the order of
// their paths. The list is nil if no directory in it names a key and a value.
func (f finder) partitioned(dir string, entries []blob.Entry) ([]choice, error) {
	if !hasPartitions(entries) {
		return nil, nil
	}
	var list []choice
	for level, seen := []place{{dir: dir, entries: entries}}, 1; len(level) > 0; seen += len(level) {
		if seen > maxFiles {
			return nil, status.Errorf(status.ResourceExhausted, "arrowio", "%s: the directory has more than %d directories", dir, maxFiles).With("path", dir)
		}
		var next []place
		for _, p := range level {
			files, inside, err := f.divide(p)
			if err != nil {
				return nil, err
			}
			list, next = append(list, files...), append(next, inside...)
		}
		err := parallel(len(next), func(i int) (err error) {
			next[i].entries, err = f.opener.List(f.ctx, next[i].dir)
			return err
		})
		if err != nil {
			return nil, err
		}
		level = next
	}
	if len(list) == 0 {
		return nil, noFile("%s: the partitions have no file of Arrow or Parquet (%s)", dir, strings.Join(suffixes, ", ")).
			WithHint("open a directory that has some").With("path", dir)
	}
	return byPath(list), nil
}

// divide returns the files of a directory, and its partitions.
func (f finder) divide(p place) (files []choice, inside []place, err error) {
	for _, name := range f.data(p.dir, p.entries) {
		files = append(files, choice{path: filepath.Join(p.dir, name), partition: p.partition})
	}
	for _, e := range p.entries {
		path := filepath.Join(p.dir, e.Name)
		key, ok := keyOf(e.Name)
		switch {
		case !e.Dir || hidden(e.Name):
		case ok:
			keys, err := p.partition.with(path, key)
			if err != nil {
				return nil, nil, err
			}
			inside = append(inside, place{dir: path, partition: keys})
		default:
			if ext, ok := f.arrowIn(path); ok {
				return nil, nil, status.Errorf(status.InvalidArgument, "arrowio", "%s: the directory has partitions, such as key=value, and the directory %s with Arrow files in it, which would be left out", p.dir, path).
					WithHint("move it, or say which files are meant, as in %s", filepath.Join(path, "*"+ext)).With("path", path)
			}
		}
	}
	return files, inside, nil
}

// byPath sorts files by their paths.
func byPath(list []choice) []choice {
	slices.SortFunc(list, func(a, b choice) int { return cmp.Compare(a.path, b.path) })
	return list
}

// partitionedBelow adds to the files of a glob what the directories below its fixed part name.
// If some name keys and values, the files are sorted by path.
func partitionedBelow(fixed string, list []choice) ([]choice, error) {
	some := false
	for i := range list {
		c := &list[i]
		inside, err := filepath.Rel(fixed, filepath.Dir(c.path))
		if err != nil {
			continue // a glob matches nothing outside of its fixed part
		}
		for _, name := range strings.Split(inside, string(filepath.Separator)) {
			if key, ok := keyOf(name); ok {
				some = true
				if c.partition, err = c.partition.with(c.path, key); err != nil {
					return nil, err
				}
			}
		}
	}
	if some {
		return byPath(list), nil
	}
	return list, nil
}

// setPartitions adds a field for each key that the directories of the files name.
func (d *Dataset) setPartitions() error {
	d.rows = stored{d}
	first := d.files[0]
	for _, f := range d.files[1:] {
		if !slices.EqualFunc(f.partition, first.partition, func(a, b partitionKey) bool { return a.name == b.name }) {
			return status.Errorf(status.Incompatible, "arrowio", "the directories of %s name %s, but those of %s name %s", f.path, f.partition.keys(), first.path, first.partition.keys()).
				WithHint("all files of a dataset need the same keys in the same order; open them apart, or move the files").With("path", f.path)
		}
	}
	if len(first.partition) == 0 {
		return nil
	}
	runs, fields := make([]int64, len(d.files)), []view.Constant(nil)
	for i, f := range d.files {
		runs[i] = f.records
	}
	for k := range first.partition {
		if d.union.has(first.partition[k].name) {
			fields = append(fields, d.constant(k))
		}
	}
	var err error
	if d.rows, err = view.Constants(stored{d}, runs, fields...); err != nil || d.union.chosen == nil {
		return err
	}
	d.rows, err = view.Select(d.rows, d.union.chosen...)
	return err
}

// constant returns the field of a partition key: integers if all values are, otherwise text.
func (d *Dataset) constant(k int) view.Constant {
	c := view.Constant{Field: source.Field{Name: d.files[0].partition[k].name, Type: dtype.Int64, Shape: []int{}}}
	integers := 0
	for _, f := range d.files {
		switch _, ok := integer(f.partition[k].value); {
		case f.partition[k].null:
		case ok:
			integers++
		default:
			integers = math.MinInt
		}
	}
	if integers <= 0 {
		c.Field.Type, c.Field.Ragged, c.Field.Logical = dtype.Uint8, 1, "string"
	}
	for _, f := range d.files {
		key, row := f.partition[k], []byte(nil)
		switch n, _ := integer(key.value); {
		case key.null:
		case integers > 0:
			row = binary.LittleEndian.AppendUint64(nil, uint64(n))
		default:
			row = append([]byte{}, key.value...)
		}
		c.Rows = append(c.Rows, row)
	}
	return c
}

// integer returns the integer of 64 bits that a text is. Its only form is that which Go and
// most programs print: 07 and +7 are text.
func integer(text string) (n int64, ok bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == text
}

// stored is a dataset without the fields that directories name.
type stored struct{ *Dataset }

// Schema implements source.Source.
func (s stored) Schema() source.Schema { return s.table.Schema }

// Gatherer implements source.Source.
func (s stored) Gatherer(parts []source.Part) (source.Gatherer, error) { return s.gatherer(parts) }

// Reader implements source.Source.
func (s stored) Reader(fields []int) (source.Reader, error) { return s.reader(fields) }
