package files

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/core/status"
)

// directory returns the Arrow files of a directory: the files of a conversion, of a split of
// Hugging Face's libraries or of all partitions. In any other directory, it returns its data.
func (f finder) directory(dir string) ([]File, error) {
	entries, err := f.list(dir)
	if err != nil {
		return nil, err
	}
	if list, err := f.converted(dir, entries); list != nil || err != nil {
		return list, err
	}
	if list, err := f.huggingFace(dir, entries); list != nil || err != nil {
		return list, err
	}
	if slices.ContainsFunc(entries, isZarr) {
		return nil, status.Errorf(status.Unsupported, "arrowio", "%s: not a directory of Arrow files: it is a Zarr array or group", dir).
			WithHint(`if it fits into memory: mf.from_arrays({"x": zarr.open("in.zarr")[:]}); if not, write its rows as Arrow IPC files, for example with pyarrow.ipc.new_file`).With("path", dir)
	}
	if err := f.refuseTables(dir); err != nil {
		return nil, err
	}
	if list, err := f.partitioned(dir, entries); list != nil || err != nil {
		return list, err
	}
	var files, dirs []string
	for _, e := range entries {
		if e.Dir {
			dirs = append(dirs, e.Name)
		}
	}
	hint := ""
	for _, name := range f.data(dir, entries) {
		files = append(files, f.join(dir, name))
		if path.Ext(name) == "" {
			hint = "name the files with data, such as by a glob"
		}
	}
	if len(files) == 0 {
		return nil, noFile("%s: the directory has no file of Arrow or Parquet (%s)", dir, Suffixes).
			WithHint("%s", f.alternative(dir, entries, dirs)).With("path", dir)
	}
	for _, sub := range dirs {
		if hidden(sub) {
			continue
		}
		sub = f.join(dir, sub)
		if entries, _ := f.list(sub); hasData(entries) {
			ext, _ := suffixIn(entries)
			return nil, status.Errorf(status.InvalidArgument, "arrowio", "%s: the directory has Arrow files, and so has %s in it, which would be left out", dir, sub).
				WithHint("say which are meant, as in %s or %s", f.join(dir, "*"+ext), f.join(dir, "*/*"+ext)).With("path", dir)
		}
	}
	return f.sorted(files, hint), nil
}

// data returns the names of the data files in a directory: of Arrow files, by their suffixes. Without
// such files it returns the .npy files, the indexes of Megatron, the archives, the files of TFRecord or the
// files of JSON Lines, whichever it finds first. Without all of these it returns the files without any suffix,
// if one has Arrow data.
func (f finder) data(dir string, entries []blob.Entry) []string {
	if names := arrowFiles(entries); len(names) > 0 {
		return names
	}
	if names := otherFiles(entries); len(names) > 0 {
		return names
	}
	names := namesOf(entries, func(name string) bool { return !hidden(name) && path.Ext(name) == "" })
	if !slices.ContainsFunc(names[:min(len(names), searched)], func(name string) bool { return f.isData(f.join(dir, name)) }) {
		return nil
	}
	return names
}

// hasData reports whether a directory with these entries has Arrow files or partitions.
func hasData(entries []blob.Entry) bool {
	return len(arrowFiles(entries)) > 0 || hasPartitions(entries)
}

// arrowFiles returns the names of the Arrow files in a directory, or of the files with JSON Lines if it
// has no other data.
func arrowFiles(entries []blob.Entry) []string {
	if names := namesOf(entries, isArrow); len(names) > 0 || len(otherFiles(entries)) > 0 {
		return names
	}
	return namesOf(entries, isLines)
}

// otherFiles returns the names of the .npy files in a directory, of the indexes of Megatron, of the
// archives, or of the files of TFRecord.
func otherFiles(entries []blob.Entry) []string {
	for _, suffix := range []string{npy, Index, Archive} {
		if names := namesOf(entries, func(name string) bool { return !hidden(name) && suffixOf(name) == suffix }); len(names) > 0 {
			return names
		}
	}
	return namesOf(entries, func(name string) bool { return !hidden(name) && IsRecords(name) })
}

