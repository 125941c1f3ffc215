package blob

import "strings"

// Slashes is the syntax of names with parts that are separated by slashes, with or without a scheme:
// "train/a.parquet" and "s3://bucket/train/a.parquet". A part may be empty, and Join restores what
// Split divides.
//
// "train/" is the directory "train". So a directory with an empty last part has one more slash: the
// directory of "k//x" is "k//", and its own directory is "k".
type Slashes struct{}

// Join implements Names.
func (Slashes) Join(dir, below string) string {
	if below == "" {
		below = "/" // an empty part is a directory
	}
	switch {
	case dir == "" || dir == ".":
		return below
	case strings.HasSuffix(dir, "/"):
		return dir + below
	}
	return dir + "/" + below
}

// Split implements Names. The outermost directory of "s3://bucket/a.parquet" is "s3://".
func (Slashes) Split(name string) (dir, base string) {
	root, rest := cutRoot(name)
	if rest == "" {
		return name, name
	}
	rest = strings.TrimSuffix(rest, "/")
	switch at := strings.LastIndexByte(rest, '/'); {
	case at >= 0:
		return root + dirName(rest[:at]), rest[at+1:]
	case root != "":
		return root, rest
	}
	return ".", rest
}

// dirName returns the name of a directory with these parts.
func dirName(parts string) string {
	if parts == "" || strings.HasSuffix(parts, "/") {
		return parts + "/"
	}
	return parts
}

// cutRoot divides a name after its outermost directory: a scheme, such as "s3://", or "/". The root
// of other names is empty.
func cutRoot(name string) (root, rest string) {
	end := strings.Index(name, "://") + len("://")
	if end < len("://") {
		end = len(name) - len(strings.TrimPrefix(name, "/"))
	}
	return name[:end], name[end:]
}

// Full implements Names.
func (Slashes) Full(name string) string { return name }
