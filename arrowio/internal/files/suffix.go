package files

import (
	"path"
	"slices"
	"strings"
)

// suffixes are the suffixes of Arrow and Parquet files in a directory.
var suffixes = []string{".arrow", ".arrows", ".ipc", ".feather", ".ftr", ".parquet", ".parq", ".pq"}

// Index is the suffix of an index of Megatron, and npy of NumPy's files. They may lie beside files of
// Arrow, so a directory stands for them only if it has no other data.
const (
	Index = ".idx"
	npy   = ".npy"
)

// Suffixes lists the suffixes, as errors do.
var Suffixes = strings.Join(suffixes, ", ")

// isArrow reports whether a file has the suffix of an Arrow file, and is not hidden.
func isArrow(name string) bool { return !hidden(name) && hasSuffix(name) }

func hasSuffix(name string) bool {
	return slices.Contains(suffixes, strings.ToLower(path.Ext(name)))
}

// anyCase returns a part of a glob that matches the suffix of an Arrow file in any case.
func anyCase(part string) string {
	if !hasSuffix(part) {
		return part
	}
	ext := path.Ext(part)
	out := strings.TrimSuffix(part, ext) + "."
	for _, r := range strings.ToLower(ext[1:]) {
		out += "[" + string(r) + strings.ToUpper(string(r)) + "]"
	}
	return out
}

// hidden reports whether a name begins with . or _, as names of files and directories do which
// programs that write data keep for themselves, such as _SUCCESS and _temporary.
func hidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}
