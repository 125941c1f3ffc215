package arrowio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/manifest"
	"github.com/meshfeed/meshfeed/core/status"
)

// maxFiles bounds a dataset; all its files stay open.
const maxFiles = 1 << 20

// choice is a file that a pattern stands for, with hints that replace the usual
// ones.
type choice struct {
	path    string
	missing string         // if it does not exist
	foreign string         // if it holds no Arrow data
	listed  *manifest.File // in the manifest of a conversion; nil if there is none

	records   int64 // that the file must have; 0 if the list of files does not say
	partition partition

	number  int // of the pattern, from 1
	pattern string
}

// String names the file and the pattern that it comes from.
func (c choice) String() string {
	if c.path == c.pattern {
		return fmt.Sprintf("%s (path %d)", c.path, c.number)
	}
	return fmt.Sprintf("%s (path %d, %q)", c.path, c.number, c.pattern)
}

// finder finds the files that patterns stand for.
type finder struct {
	ctx    context.Context
	opener blob.Opener
	split  string // to choose in directories; empty for none
}

// all returns the files of all patterns in order.
func (f finder) all(patterns []string) ([]choice, error) {
	if len(patterns) == 0 {
		return nil, status.New(status.InvalidArgument, "arrowio", "no files were named").
			WithHint("name files, globs or directories")
	}
	var all []choice
	for i, p := range patterns {
		if p == "" {
			return nil, status.Errorf(status.InvalidArgument, "arrowio", "path %d of %d is empty", i+1, len(patterns)).
				WithHint("name files, globs or directories")
		}
		list, err := f.one(p)
		if err != nil {
			return nil, err
		}
		for k := range list {
			list[k].number, list[k].pattern = i+1, p
		}
		if all = append(all, list...); len(all) > maxFiles {
			return nil, status.Errorf(status.ResourceExhausted, "arrowio", "more than %d files", maxFiles)
		}
	}
	return all, nil
}

// one returns the files of one pattern. The name of an existing file or
// directory is not a glob, even if it looks like one.
func (f finder) one(pattern string) ([]choice, error) {
	info, err := f.opener.Stat(f.ctx, pattern)
	switch {
	case err == nil && info.Dir:
		return f.directory(pattern)
	case f.split != "" && (err == nil || strings.ContainsAny(pattern, meta)):
		return nil, status.Errorf(status.InvalidArgument, "arrowio", "%s: a split is chosen in a directory, and this is none", pattern).
			WithHint("leave the split %q out, or open the directory", f.split).With("path", pattern)
	case err == nil:
		return []choice{{path: pattern}}, nil
	case strings.Contains(pattern, "://"):
		return nil, status.Errorf(status.Unsupported, "arrowio", "%s: this is a URL, and only files are read", pattern).
			WithHint("copy the files to this machine, or mount what holds them, and give their paths").With("path", pattern)
	case !strings.ContainsAny(pattern, meta):
		return nil, f.online(pattern, err)
	case strings.Contains(pattern, "**"):
		return nil, status.Errorf(status.InvalidArgument, "arrowio", "the glob %q has **, which would be read as *", pattern).
			WithHint("write one * for each level, as in %s", strings.ReplaceAll(pattern, "**", "*")).With("path", pattern)
	}
	return f.glob(pattern)
}

// meta are the characters that make a pattern a glob.
const meta = `*?[`

// glob returns the files that a glob matches. It fails if it also matches a directory with
// Arrow files.
func (f finder) glob(pattern string) ([]choice, error) {
	if _, err := filepath.Match(pattern, ""); err != nil {
		return nil, status.Errorf(status.InvalidArgument, "arrowio", "%q is not a glob: %w", pattern, err)
	}
	var files, dirs []string
	all, left := f.matches(pattern)
	for _, m := range all {
		if m.Dir {
			dirs = append(dirs, m.Name)
		} else {
			files = append(files, m.Name)
		}
	}
	if err := f.ctx.Err(); err != nil {
		return nil, status.Errorf(status.CodeOf(err), "arrowio", "the search for files was ended: %w", err)
	}
	if len(files) == 0 {
		return nil, f.nothingMatches(pattern, dirs, left)
	}
	for _, dir := range dirs {
		if f.hasData(dir) {
			return nil, f.ambiguous(pattern, dir)
		}
	}
	parents := make([]string, len(files))
	for i, file := range files {
		parents[i] = filepath.Dir(file)
	}
	if err := f.refuseTables(parents...); err != nil {
		return nil, err
	}
	return partitionedBelow(fixedDir(pattern), chosen(sorted(files), f.narrower(pattern, files)))
}

