package files

import (
	"path"
	"regexp"
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

// compressed are the suffixes of compressed lines, after one of lines or .json, and of TFRecord.
var compressed = []string{".gz", ".zst"}

// recordsSuffix matches how the names of TFRecord's files end. TFDS writes the numbers of shards behind the suffix.
var recordsSuffix = regexp.MustCompile(`\.tfrecords?(-[0-9]{5,}-of-[0-9]{5,})?(\.gz|\.zst)?$`)

// suffixOf returns the suffix of a name in lower case, such as .parquet, .jsonl.gz or
// .tfrecord-00000-of-00002.
func suffixOf(name string) string {
	name = strings.ToLower(name)
	if strings.Contains(name, ".tfrecord") { // the names of a directory may be many
		if m := recordsSuffix.FindString(name); m != "" {
			return m
		}
	}
	ext := path.Ext(name)
	if slices.Contains(compressed, ext) {
		return path.Ext(name[:len(name)-len(ext)]) + ext
	}
	return ext
}

// IsLines reports whether a file has JSON Lines by its name.
func IsLines(name string) bool {
	suffix := suffixOf(name)
	if ext := path.Ext(suffix); ext != suffix {
		return slices.Contains(append(lines, ".json"), strings.TrimSuffix(suffix, ext))
	}
	return slices.Contains(lines, suffix)
}

// IsRecords reports whether a file is one of TFRecord by its name.
func IsRecords(name string) bool { return strings.HasPrefix(suffixOf(name), ".tfrecord") }

// Compression returns how a file of JSON Lines or TFRecord is compressed by its name: a suffix, or "".
func Compression(name string) string {
	ext := path.Ext(suffixOf(name))
	if !slices.Contains(compressed, ext) || !IsLines(name) && !IsRecords(name) {
		return ""
	}
	return ext
}

// Suffixes lists the suffixes, as errors do.
var Suffixes = strings.Join(suffixes, ", ")

// isArrow reports whether a file has the suffix of an Arrow file, and is not hidden.
func isArrow(name string) bool { return !hidden(name) && hasSuffix(name) }

// isLines reports whether a file has JSON Lines by its name, and is not hidden.
func isLines(name string) bool { return IsLines(name) && !hidden(name) }

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
