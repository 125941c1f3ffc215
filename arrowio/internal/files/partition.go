package files

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Partition lists the keys that the directories around a file name, from the outermost on. In
// the layout of Hive, a directory year=2024 holds the records of that year. Fingerprints
// contain the printed form of a Partition, so neither type may get a method String.
type Partition []Key

// Key is the name and the value that one directory states for all records in it.
type Key struct {
	Name, Value string
	Null        bool
}

// hiveNull is the value that Hive writes in place of a null.
const hiveNull = "__HIVE_DEFAULT_PARTITION__"

// keyOf returns the key and the value that a directory names. ok is false for any other name.
func keyOf(dir string) (key Key, ok bool) {
	name, value, ok := strings.Cut(dir, "=")
	if !ok || name == "" || hidden(dir) {
		return key, false
	}
	key = Key{Name: unescape(name), Value: unescape(value)}
	if key.Null = key.Value == hiveNull; key.Null {
		key.Value = ""
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

// Has reports whether a key has the name.
func (p Partition) Has(name string) bool {
	return slices.ContainsFunc(p, func(k Key) bool { return k.Name == name })
}

// keys lists the names of the keys.
func (p Partition) keys() string {
	if len(p) == 0 {
		return "no keys"
	}
	var names []string
	for _, k := range p {
		names = append(names, strconv.Quote(k.Name))
	}
	return "the keys " + strings.Join(names, ", ")
}

// with returns the partition of a directory in one with this partition. The error is
// InvalidArgument if the key has no valid name or value, or comes twice.
func (p Partition) with(path string, key Key) (Partition, error) {
	switch {
	case !utf8.ValidString(key.Name) || !utf8.ValidString(key.Value):
		return nil, status.Errorf(status.InvalidArgument, "arrowio", "%s: the name of the directory stands for %q=%q, which is not UTF-8", path, key.Name, key.Value).
			WithHint("rename the directory").With("path", path)
	case p.Has(key.Name):
		return nil, status.Errorf(status.InvalidArgument, "arrowio", "%s: the key %q comes twice in the names of directories", path, key.Name).
			WithHint("rename one of them, or open a directory further inside").With("path", path)
	}
	return append(slices.Clip(p), key), nil
}

// place is a directory within the partitions.
type place struct {
	dir       string
	entries   []blob.Entry
	partition Partition
}

// listedAtOnce bounds the directories that are listed at a time, because each call waits for a
// disk.
const listedAtOnce = 32

// hasPartitions reports whether some directory among the entries names a key and a value.
func hasPartitions(entries []blob.Entry) bool {
	return slices.ContainsFunc(entries, func(e blob.Entry) bool {
		_, ok := keyOf(e.Name)
		return e.Dir && ok
	})
}

// partitioned returns the files of a directory and of all partitions in it, in the order of
// their paths. The list is nil if no directory in it names a key and a value.
func (f finder) partitioned(dir string, entries []blob.Entry) ([]File, error) {
	if !hasPartitions(entries) {
		return nil, nil
	}
	var list []File
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
		err := guard.Parallel(context.Background(), "arrowio", len(next), listedAtOnce, func(i int) (err error) {
			next[i].entries, err = f.list(next[i].dir)
			return err
		})
		if err != nil {
			return nil, err
		}
		level = next
	}
	if len(list) == 0 {
		return nil, noFile("%s: the partitions have no file of Arrow or Parquet (%s)", dir, Suffixes).
			WithHint("open a directory that has some").With("path", dir)
	}
	return byPath(list), nil
}

// divide returns the files of a directory, and its partitions.
func (f finder) divide(p place) (files []File, inside []place, err error) {
	for _, name := range f.data(p.dir, p.entries) {
		files = append(files, File{Path: f.join(p.dir, name), Partition: p.partition})
	}
	for _, e := range p.entries {
		path := f.join(p.dir, e.Name)
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
			below, _ := f.list(path)
			if ext, ok := suffixIn(below); ok {
				return nil, nil, status.Errorf(status.InvalidArgument, "arrowio", "%s: the directory has partitions, such as key=value, and the directory %s with Arrow files in it, which would be left out", p.dir, path).
					WithHint("move it, or say which files are meant, as in %s", f.join(path, "*"+ext)).With("path", path)
			}
		}
	}
	return files, inside, nil
}

// byPath sorts files by their paths.
func byPath(list []File) []File {
	slices.SortFunc(list, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return list
}

// partitionedBelow adds to the files of a glob what the directories below its fixed part name.
// If some name keys and values, the files are sorted by path.
func (f finder) partitionedBelow(fixed string, list []File) ([]File, error) {
	some := false
	for i := range list {
		c := &list[i]
		for _, name := range slices.Backward(f.parts(fixed, f.dirOf(c.Path))) {
			if key, ok := keyOf(name); ok {
				var err error
				some = true
				if c.Partition, err = c.Partition.with(c.Path, key); err != nil {
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

// Keys returns a field for each key of the files, with the value of each file. The values are
// integers if all of them have the form of integers, otherwise text. The error is Incompatible
// if two files have different keys.
func Keys(list []*File) ([]view.Constant, error) {
	first := list[0]
	for _, f := range list[1:] {
		if !slices.EqualFunc(f.Partition, first.Partition, func(a, b Key) bool { return a.Name == b.Name }) {
			return nil, status.Errorf(status.Incompatible, "arrowio", "the directories of %s name %s, but the directories of %s name %s", f.Path, f.Partition.keys(), first.Path, first.Partition.keys()).
				WithHint("all files of a dataset need the same keys in the same order; open them apart, or move the files").With("path", f.Path)
		}
	}
	fields := make([]view.Constant, len(first.Partition))
	for k := range fields {
		fields[k] = constant(list, k)
	}
	return fields, nil
}

// constant returns the field of the key with a number.
func constant(list []*File, number int) view.Constant {
	c := view.Constant{Field: source.Field{Name: list[0].Partition[number].Name, Type: dtype.Int64, Shape: []int{}}}
	integers := 0
	for _, f := range list {
		switch _, ok := integer(f.Partition[number].Value); {
		case f.Partition[number].Null:
		case ok:
			integers++
		default:
			integers = math.MinInt
		}
	}
	if integers <= 0 {
		c.Field.Type, c.Field.Ragged, c.Field.Logical = dtype.Uint8, 1, "string"
	}
	for _, f := range list {
		key, row := f.Partition[number], []byte(nil)
		switch n, _ := integer(key.Value); {
		case key.Null:
		case integers > 0:
			row = binary.LittleEndian.AppendUint64(nil, uint64(n))
		default:
			row = append([]byte{}, key.Value...)
		}
		c.Rows = append(c.Rows, row)
	}
	return c
}

// integer parses text as an integer of 64 bits. It accepts only the form that Go and most
// programs print: 07 and +7 are text.
func integer(text string) (n int64, ok bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == text
}
