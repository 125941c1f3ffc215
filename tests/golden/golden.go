// Package golden compares texts with files. The flag -rewrite of package datadriven
// writes the files instead.
package golden

import (
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
	if flag.Lookup("rewrite").Value.String() == "true" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs: write it with -rewrite, and read the changes; got\n%s", path, got)
	}
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
