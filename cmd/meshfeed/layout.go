package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/status"
)

// readLayout reads a layout document from a file, or from standard input for "-".
func readLayout(cmd *cobra.Command, path string) (*layout.Layout, error) {
	text, err := readText(cmd, path, layoutKind)
	if err != nil {
		return nil, err
	}
	return parseLayout(path, text)
}

// parseLayout plans the document that a file contains.
func parseLayout(path string, text []byte) (*layout.Layout, error) {
	d, err := document.Parse(text)
	if err != nil {
		return nil, named(path, err)
	}
	planned, err := layout.Draft(d)
	return planned, named(path, err)
}

// kind is a kind of document, for error messages.
type kind struct {
	name string
	less string // how to make a document shorter
}

var (
	layoutKind   = kind{"layout", "a mesh with devices in order needs no list of them"}
	diagramKind  = kind{"diagram", "draw a part of it"}
	memoryKind   = kind{"memory", "list arrays of the same shape as one, with a dimension more"}
	strategyKind = kind{"strategy", "describe a model of that many arrays by its sizes, or by its number of parameters"}
)

// readText reads a document from a file, or from standard input for "-". All kinds of
// documents have the same limit.
func readText(cmd *cobra.Command, path string, k kind) ([]byte, error) {
	in := cmd.InOrStdin()
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, openError(path, err, k)
		}
		defer file.Close()
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > document.MaxBytes {
			return nil, status.Errorf(status.InvalidArgument, "", "%s has %s bytes, but a %s document may have %s", path, grouped(info.Size()), k.name, grouped(int64(document.MaxBytes))).WithHint("%s", k.less)
		}
		in = file
	}
	// The limit is one byte beyond MaxBytes, so that Parse rejects a longer document.
	text, err := io.ReadAll(io.LimitReader(in, document.MaxBytes+1))
	if err != nil {
		return nil, openError(path, err, k)
	}
	return text, nil
}

func openError(path string, err error, k kind) error {
	hint := "give the path of a " + k.name + " document, or - for standard input"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return status.Errorf(status.NotFound, "", "%s does not exist", path).WithHint("%s", hint)
	case errors.Is(err, syscall.EISDIR):
		return status.Errorf(status.IO, "", "%s is a directory", path).WithHint("%s", hint)
	}
	return status.Errorf(status.IO, "", "%w", err)
}

// named prefixes the message of an error with the name of a file.
func named(path string, err error) error {
	e, ok := errors.AsType[*status.Error](err)
	if !ok {
		return err
	}
	c := *e
	c.Op, c.Msg, c.Err = "", path+": "+e.Msg, err
	return &c
}

// layoutFiles tells shell completion which files are layout documents.
func layoutFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"json"}, cobra.ShellCompDirectiveFilterFileExt
}
