package arrowio

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
)

// maxFiles bounds a dataset; all its files stay open.
const maxFiles = 1 << 20

// choice is a file that a pattern stands for, and what to do in two cases, where
// there is something better to say than usual.
type choice struct {
	path    string
	missing string // it does not exist
	foreign string // it holds no Arrow data

	number  int // of the pattern, from 1
	pattern string
}

// String says which file it is and which pattern it comes from.
func (c choice) String() string {
	if c.path == c.pattern {
		return fmt.Sprintf("%s (path %d)", c.path, c.number)
	}
	return fmt.Sprintf("%s (path %d, %q)", c.path, c.number, c.pattern)
}

// expand gives the files that patterns stand for, in order: a pattern that is
// the name of a file or directory stands for that, even if it looks like a
// glob.
func expand(patterns []string) ([]choice, error) {
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
		list, err := expandOne(p)
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

func expandOne(pattern string) ([]choice, error) {
	info, err := os.Stat(pattern)
	switch {
	case err == nil && info.IsDir():
		return directory(pattern)
	case err == nil:
		return []choice{{path: pattern}}, nil
	case strings.Contains(pattern, "://"):
		return nil, status.Errorf(status.Unsupported, "arrowio", "%s: this is a URL, and only files are read", pattern).
			WithHint("copy the files to this machine, or mount what holds them, and give their paths").With("path", pattern)
	case !strings.ContainsAny(pattern, meta):
		return nil, openError(pattern, err)
	case strings.Contains(pattern, "**"):
		return nil, status.Errorf(status.InvalidArgument, "arrowio", "the glob %q has **, which would be read as *", pattern).
			WithHint("write one * for each level, as in %s", strings.ReplaceAll(pattern, "**", "*")).With("path", pattern)
	}
	return glob(pattern)
}

// meta are the characters that make a glob of a pattern.
const meta = `*?[`

// glob gives the files that a glob matches. It leaves out hidden ones, and
// directories, but none with Arrow files.
func glob(pattern string) ([]choice, error) {
	matches, err := filepath.Glob(pattern)
	if err != nil {
		return nil, status.Errorf(status.InvalidArgument, "arrowio", "%q is not a glob: %w", pattern, err)
	}
	var files, dirs []string
	for _, p := range matches {
		info, err := os.Stat(p)
		switch {
		case hidden(p) && !hidden(pattern):
		case err == nil && info.IsDir():
			dirs = append(dirs, p)
		default:
			files = append(files, p)
		}
	}
	if len(files) == 0 {
		return nil, nothingMatches(pattern, dirs)
	}
	for _, dir := range dirs {
		if holdsArrow(dir) {
			return nil, status.Errorf(status.InvalidArgument, "arrowio", "%q matches files, and the directory %s with Arrow files in it, which would be left out", pattern, dir).
				WithHint("say which are meant, as in %s or %s", pattern+suffixes[0], filepath.Join(pattern, "*"+suffixes[0])).With("path", dir)
		}
	}
	return chosen(sorted(files), narrower(pattern, files)), nil
}

func hidden(path string) bool { return strings.HasPrefix(filepath.Base(path), ".") }

// nothingMatches is the error for a glob that matches no file.
func nothingMatches(pattern string, dirs []string) error {
	e := status.Errorf(status.NotFound, "arrowio", "no file matches %q", pattern).With("path", pattern)
	if len(dirs) > 0 {
		e.Msg += fmt.Sprintf(", only the directory %s", dirs[0])
		if len(dirs) > 1 {
			e.Msg = fmt.Sprintf("no file matches %q, only %d directories", pattern, len(dirs))
		}
		return e.WithHint("files in directories are taken by %s", filepath.Join(pattern, "*"+suffixes[0]))
	}
	dir := filepath.Dir(pattern[:strings.IndexAny(pattern, meta)] + "x") // what stands before the first *
	entries, err := os.ReadDir(dir)
	if err != nil {
		e.Hint = whereMissing(dir)
		return e
	}
	return e.WithHint("%s", listed(dir, entries))
}

// listed says what a directory holds instead of what is missing there.
func listed(dir string, entries []fs.DirEntry) string {
	var names []string
	for _, entry := range entries[:min(3, len(entries))] {
		names = append(names, entry.Name())
	}
	if more := len(entries) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if len(names) == 0 {
		return dir + " is empty"
	}
	return dir + " holds " + strings.Join(names, ", ")
}

// narrower gives the hint for a file without Arrow data that a glob matches
// beside files that are called as Arrow files are.
func narrower(pattern string, files []string) string {
	i := slices.IndexFunc(files, isArrow)
	if i < 0 {
		return ""
	}
	dir, ext := filepath.Dir(files[i]), filepath.Ext(files[i])
	better := "a glob that ends in " + ext
	if _, err := os.Stat(filepath.Join(dir, stateFile)); err == nil {
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
// where the files lie.
func sorted(paths []string) []string {
	slices.SortFunc(paths, func(a, b string) int {
		return cmp.Or(cmp.Compare(filepath.Base(a), filepath.Base(b)), cmp.Compare(a, b))
	})
	return paths
}

// suffixes are those of Arrow files in a directory.
var suffixes = []string{".arrow", ".arrows", ".ipc", ".feather"}

// isArrow says whether a file is called as Arrow files are.
func isArrow(path string) bool {
	return !hidden(path) && slices.Contains(suffixes, strings.ToLower(filepath.Ext(path)))
}

// directory gives the Arrow files of a directory: those that Hugging Face's
// state.json lists, or all that have one of the suffixes and are not hidden.
func directory(dir string) ([]choice, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, openError(dir, err)
	}
	if list, err := savedToDisk(dir); list != nil || err != nil {
		return list, err
	}
	var files, dirs []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			dirs = append(dirs, path)
		} else if isArrow(path) {
			files = append(files, path)
		}
	}
	if len(files) == 0 {
		return nil, status.Errorf(status.NotFound, "arrowio", "%s: the directory has no Arrow file (%s)", dir, strings.Join(suffixes, ", ")).
			WithHint("%s", elsewhere(dir, entries, dirs)).With("path", dir)
	}
	for _, sub := range dirs {
		if !hidden(sub) && holdsArrow(sub) {
			return nil, status.Errorf(status.InvalidArgument, "arrowio", "%s: the directory has Arrow files, and so has %s in it, which would be left out", dir, sub).
				WithHint("say which are meant, as in %s or %s", filepath.Join(dir, "*"+suffixes[0]), filepath.Join(dir, "*", "*"+suffixes[0])).With("path", dir)
		}
	}
	return chosen(sorted(files), ""), nil
}

// holdsArrow says whether a directory has an Arrow file.
func holdsArrow(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !e.IsDir() && isArrow(e.Name()) })
}

// elsewhere says what could have been meant instead.
func elsewhere(dir string, entries []fs.DirEntry, dirs []string) string {
	if i := slices.IndexFunc(dirs, holdsArrow); i >= 0 {
		return "files in subdirectories are taken by a glob: " + filepath.Join(dir, "*", "*"+suffixes[0])
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.EqualFold(filepath.Ext(e.Name()), ".parquet") }) {
		return parquetHint
	}
	return listed(dir, entries)
}
