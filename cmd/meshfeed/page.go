package main

import (
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/wasm/page"
)

func newPage() *cobra.Command {
	return &cobra.Command{
		Use:   "page [LAYOUT.json]",
		Short: "write the browser page that checks and draws layouts",
		Long: `Writes the layout page: one HTML file that works without a network and sends nothing. It begins
with the layout of LAYOUT.json, if one is given, problems included; - is standard input.`,
		Example: "  meshfeed page layout.json > layout.html",
		Args:    need(0, 1, "at most one layout document"),
		RunE: func(cmd *cobra.Command, args []string) error {
			html, err := pageOf(cmd, args)
			if err != nil {
				return err
			}
			return writePage(cmd, html)
		},
	}
}

// pageOf gives the page that begins with the layout the arguments name, if they do.
func pageOf(cmd *cobra.Command, args []string) ([]byte, error) {
	if len(args) == 0 {
		return pageWith(cmd, nil)
	}
	l, err := readLayout(cmd, args[0])
	if err != nil {
		return nil, err
	}
	return pageWith(cmd, l)
}

// pageWith gives the page that begins with a layout, or with an example for nil.
func pageWith(cmd *cobra.Command, l *layout.Layout) ([]byte, error) {
	var document []byte
	if l != nil {
		document = l.Document().Canonical()
	}
	html, err := page.HTML(document)
	return html, byCommand(cmd, err)
}

// byCommand gives an error the name of the command that met it.
func byCommand(cmd *cobra.Command, err error) error {
	var e *status.Error
	if !errors.As(err, &e) {
		return err
	}
	c := *e
	c.Op = cmd.Name()
	return &c
}

// writePage prints the page, but not where it would flood a terminal.
func writePage(cmd *cobra.Command, html []byte) error {
	out := cmd.OutOrStdout()
	if isTerminal(out) {
		return status.New(status.InvalidArgument, cmd.Name(), "the page is too long for a terminal, "+sized(int64(len(html)))).
			WithHint("write it to a file, with > layout.html behind the command; or look at it with meshfeed serve")
	}
	_, err := out.Write(html)
	return err
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
