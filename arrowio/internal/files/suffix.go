package files

import (
	"path"
	"slices"
	"strings"
)

// suffixes are the suffixes of Arrow and Parquet files in a directory.
var suffixes = []string{".arrow", ".arrows", ".ipc", ".feather", ".ftr", ".parquet", ".parq", ".pq"}

// Index is the suffix of an index of Megatron, Archive of WebDataset's archives, and npy of NumPy's files.
// They may lie beside files of Arrow, so a directory stands for them only if it has no other data.
const (
	Index   = ".idx"
	Archive = ".tar"
	npy     = ".npy"
)

// lines are the suffixes of JSON Lines. They may lie beside other data, as descriptions of it, so a
// directory stands for them only if it has no data of another format.
var lines = []string{".jsonl", ".ndjson"}

// compressed are the suffixes of compressed lines, after one of lines or .json.
var compressed = []string{".gz", ".zst"}

// suffixOf returns the suffix of a name in lower case, such as .parquet or .jsonl.gz.
func suffixOf(name string) string {
	ext := strings.ToLower(path.Ext(name))
	if slices.Contains(compressed, ext) {
		return strings.ToLower(path.Ext(name[:len(name)-len(ext)])) + ext
	}
	return ext
}

// Lines reports whether a file has JSON Lines by its name, and how they are compressed: a suffix, or "".
func Lines(name string) (found bool, compression string) {
	suffix := suffixOf(name)
	if ext := path.Ext(suffix); ext != suffix {
		return slices.Contains(append(lines, ".json"), strings.TrimSuffix(suffix, ext)), ext
	}
	return slices.Contains(lines, suffix), ""
}

// Suffixes lists the suffixes, as errors do.
var Suffixes = strings.Join(suffixes, ", ")

// isArrow reports whether a file has the suffix of an Arrow file, and is not hidden.
func isArrow(name string) bool { return !hidden(name) && hasSuffix(name) }

// isLines reports whether a file has JSON Lines by its name, and is not hidden.
func isLines(name string) bool {
	found, _ := Lines(name)
	return found && !hidden(name)
}

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
