package arrowio

import (
	"github.com/meshfeed/meshfeed/core/status"
)

// Options say how files are opened. The zero value is good for most.
type Options struct {
	// IO says how rows come from the files: "map" gathers from a mapping,
	// "read" reads them, "auto" (or "") maps local files that fit in free
	// memory and reads the others.
	IO string

	// Shapes gives the row shape of fields that are stored as lists of
	// variable length. Without it, the shape comes from the metadata that
	// Hugging Face's datasets library writes, or from the first record.
	Shapes map[string][]int
}

// Open opens Arrow IPC files or streams as one dataset: paths, globs and
// directories. It is NotFound if there is nothing, DataLoss for damage,
// Unsupported for other formats, and Incompatible if schemas disagree.
func Open(pattern string, more ...string) (*Dataset, error) {
	return OpenFiles(append([]string{pattern}, more...), Options{})
}

// OpenFiles opens Arrow IPC files or streams as one dataset: see [Open].
func OpenFiles(patterns []string, o Options) (*Dataset, error) {
	switch o.IO {
	case "", "auto", "map", "read":
	default:
		return nil, status.Errorf(status.InvalidArgument, "arrowio", "io=%q is not a way to read files", o.IO).
			WithHint(`use "auto", "map" or "read"`)
	}
	paths, err := expand(patterns)
	if err != nil {
		return nil, err
	}
	files := make([]*file, 0, len(paths))
	for _, p := range paths {
		f, err := openFile(p, o)
		if err != nil {
			closeFiles(files)
			return nil, err
		}
		files = append(files, f)
	}
	d, err := newDataset(files, o)
	if err != nil {
		closeFiles(files)
		return nil, err
	}
	return d, nil
}

func closeFiles(files []*file) error {
	var first error
	for _, f := range files {
		if err := f.close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
