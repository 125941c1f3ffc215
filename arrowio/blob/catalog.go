package blob

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
)

// Catalog implements the search methods of an [Opener] over a list of blobs. Its directories are
// the parts of their names, as in object stores. A blob with a name that ends in a slash only marks
// that this directory exists: no method returns it. Each call goes through the whole list.
type Catalog struct {
	Slashes
	Blobs []Entry // with names that Open takes
}

// Stat implements Opener.
func (c Catalog) Stat(ctx context.Context, name string) (Entry, error) {
	if err := ctx.Err(); err != nil {
		return Entry{}, err
	}
	isDir := false
	for _, e := range c.Blobs {
		if e.Name == name && !isMarker(e) {
			return e, nil
		}
		_, inside := below(name, e.Name)
		isDir = isDir || inside
	}
	if !isDir {
		return Entry{}, missing(name)
	}
	return Entry{Name: name, Dir: true}, nil
}

// List implements Opener.
func (c Catalog) List(ctx context.Context, dir string) ([]Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var list []Entry
	exists := false
	for _, e := range c.Blobs {
		rest, inside := below(dir, e.Name)
		exists = exists || inside
		if rest == "" || !inside {
			continue
		}
		first, _, deeper := strings.Cut(rest, "/")
		if deeper {
			e = Entry{Dir: true}
		}
		e.Name = first
		list = append(list, e)
	}
	if !exists {
		return nil, missing(dir)
	}
	return once(list), nil
}

// Glob implements Opener.
func (c Catalog) Glob(ctx context.Context, pattern string) ([]Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, status.Errorf(status.InvalidArgument, "blob", "%q is not a glob: %w", pattern, err)
	}
	var list []Entry
	root, rest := cutRoot(pattern)
	parts := strings.Count(rest, "/") + 1
	for _, e := range c.Blobs {
		own, rest := cutRoot(e.Name)
		names := strings.SplitN(rest, "/", parts+1)
		if own != root || len(names) < parts || len(names) == parts && isMarker(e) {
			continue
		}
		name := strings.Join(names[:parts], "/")
		if len(names) > parts {
			e = Entry{Name: own + dirName(name), Dir: true}
		}
		if ok, _ := path.Match(pattern, own+name); ok {
			list = append(list, e)
		}
	}
	return once(list), nil
}

// once sorts entries by name, and leaves out the second of two equal ones.
func once(list []Entry) []Entry {
	slices.SortFunc(list, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return slices.Compact(list)
}

// isMarker reports whether a blob marks a directory.
func isMarker(e Entry) bool { return strings.HasSuffix(e.Name, "/") }

// below returns what follows a directory in a name, and nothing for its marker. inside is false if
// the name does not lie in the directory.
func below(dir, name string) (rest string, inside bool) {
	if dir == "." {
		root, _ := cutRoot(name)
		return name, root == ""
	}
	if !strings.HasSuffix(dir, "/") {
		dir += "/"
	}
	return strings.CutPrefix(name, dir)
}

func missing(name string) error {
	return status.Errorf(status.NotFound, "blob", "%s does not exist", name).With("path", name)
}
