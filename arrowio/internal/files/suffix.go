package files

import (
	"path/filepath"
	"slices"
	"strings"
)

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

// hidden reports whether a name begins with . or _, as names of files and directories do which
// programs that write data keep for themselves, such as _SUCCESS and _temporary.
func hidden(path string) bool {
	name := filepath.Base(path)
	return name[0] == '.' || name[0] == '_'
}
