package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/layout/picture"
	"github.com/meshfeed/meshfeed/core/status"
)

func newPlan() *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan LAYOUT.json",
		Short: "draw which device holds and which process reads what",
		Long: `Draws a layout: which device holds which part of each array, which process reads which rows,
and what it costs. Needs neither devices nor data. LAYOUT.json may be - for standard input.

A layout with problems is drawn too, with its problems below it. The exit status is 0 if the document
can be drawn and 2 if it cannot be read. Problems do not change it: use "meshfeed check" for that.`,
		Example: "  meshfeed plan layout.json\n  meshfeed plan --json layout.json | jq .totals\n  meshfeed plan --svg layout.json > layout.svg",
		Args:    need(1, 1, "one layout document"),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },

		ValidArgsFunction: layoutFiles,
	}
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	f.BoolVar(&o.svg, "svg", false, "print the picture as SVG")
	f.BoolVar(&o.html, "html", false, "print the browser page with the layout in it")
	f.BoolVar(&o.tables, "tables", false, "with --json: list the devices of meshes of any size")
	f.StringVar(&o.array, "array", "", "draw one array only")
	f.IntSliceVar(&o.dims, "dims", nil, "the two dimensions to draw, such as 0,2; default: the first two that are partitioned")
	orderFlag(cmd, &o.order, "; in place of the document's")
	f.IntVar(&o.width, "width", 0, "columns of the text; default: the terminal's, or 80")
	return cmd
}

type planOptions struct {
	json, svg, html, tables bool
	array, order            string
	dims                    []int
	width                   int
}

// run draws the layout that a file contains.
func (o planOptions) run(cmd *cobra.Command, path string) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	l, err := readLayout(cmd, path)
	if err != nil {
		return err
	}
	if o.order != "" {
		if l, err = inOrder(l, o.order); err != nil {
			return byCommand(cmd, err)
		}
	}
	if o.html {
		html, err := pageWith(cmd, l)
		if err != nil {
			return err
		}
		return writePage(cmd, html)
	}
	if err := o.drawing().Check(l); err != nil {
		return byCommand(cmd, err)
	}
	_, err = cmd.OutOrStdout().Write(o.render(l))
	return err
}

// inOrder returns a layout whose dataset has another order.
func inOrder(l *layout.Layout, order string) (*layout.Layout, error) {
	d := l.Document()
	if d.Dataset == nil {
		return nil, status.New(status.InvalidArgument, "", "--order needs the number of records, but the document has no dataset").
			WithHint(`add "dataset": {"records": 1000000}`)
	}
	d.Dataset.Order = order
	return layout.Draft(d)
}

// check rejects several output formats, and flags that have no effect on the chosen
// one.
func (o planOptions) check(cmd *cobra.Command) error {
	for _, names := range [][]string{
		{"json", "svg", "html"},
		{"json", "array"}, {"json", "dims"}, {"json", "width"},
		{"html", "array"}, {"html", "dims"}, {"html", "width"},
		{"svg", "width"},
	} {
		if err := exclusive(cmd, names...); err != nil {
			return err
		}
	}
	if o.tables && !o.json {
		return usage(cmd, "--tables goes with --json only")
	}
	if o.width < 0 {
		return usage(cmd, fmt.Sprintf("--width is %d, but must be at least 0", o.width))
	}
	return nil
}

func (o planOptions) render(l *layout.Layout) []byte {
	switch {
	case o.json:
		return endLine(document.Report(l, document.ReportOptions{Tables: o.tables}))
	case o.svg:
		return endLine([]byte(picture.SVG(l, o.drawing())))
	}
	return endLine([]byte(picture.Text(l, o.drawing())))
}

// columns returns the width of a text drawing.
func (o planOptions) columns() int {
	if o.width > 0 {
		return o.width
	}
	if columns, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && columns > 0 {
		return columns
	}
	return 80
}

// endLine makes a text end with exactly one newline.
func endLine(text []byte) []byte { return append(bytes.TrimRight(text, "\n"), '\n') }

func (o planOptions) drawing() picture.Options {
	return picture.Options{Array: o.array, Dims: o.dims, Width: o.columns()}
}