// namesOf returns the names of some files in a directory.
func namesOf(entries []blob.Entry, some func(name string) bool) (names []string) {
	for _, e := range entries {
		if !e.Dir && some(e.Name) {
			names = append(names, e.Name)
		}
	}
	return names
}

// isData reports whether a file has Arrow data, by its first bytes. A file that cannot be read
// has none.
func (f finder) isData(path string) bool {
	b, err := f.Opener.Open(f.ctx, f.entry(path))
	if err != nil {
		return false
	}
	defer b.Close()
	return f.Recognize(f.ctx, b)
}

// isZarr reports whether an entry of a directory holds the metadata of Zarr, of version 3 or 2.
func isZarr(e blob.Entry) bool {
	return slices.Contains([]string{"zarr.json", ".zarray", ".zgroup"}, e.Name)
}

// suffixIn returns the suffix of the first Arrow file of a directory. Without such a file, ok is
// false, and the suffix is the one that most files have.
func suffixIn(entries []blob.Entry) (ext string, ok bool) {
	names := arrowFiles(entries)
	if len(names) == 0 {
		return suffixes[0], false
	}
	return names[0][len(names[0])-len(suffixOf(names[0])):], true
}

// alternative suggests what to open instead of a directory without Arrow files.
func (f finder) alternative(dir string, entries []blob.Entry, dirs []string) string {
	for _, name := range dirs {
		sub := f.join(dir, name)
		entries, _ := f.list(sub)
		if ext, ok := suffixIn(entries); ok && !hidden(name) {
			return "files in subdirectories are taken by a glob: " + f.join(dir, "*/*"+ext)
		}
		if hasPartitions(entries) {
			return "open a directory with partitions: " + sub
		}
	}
	if slices.ContainsFunc(entries, func(e blob.Entry) bool { return !e.Dir && hidden(e.Name) && hasSuffix(e.Name) }) {
		return leftOut
	}
	if below := f.below(dir); below != "" {
		return below
	}
	return f.listed(dir, entries)
}

// leftOut is the hint if all files of a directory have hidden names.
const leftOut = "files whose names begin with . or _ are left out; rename them, or name them by themselves"

// listed describes what a directory holds.
func (f finder) listed(dir string, entries []blob.Entry) string {
	var names []string
	for _, entry := range entries[:min(3, len(entries))] {
		names = append(names, entry.Name)
	}
	if more := len(entries) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	dir = f.Opener.Full(dir)
	if len(names) == 0 {
		return dir + " is empty"
	}
	return dir + " holds " + strings.Join(names, ", ")
}

// searched is how many directories are listed to find one to suggest.
const searched = 100

// below suggests the nearest directories below one that have files of Arrow or Parquet. It is
// empty if the first directories have no such file.
func (f finder) below(dir string) string {
	var found []string
	for level, seen := []string{dir}, 0; len(level) > 0 && found == nil && seen < searched; {
		var next []string
		for _, d := range level[:min(len(level), searched-seen)] {
			entries, _ := f.list(d)
			if d != dir && hasData(entries) {
				found = append(found, d)
			}
			for _, e := range entries {
				if e.Dir && !hidden(e.Name) {
					next = append(next, f.join(d, e.Name))
				}
			}
		}
		level, seen = next, seen+len(level)
	}
	switch n := len(found); {
	case n == 0:
		return ""
	case n == 1:
		return "it has files in " + found[0] + ": open that directory"
	default:
		return fmt.Sprintf("%d directories in it have files, such as %s: open one of them", n, found[0])
	}
}

func isDir(entries []blob.Entry, name string) bool {
	return slices.ContainsFunc(entries, func(e blob.Entry) bool { return e.Dir && e.Name == name })
}

func isFile(entries []blob.Entry, name string) bool {
	return slices.ContainsFunc(entries, func(e blob.Entry) bool { return !e.Dir && e.Name == name })
}
