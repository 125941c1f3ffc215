// Package manifest describes a directory of converted files. The process that begins a
// conversion writes the [Manifest] before any file, so a directory that lacks files is
// known to be unfinished.
package manifest

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
)

const (
	// Name is the name of the file that holds a manifest.
	Name = "meshfeed-manifest.json"

	// Version is the version of the division into files and batches, and of the manifest.
	Version = 1
)

// Manifest lists the files of a conversion, and what they are made of.
type Manifest struct {
	Version     int      `json:"meshfeed_manifest"`
	Arguments   []string `json:"arguments"`   // arguments of the command, without the part
	Fingerprint string   `json:"fingerprint"` // fingerprint of the input
	Records     int64    `json:"records"`
	RowsPerFile int64    `json:"rows_per_file,omitempty"` // 0 if it was not given
	Columns     []Column `json:"columns"`
	Files       []File   `json:"files"`
}

// Column is a field of the converted files.
type Column struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Shape []int  `json:"shape"`
}

// File is one of the files, in the order of the records.
type File struct {
	Name    string `json:"name"`
	Records int64  `json:"records"`
}

// Encode returns the text of a manifest.
func (m *Manifest) Encode() ([]byte, error) {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err := e.Encode(m)
	return []byte(text.String()), err
}

// Parse reads the text of a manifest. Path is the name for errors.
func Parse(text []byte, path string) (*Manifest, error) {
	var m Manifest
	err := json.Unmarshal(text, &m)
	if err == nil && m.Version != Version {
		return nil, status.Errorf(status.Unsupported, "arrowio", "%s: the manifest has version %d, and only %d is read", path, m.Version, Version).
			WithHint("read it with the meshfeed that wrote it, or convert the data again").With("path", path)
	}
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return nil, status.Errorf(status.DataLoss, "arrowio", "%s: %w", path, err).
			WithHint("copy the directory again, or convert the data again").With("path", path)
	}
	return &m, nil
}

func (m *Manifest) check() error {
	seen, left := make(map[string]bool, len(m.Files)), m.Records
	for _, f := range m.Files {
		if strings.Contains(f.Name, "/") || !fs.ValidPath(f.Name) || f.Name == "." || seen[f.Name] {
			return fmt.Errorf("%.100q is not the name of a file, or is listed twice", f.Name)
		}
		if f.Records < 0 || f.Records > left {
			return fmt.Errorf("%s has %d records of %d", f.Name, f.Records, m.Records)
		}
		seen[f.Name] = true
		left -= f.Records
	}
	if left != 0 || len(m.Files) == 0 {
		return fmt.Errorf("%d of %d records are in the files that it lists", m.Records-left, m.Records)
	}
	return nil
}

// Missing returns the names of the files that are not among some names.
func (m *Manifest) Missing(names []string) (missing []string) {
	there := make(map[string]bool, len(names))
	for _, name := range names {
		there[name] = true
	}
	for _, f := range m.Files {
		if !there[f.Name] {
			missing = append(missing, f.Name)
		}
	}
	return missing
}

// Command returns the command line that continues the conversion to a directory.
func (m *Manifest) Command(dir string) string {
	words := slices.Concat([]string{"meshfeed", "convert"}, m.Arguments, []string{dir})
	for i, w := range words {
		words[i] = Quote(w)
	}
	return strings.Join(words, " ")
}

// Quote returns a word as a shell reads it.
func Quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./=,:@%+", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Unfinished returns the error for a directory that lacks files.
func (m *Manifest) Unfinished(dir string, missing []string) error {
	some := slices.Clone(missing[:min(3, len(missing))])
	if more := len(missing) - len(some); more > 0 {
		some = append(some, fmt.Sprintf("%d more", more))
	}
	e := status.Errorf(status.NotFound, "arrowio", "%s: the conversion is not finished, and lacks %d of %d files: %s", dir, len(missing), len(m.Files), strings.Join(some, ", "))
	e.Err = fs.ErrNotExist
	return e.WithHint("if all its processes have ended, this converts the rest: %s", m.Command(dir)).With("path", dir)
}
