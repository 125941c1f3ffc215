package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

var reference = flag.String("reference", "", "the folder for the pages of the command, for make site")

// TestReference writes a page for every verb, as `make site` does.
func TestReference(t *testing.T) {
	folder := *reference
	if folder == "" {
		folder = t.TempDir()
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	root := newRoot()
	root.DisableAutoGenTag = true
	if err := doc.GenMarkdownTree(root, folder); err != nil {
		t.Fatal(err)
	}
	for _, verb := range root.Commands() {
		if verb.IsAvailableCommand() {
			checkPage(t, folder, verb)
		}
	}
}

// checkPage checks that the page of a verb has its purpose and its flags.
func checkPage(t *testing.T, folder string, verb *cobra.Command) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(folder, "meshfeed_"+verb.Name()+".md"))
	if err != nil {
		t.Error(err)
		return
	}
	for _, expected := range []string{verb.Short, verb.NonInheritedFlags().FlagUsages()} {
		if !strings.Contains(string(page), expected) {
			t.Errorf("the page of %s lacks %q", verb.Name(), expected)
		}
	}
}