// ambiguous returns the error for a glob that matches files and a directory with files.
func (f finder) ambiguous(pattern, dir string) error {
	ext, _ := f.arrowIn(dir)
	inside := filepath.Join(pattern, "*"+ext)
	hint := fmt.Sprintf("say which are meant, as in %s or %s", pattern+ext, inside)
	if isArrow(pattern) {
		hint = fmt.Sprintf("files in directories are taken by %s, and the others by their names", inside)
	}
	return status.Errorf(status.InvalidArgument, "arrowio", "%q matches files, and the directory %s with Arrow files in it, which would be left out", pattern, dir).
		WithHint("%s", hint).With("path", dir)
}

// fixedDir returns the directory of a glob that contains everything it matches.
func fixedDir(pattern string) string {
	return filepath.Dir(pattern[:strings.IndexAny(pattern, meta)] + "x") // without the part from the first * on
}

// matches returns what a glob matches, with the directory in each name. As in a shell, *
// matches no hidden name; left are the entries that it would match otherwise. A directory that
// cannot be listed matches nothing, as in filepath.Glob.
func (f finder) matches(pattern string) (all, left []blob.Entry) {
	dir, last := filepath.Split(pattern)
	parent := filepath.Clean(dir)
	parents := []blob.Entry{{Name: parent, Dir: true}}
	if strings.ContainsAny(parent, meta) {
		parents, _ = f.matches(parent)
	}
	for _, p := range parents {
		if !p.Dir {
			continue
		}
		entries, _ := f.opener.List(f.ctx, p.Name)
		for _, e := range entries {
			switch e := (blob.Entry{Name: filepath.Join(p.Name, e.Name), Dir: e.Dir}); {
			case !named(last, e.Name):
			case hidden(e.Name) && !hidden(last):
				left = append(left, e)
			default:
				all = append(all, e)
			}
		}
	}
	return all, left
}

// named reports whether a name matches the last part of a glob. The case of the suffix of an
// Arrow file does not count, as in a directory.
func named(last, path string) bool {
	name := filepath.Base(path)
	if hasSuffix(last) && hasSuffix(name) {
		last, name = lowerSuffix(last), lowerSuffix(name)
	}
	ok, _ := filepath.Match(last, name)
	return ok
}

// hidden reports whether a name begins with . or _, as names of files and directories do which
// programs that write data keep for themselves, such as _SUCCESS and _temporary.
func hidden(path string) bool {
	name := filepath.Base(path)
	return name[0] == '.' || name[0] == '_'
}

// noFile makes an error of code NotFound in which errors.Is finds fs.ErrNotExist, as in that
// of a missing file.
func noFile(format string, args ...any) *status.Error {
	e := status.Errorf(status.NotFound, "arrowio", format, args...)
	e.Err = fs.ErrNotExist
	return e
}

// leftOut is the hint if all files of a directory have hidden names.
const leftOut = "files whose names begin with . or _ are left out; rename them, or name them by themselves"

// nothingMatches returns the error for a glob that matches no file.
func (f finder) nothingMatches(pattern string, dirs []string, left []blob.Entry) error {
	e := noFile("no file matches %q", pattern).With("path", pattern)
	if len(dirs) > 0 {
		e.Msg += fmt.Sprintf(", only the directory %s", dirs[0])
		if len(dirs) > 1 {
			e.Msg = fmt.Sprintf("no file matches %q, only %d directories", pattern, len(dirs))
		}
		if entries, _ := f.opener.List(f.ctx, dirs[0]); hasPartitions(entries) {
			return e.WithHint("open a directory with partitions: %s", dirs[0])
		}
		ext, _ := f.arrowIn(dirs[0])
		return e.WithHint("files in directories are taken by %s", filepath.Join(pattern, "*"+ext))
	}
	dir := fixedDir(pattern)
	entries, err := f.opener.List(f.ctx, dir)
	var cause *status.Error
	if errors.As(err, &cause) {
		e.Hint = cause.Hint
		return e
	}
	if len(left) > 0 {
		return e.WithHint("it matches %s, but %s", left[0].Name, leftOut)
	}
	return e.WithHint("%s", f.listed(dir, entries))
}

// listed describes what a directory holds.
func (f finder) listed(dir string, entries []blob.Entry) string {
	var names []string
	for _, entry := range entries[:min(3, len(entries))] {
		names = append(names, entry.Name)
	}
	if more := len(entries) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if info, err := f.opener.Stat(f.ctx, dir); err == nil {
		dir = info.Full
	}
	if len(names) == 0 {
		return dir + " is empty"
	}
	return dir + " holds " + strings.Join(names, ", ")
}

// narrower returns the hint for a file without Arrow data, if the glob that
// matches it also matches files with the suffix of an Arrow file.
func (f finder) narrower(pattern string, files []string) string {
	i := slices.IndexFunc(files, isArrow)
	if i < 0 {
		return ""
	}
	dir, ext := filepath.Dir(files[i]), filepath.Ext(files[i])
	better := "a glob that ends in " + ext
	if _, err := f.opener.Stat(f.ctx, filepath.Join(dir, stateFile)); err == nil {
		better = "the directory itself, " + dir
	} else if strings.HasSuffix(pattern, "*") {
		better = pattern + ext
	}
	return fmt.Sprintf("%q matches files of other kinds, too: open %s", pattern, better)
}

