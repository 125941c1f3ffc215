package files

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/core/status"
)

// meta are the characters that make a pattern a glob.
const meta = `*?[`

// numbers matches a range of numbers, as bash and WebDataset write it.
var numbers = regexp.MustCompile(`\{([0-9]{1,9})\.\.([0-9]{1,9})\}`)

// numbered returns the files of the patterns that a pattern with a range of numbers stands for.
func (f finder) numbered(pattern string) (all []File, err error) {
	names, err := expand(pattern, numbers.FindStringSubmatchIndex(pattern))
	for _, name := range names {
		list, err := f.one(name)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, err
}

// expand replaces a range of numbers, which matches numbers at some positions, by each of its numbers.
// If both ends have as many digits, so have all numbers.
func expand(pattern string, at []int) (names []string, err error) {
	low, high := pattern[at[2]:at[3]], pattern[at[4]:at[5]]
	from, _ := strconv.Atoi(low)
	to, _ := strconv.Atoi(high)
	if from > to || to-from >= maxFiles {
		return nil, status.Errorf(status.InvalidArgument, "arrowio", "the range %s has %d numbers", pattern[at[0]:at[1]], max(to-from+1, 0)).
			WithHint("write the smaller number first, as in {0..9}; at most %d files open", maxFiles).With("path", Public(pattern))
	}
	width := 0
	if len(low) == len(high) {
		width = len(low)
	}
	for n := from; n <= to; n++ {
		names = append(names, pattern[:at[0]]+fmt.Sprintf("%0*d", width, n)+pattern[at[1]:])
	}
	return names, nil
}

// glob returns the files that a glob matches. It fails if it also matches a directory with
// Arrow files.
func (f finder) glob(pattern string) ([]File, error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, status.Errorf(status.InvalidArgument, "arrowio", "%q is not a glob: %w", pattern, err)
	}
	matches, left, err := f.matches(pattern)
	if err != nil {
		return nil, err
	}
	var files, dirs []string
	for _, m := range matches {
		if m.Dir {
			dirs = append(dirs, m.Name)
		} else {
			files = append(files, m.Name)
		}
	}
	if len(files) == 0 {
		return nil, f.nothingMatches(pattern, dirs, left)
	}
	for _, dir := range dirs {
		if entries, _ := f.list(dir); hasData(entries) {
			return nil, f.ambiguous(pattern, dir, entries)
		}
	}
	parents := make([]string, len(files))
	for i, file := range files {
		parents[i] = f.dirOf(file)
	}
	if err := f.refuseTables(parents...); err != nil {
		return nil, err
	}
	return f.partitionedBelow(f.fixedDir(pattern), f.sorted(files, f.narrower(pattern, files)))
}

// ambiguous returns the error for a glob that matches files and a directory with files.
func (f finder) ambiguous(pattern, dir string, entries []blob.Entry) error {
	ext, _ := suffixIn(entries)
	inside := f.join(pattern, "*"+ext)
	hint := fmt.Sprintf("say which are meant, as in %s or %s", pattern+ext, inside)
	if _, base := f.Opener.Split(pattern); isArrow(base) {
		hint = fmt.Sprintf("files in directories are taken by %s, and the others by their names", inside)
	}
	return status.Errorf(status.InvalidArgument, "arrowio", "%q matches files, and the directory %s with Arrow files in it, which would be left out", pattern, dir).
		WithHint("%s", hint).With("path", dir)
}

// fixedDir returns the directory of a glob that contains everything it matches.
func (f finder) fixedDir(pattern string) string {
	return f.dirOf(pattern[:strings.IndexAny(pattern, meta)] + "x") // without the part from the first * on
}

// matches returns what a glob matches. As in a shell, * matches no hidden name; left are the
// entries that it would match otherwise. The case of the suffix of an Arrow file does not count,
// as in a directory.
func (f finder) matches(pattern string) (all, left []blob.Entry, err error) {
	parts := strings.Split(pattern, "/")
	for i := range parts {
		if strings.ContainsAny(parts[i], meta) {
			for k := i; k < len(parts); k++ {
				parts[k] = anyCase(parts[k])
			}
			break
		}
	}
	found, err := f.Opener.Glob(f.ctx, strings.Join(parts, "/"))
	if ended := status.Ended("arrowio", "the search for files", f.ctx.Err()); ended != nil {
		return nil, nil, ended
	}
	fixed := f.fixedDir(pattern)
	asked := f.parts(fixed, pattern)
	for _, e := range found {
		names := f.parts(fixed, e.Name)
		switch i := hiddenPart(names, asked); {
		case i < 0:
			f.found.add(e)
			all = append(all, e)
		case i == 0:
			left = append(left, e)
		}
	}
	return all, left, err
}

// hiddenPart returns the index of the last part of a name that is hidden, although the pattern does
// not ask for hidden names there. It returns -1 if no part is hidden.
func hiddenPart(names, asked []string) int {
	last := -1
	for i := range min(len(names), len(asked)) {
		if hidden(names[i]) && !hidden(asked[i]) {
			last = i
		}
	}
	return last
}

// nothingMatches returns the error for a glob that matches no file.
func (f finder) nothingMatches(pattern string, dirs []string, left []blob.Entry) error {
	e := noFile("no file matches %q", pattern).With("path", pattern)
	if len(dirs) > 0 {
		e.Msg += fmt.Sprintf(", only the directory %s", dirs[0])
		if len(dirs) > 1 {
			e.Msg = fmt.Sprintf("no file matches %q, only %d directories", pattern, len(dirs))
		}
		entries, _ := f.list(dirs[0])
		if hasPartitions(entries) {
			return e.WithHint("open a directory with partitions: %s", dirs[0])
		}
		ext, _ := suffixIn(entries)
		return e.WithHint("files in directories are taken by %s", f.join(pattern, "*"+ext))
	}
	dir := f.fixedDir(pattern)
	entries, err := f.list(dir)
	if cause, ok := errors.AsType[*status.Error](err); ok {
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
	i := slices.IndexFunc(files, func(name string) bool { _, base := f.Opener.Split(name); return isArrow(base) })
	if i < 0 {
		return ""
	}
	dir, ext := f.dirOf(files[i]), path.Ext(files[i])
	better := "a glob that ends in " + ext
	if entries, _ := f.list(dir); isFile(entries, stateFile) {
		better = "the directory itself, " + dir
	} else if strings.HasSuffix(pattern, "*") {
		better = pattern + ext
	}
	return fmt.Sprintf("%q matches files of other kinds, too: open %s", pattern, better)
}
