package files

import (
	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/manifest"
)

// converted returns the files that a manifest of meshfeed convert lists, in their order. The
// error is NotFound unless all of them exist.
func (f finder) converted(dir string, entries []blob.Entry) ([]File, error) {
	if !isFile(entries, manifest.Name) {
		return nil, nil
	}
	path := f.join(dir, manifest.Name)
	text, err := f.readText(path)
	if err != nil {
		return nil, err
	}
	m, err := manifest.Parse([]byte(text), path)
	if err != nil {
		return nil, err
	}
	if f.Split != "" {
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
	list := make([]File, len(m.Files))
	for i := range list {
		list[i] = File{Path: f.join(dir, m.Files[i].Name), listed: &m.Files[i]}
	}
	return list, nil
}