func chosen(paths []string, hint string) []choice {
	list := make([]choice, len(paths))
	for i, p := range paths {
		list[i] = choice{path: p, foreign: hint}
	}
	return list
}

// sorted orders by base name, then path, so that the order does not depend on
// the directories.
func sorted(paths []string) []string {
	slices.SortFunc(paths, func(a, b string) int {
		return cmp.Or(cmp.Compare(filepath.Base(a), filepath.Base(b)), cmp.Compare(a, b))
	})
	return paths
}

// suffixes are those of files of Arrow and Parquet in a directory.
var suffixes = []string{".arrow", ".arrows", ".ipc", ".feather", ".ftr", ".parquet", ".parq", ".pq"}

// isArrow reports whether a file has the suffix of an Arrow file, and is not hidden.
func isArrow(path string) bool { return !hidden(path) && hasSuffix(path) }

func hasSuffix(path string) bool {
	return slices.Contains(suffixes, strings.ToLower(filepath.Ext(path)))
}

// lowerSuffix writes the suffix of a name in lower case.
func lowerSuffix(name string) string {
	ext := filepath.Ext(name)
	return strings.TrimSuffix(name, ext) + strings.ToLower(ext)
}

// isZarr reports whether an entry of a directory holds the metadata of Zarr, of version 3 or 2.
func isZarr(e blob.Entry) bool {
	return slices.Contains([]string{"zarr.json", ".zarray", ".zgroup"}, e.Name)
}

// directory returns the Arrow files of a directory: those of a conversion, of a split of
// Hugging Face's libraries or of all partitions. In any other directory, it returns its data.
func (f finder) directory(dir string) ([]choice, error) {
	entries, err := f.opener.List(f.ctx, dir)
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
		return nil, status.Errorf(status.Unsupported, "arrowio", "%s: this is no directory of Arrow files: it is a Zarr array or group", dir).
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
		path := filepath.Join(dir, e.Name)
		if e.Dir {
			dirs = append(dirs, path)
		}
	}
	hint := ""
	for _, name := range f.data(dir, entries) {
		files = append(files, filepath.Join(dir, name))
		if filepath.Ext(name) == "" {
			hint = "name the files with data, such as by a glob"
		}
	}
	if len(files) == 0 {
		return nil, noFile("%s: the directory has no file of Arrow or Parquet (%s)", dir, strings.Join(suffixes, ", ")).
			WithHint("%s", f.alternative(dir, entries, dirs)).With("path", dir)
	}
	for _, sub := range dirs {
		if ext, _ := f.arrowIn(sub); f.hasData(sub) && !hidden(sub) {
			return nil, status.Errorf(status.InvalidArgument, "arrowio", "%s: the directory has Arrow files, and so has %s in it, which would be left out", dir, sub).
				WithHint("say which are meant, as in %s or %s", filepath.Join(dir, "*"+ext), filepath.Join(dir, "*", "*"+ext)).With("path", dir)
		}
	}
	return chosen(sorted(files), hint), nil
}

// arrowIn returns the suffix of the first Arrow file in a directory. If there is none, ok
// is false, and the suffix is that of most files.
func (f finder) arrowIn(dir string) (ext string, ok bool) {
	entries, err := f.opener.List(f.ctx, dir)
	i := slices.IndexFunc(entries, func(e blob.Entry) bool { return !e.Dir && isArrow(e.Name) })
	if err != nil || i < 0 {
		return suffixes[0], false
	}
	return filepath.Ext(entries[i].Name), true
}

// alternative suggests what to open instead of a directory without Arrow files.
func (f finder) alternative(dir string, entries []blob.Entry, dirs []string) string {
	for _, sub := range dirs {
		if ext, ok := f.arrowIn(sub); ok && !hidden(sub) {
			return "files in subdirectories are taken by a glob: " + filepath.Join(dir, "*", "*"+ext)
		}
		if entries, _ := f.opener.List(f.ctx, sub); hasPartitions(entries) {
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

// searched is how many directories are listed to find one to suggest.
const searched = 100

// below suggests the nearest directories below one that have files of Arrow or Parquet. It is
// empty if there are none among the first ones.
func (f finder) below(dir string) string {
	var found []string
	for level, seen := []string{dir}, 0; len(level) > 0 && found == nil && seen < searched; {
		var next []string
		for _, d := range level[:min(len(level), searched-seen)] {
			entries, _ := f.opener.List(f.ctx, d)
			if d != dir && (len(arrowFiles(entries)) > 0 || hasPartitions(entries)) {
				found = append(found, d)
			}
			for _, e := range entries {
				if e.Dir && !hidden(e.Name) {
					next = append(next, filepath.Join(d, e.Name))
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
