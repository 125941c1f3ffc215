// Package golden compares texts with files. The flag -rewrite of package datadriven
// writes the files instead.
package golden

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	_ "github.com/cockroachdb/datadriven" // its flag -rewrite
)

// Compare compares a text with a file.
func Compare(t *testing.T, path, got string) {
	t.Helper()
	if want := expected(t, path, []byte(got)); got != string(want) {
		t.Errorf("%s differs: write it with -rewrite, and read the changes; got\n%s", path, got)
	}
}

// CompareJSON compares a compact JSON text with a file that has a member on each line, so
// that changes of different members do not conflict. Every byte counts.
func CompareJSON(t *testing.T, path string, got []byte) {
	t.Helper()
	var indented, want bytes.Buffer
	if err := json.Indent(&indented, got, "", " "); err != nil {
		t.Fatalf("%v in\n%s", err, got)
	}
	indented.WriteByte('\n')
	if err := json.Compact(&want, expected(t, path, indented.Bytes())); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s differs: write it with -rewrite, and read the changes; got\n%s", path, indented.Bytes())
	}
}

// expected returns the text of a file. With the flag -rewrite, it first replaces the text.
func expected(t *testing.T, path string, replacement []byte) []byte {
	t.Helper()
	if flag.Lookup("rewrite").Value.String() == "true" {
		if err := os.WriteFile(path, replacement, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Only fails if a folder has a file without an expected name, such as the golden file
// of a removed example.
func Only(t *testing.T, folder string, expected []string) {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !slices.Contains(expected, file.Name()) {
			t.Errorf("no example has the file %s", filepath.Join(folder, file.Name()))
		}
	}
}
