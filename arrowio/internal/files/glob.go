package files

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/core/status"
)

// meta are the characters that make a pattern a glob.
const meta = `*?[`

// glob returns the files that a glob matches. It fails if it also matches a directory with
// Arrow files.
func (f finder) glob(pattern string) ([]File, error) {
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
		if entries, _ := f.Opener.List(f.ctx, dir); hasData(entries) {
			return nil, ambiguous(pattern, dir, entries)
		}
	}
	parents := make([]string, len(files))
	for i, file := range files {
		parents[i] = filepath.Dir(file)
	}
	if err := f.refuseTables(parents...); err != nil {
		return nil, err
	}
	return partitionedBelow(fixedDir(pattern), sorted(files, f.narrower(pattern, files)))
}

// ambiguous returns the error for a glob that matches files and a directory with files.
func ambiguous(pattern, dir string, entries []blob.Entry) error {
	ext, _ := suffixIn(entries)
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
		entries, _ := f.Opener.List(f.ctx, p.Name)
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

// nothingMatches returns the error for a glob that matches no file.
func (f finder) nothingMatches(pattern string, dirs []string, left []blob.Entry) error {
	e := noFile("no file matches %q", pattern).With("path", pattern)
	if len(dirs) > 0 {
		e.Msg += fmt.Sprintf(", only the directory %s", dirs[0])
		if len(dirs) > 1 {
			e.Msg = fmt.Sprintf("no file matches %q, only %d directories", pattern, len(dirs))
		}
		entries, _ := f.Opener.List(f.ctx, dirs[0])
		if hasPartitions(entries) {
			return e.WithHint("open a directory with partitions: %s", dirs[0])
		}
		ext, _ := suffixIn(entries)
		return e.WithHint("files in directories are taken by %s", filepath.Join(pattern, "*"+ext))
	}
	dir := fixedDir(pattern)
	entries, err := f.Opener.List(f.ctx, dir)
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

// narrower returns the hint for a file without Arrow data, if the glob that
// matches it also matches files with the suffix of an Arrow file.
func (f finder) narrower(pattern string, files []string) string {
	i := slices.IndexFunc(files, isArrow)
	if i < 0 {
		return ""
	}
	dir, ext := filepath.Dir(files[i]), filepath.Ext(files[i])
	better := "a glob that ends in " + ext
	if _, err := f.Opener.Stat(f.ctx, filepath.Join(dir, stateFile)); err == nil {
		better = "the directory itself, " + dir
	} else if strings.HasSuffix(pattern, "*") {
		better = pattern + ext
	}
	return fmt.Sprintf("%q matches files of other kinds, too: open %s", pattern, better)
}
