package convert

import (
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/arrowio/internal/manifest"
	"github.com/meshfeed/meshfeed/core/status"
)

// begin makes the folder and writes the manifest, or compares it with the one that is there.
// If several processes begin at once, one of them writes it.
func begin(folder local.Folder, m *manifest.Manifest) error {
	if folder.Has(manifest.Name) {
		return compare(folder, m)
	}
	names, err := folder.Names()
	if err != nil {
		return err
	}
	foreign := slices.DeleteFunc(names, func(name string) bool { return local.IsScratch(name, manifest.Name) })
	if len(foreign) > 0 && !folder.Has(manifest.Name) {
		return status.Errorf(status.InvalidArgument, "convert", "%s: the output folder is not empty: it holds %s", folder.Dir, foreign[0]).
			WithHint("name a new folder").With("path", folder.Dir)
	}
	if err := folder.Make(); err != nil {
		return err
	}
	text, err := m.Encode()
	if err != nil {
		return err
	}
	s, err := folder.Create(manifest.Name)
	if err != nil {
		return err
	}
	if _, err := s.Write(text); err != nil {
		s.Discard()
		return err
	}
	first, err := s.CommitFirst()
	if first || err != nil {
		return err
	}
	return compare(folder, m)
}

// compare returns an error unless the manifest in the folder describes the same conversion.
func compare(folder local.Folder, m *manifest.Manifest) error {
	path := folder.Path(manifest.Name)
	text, err := folder.Read(manifest.Name)
	if err != nil {
		return err
	}
	there, err := manifest.Parse(text, path)
	if err != nil {
		return err
	}
	for _, c := range []struct{ what, there, here string }{
		{"another input", origin(there), origin(m)},
		{"other columns", described(there), described(m)},
		{"other rows per file", rowsPerFile(there), rowsPerFile(m)},
		{"other files", fmt.Sprint(there.Files), fmt.Sprint(m.Files)},
	} {
		if c.what == "another input" && c.there != c.here && slices.Equal(there.Arguments, m.Arguments) {
			return status.Errorf(status.Incompatible, "convert", "%s: the input or the function of its map has changed since this conversion began: %s then, %s now", folder.Dir, c.there, c.here).
				WithHint("convert it into a new folder").With("path", folder.Dir)
		}
		if c.there != c.here {
			return status.Errorf(status.Incompatible, "convert", "%s: the folder holds a conversion with %s: %s there, %s here", folder.Dir, c.what, c.there, c.here).
				WithHint("name a new folder, or continue with %s", there.Command(folder.Dir)).With("path", folder.Dir)
		}
	}
	return nil
}

func origin(m *manifest.Manifest) string {
	return fmt.Sprintf("%d records with fingerprint %s", m.Records, m.Fingerprint)
}

func described(m *manifest.Manifest) string {
	text := ""
	for i, c := range m.Columns {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s %s%v", c.Name, c.Type, c.Shape)
	}
	return text
}

func rowsPerFile(m *manifest.Manifest) string {
	if m.RowsPerFile == 0 {
		return "not given"
	}
	return fmt.Sprint(m.RowsPerFile)
}
