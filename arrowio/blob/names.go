package blob

import "strings"

// Slashes is the syntax of names with parts that are separated by slashes, with or without a scheme:
// "train/a.parquet" and "s3://bucket/train/a.parquet". It never changes a part, so that names of
// objects with two slashes in a row stay as they are.
type Slashes struct{}

// Join implements Names.
func (Slashes) Join(dir, below string) string {
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
	scheme, rest := cutScheme(name)
	rest = strings.TrimRight(rest, "/")
	at := strings.LastIndexByte(rest, '/')
	switch {
	case rest == "":
		return name, name
	case at > 0:
		return scheme + rest[:at], rest[at+1:]
	case at == 0:
		return scheme + "/", rest[1:]
	case scheme != "":
		return scheme, rest
	}
	return ".", rest
}

// cutScheme divides a name after its scheme, such as "s3://", which may be empty.
func cutScheme(name string) (scheme, rest string) {
	if i := strings.Index(name, "://"); i >= 0 {
		return name[:i+3], name[i+3:]
	}
	return "", name
}

// Full implements Names.
func (Slashes) Full(name string) string { return name }
