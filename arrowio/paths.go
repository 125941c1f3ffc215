package arrowio

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
)

// maxFiles bounds a dataset; all its files stay open.
const maxFiles = 1 << 20

// expand gives the files that patterns stand for, in order: a pattern that is
// the name of a file or directory stands for that, even if it looks like a
// glob.
func expand(patterns []string) ([]string, error) {
	if len(patterns) == 0 {
		return nil, status.New(status.InvalidArgument, "arrowio", "no files were named")
	}
	var paths []string
	for _, p := range patterns {
		list, err := expandOne(p)
		if err != nil {
			return nil, err
		}
		if paths = append(paths, list...); len(paths) > maxFiles {
			return nil, status.Errorf(status.ResourceExhausted, "arrowio", "more than %d files", maxFiles)
		}
	}
	return paths, nil
}

func expandOne(pattern string) ([]string, error) {
	info, err := os.Stat(pattern)
	switch {
	case err == nil && info.IsDir():
		return directory(pattern)
	case err == nil && !info.Mode().IsRegular():
		return nil, status.Errorf(status.Unsupported, "arrowio", "%s: this is no regular file (%v)", pattern, info.Mode()).
			WithHint("rows are read in any order; copy a pipe or device into a file first").With("path", pattern)
	case err == nil:
		return []string{pattern}, nil
	case !strings.ContainsAny(pattern, `*?[`):
		return nil, openError(pattern, err)
	}
	list, err := filepath.Glob(pattern)
	if err != nil {
		return nil, status.Errorf(status.InvalidArgument, "arrowio", "%q is not a glob: %w", pattern, err)
	}
	list = slices.DeleteFunc(list, func(p string) bool {
		info, err := os.Stat(p)
		return err == nil && info.IsDir()
	})
	if len(list) == 0 {
		return nil, status.Errorf(status.NotFound, "arrowio", "no file matches %q", pattern).With("path", pattern)
	}
	return sorted(list), nil
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

// directory gives the Arrow files of a directory: those that Hugging Face's
// state.json lists, or all that have one of the suffixes.
func directory(dir string) ([]string, error) {
	if list, err := savedToDisk(dir); list != nil || err != nil {
		return list, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, openError(dir, err)
	}
	var list []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains(suffixes, strings.ToLower(filepath.Ext(e.Name()))) {
			list = append(list, filepath.Join(dir, e.Name()))
		}
	}
	if len(list) == 0 {
		return nil, status.Errorf(status.NotFound, "arrowio", "%s: the directory has no Arrow file (%s)", dir, strings.Join(suffixes, ", ")).
			WithHint("%s", elsewhere(dir, entries)).With("path", dir)
	}
	return sorted(list), nil
}

// elsewhere says what could have been meant instead.
func elsewhere(dir string, entries []fs.DirEntry) string {
	for _, e := range entries {
		if e.IsDir() {
			return "files in subdirectories are taken by a glob: " + filepath.Join(dir, "*", "*.arrow")
		}
		if strings.EqualFold(filepath.Ext(e.Name()), ".parquet") {
			return parquetHint
		}
	}
	return "name the files"
}
