package arrowio

import (
	"path/filepath"
	"slices"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/manifest"
	"github.com/meshfeed/meshfeed/core/status"
)

// converted returns the files that a manifest of meshfeed convert lists, in their order. The
// error is NotFound unless all of them exist.
func (f finder) converted(dir string, entries []blob.Entry) ([]choice, error) {
	if !slices.Contains(entries, blob.Entry{Name: manifest.Name}) {
		return nil, nil
	}
	path := filepath.Join(dir, manifest.Name)
	text, err := f.readText(path)
	if err != nil {
		return nil, err
	}
	m, err := manifest.Parse([]byte(text), path)
	if err != nil {
		return nil, err
	}
	if f.split != "" {
		return nil, f.noSplit(dir, nil)
	}
	var names []string
	for _, e := range entries {
		if !e.Dir {
			names = append(names, e.Name)
		}
	}
	if missing := m.Missing(names); missing != nil {
		return nil, m.Unfinished(dir, missing)
	}
	list := make([]choice, len(m.Files))
	for i := range list {
		list[i] = choice{path: filepath.Join(dir, m.Files[i].Name), listed: &m.Files[i]}
	}
	return list, nil
}

// count returns an error unless the file has as many records as a manifest says.
func (f *file) count() error {
	if f.listed == nil || f.records == f.listed.Records {
		return nil
	}
	return status.Errorf(status.DataLoss, "arrowio", "%s: the file has %d records, but %s says %d", f.path, f.records, manifest.Name, f.listed.Records).
		WithHint("copy the directory again, or convert the data again").With("path", f.path)
}
