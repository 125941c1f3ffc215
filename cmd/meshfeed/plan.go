package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

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
		Use:   "plan {LAYOUT.json | --axes AXIS=SIZE,…}",
		Short: "draw which device holds and which process reads what",
		Long: `Draws a layout: which device holds which part of each array, which process reads which rows,
and what it costs. Needs neither devices nor data. LAYOUT.json may be - for standard input.

With --axes, the flags describe the layout: --axes the mesh, --batch the rows of the global batch, and each
--array NAME=SHAPE:DTYPE[:SPEC] an array. In a shape, B is the batch. A spec has an entry for each dimension:
an axis, several with + between them, or - for none. Without a spec, the first axis splits the batch.

A layout with problems is drawn too, with its problems below it. The exit status is 0 if the document
can be drawn and 2 if it cannot be read. Problems do not change it: use "meshfeed check" for that.`,
		Example: "  meshfeed plan layout.json\n  meshfeed plan --json layout.json | jq .totals\n  meshfeed plan --svg layout.json > layout.svg\n  meshfeed plan --axes data=4,model=2 --batch 64 --array x=B,128:float32 --array w=128,512:bfloat16:-,model",
		Args:    o.arguments,
		RunE:    o.run,

		ValidArgsFunction: layoutFiles,
	}
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	f.BoolVar(&o.svg, "svg", false, "print the picture as SVG")
	f.BoolVar(&o.html, "html", false, "print the browser page with the layout in it")
	f.BoolVar(&o.tables, "tables", false, "with --json: list the devices of meshes of any size")
	f.StringArrayVar(&o.arrays, "array", nil, "draw one array only; with --axes: an array of the layout")
	f.IntSliceVar(&o.dims, "dims", nil, "the two dimensions to draw, such as 0,2; default: the first two that are partitioned")
	o.planned.add(cmd)
	orderFlag(cmd, &o.order, "; in place of the document's")
	f.IntVar(&o.width, "width", 0, "columns of the text; default: the terminal's, or 80")
	return cmd
}

type planOptions struct {
	json, svg, html, tables bool
	arrays                  []string
	order                   string
	planned                 plannedFlags
	dims                    []int
	width                   int
}

// arguments requires a document, or flags that describe one.
func (o *planOptions) arguments(cmd *cobra.Command, args []string) error {
	if o.planned.axes != "" {
		return need(0, 0, "no document beside --axes")(cmd, args)
	}
	return need(1, 1, "one layout document")(cmd, args)
}

// layout returns the layout of a file, or of the flags.
func (o *planOptions) layout(cmd *cobra.Command, args []string) (*layout.Layout, error) {
	if len(args) == 0 {
		arrays := o.arrays
		o.arrays = nil // draw all
		return o.planned.layout(cmd, arrays)
	}
	return readLayout(cmd, args[0])
}

// run draws a layout.
func (o *planOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	l, err := o.layout(cmd, args)
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

// inOrder returns a copy of the layout with another order of the dataset.
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
func (o *planOptions) check(cmd *cobra.Command) error {
	for _, names := range [][]string{
		{"json", "svg", "html"},
		{"json", "dims"}, {"json", "width"},
		{"html", "dims"}, {"html", "width"},
		{"svg", "width"},
	} {
		if err := exclusive(cmd, names...); err != nil {
			return err
		}
	}
	if o.planned.axes == "" {
		for _, format := range []string{"json", "html"} {
			if err := exclusive(cmd, format, "array"); err != nil {
				return err
			}
		}
		if len(o.arrays) > 1 {
			return usage(cmd, "--array selects one array of a document")
		}
	}
	if err := o.planned.check(cmd); err != nil {
		return err
	}
	if o.tables && !o.json {
		return usage(cmd, "--tables goes with --json only")
	}
	if o.width < 0 {
		return usage(cmd, fmt.Sprintf("--width is %d, but must be at least 0", o.width))
	}
	return nil
}

func (o *planOptions) render(l *layout.Layout) []byte {
	switch {
	case o.json:
		return endLine(document.Report(l, document.ReportOptions{Tables: o.tables}))
	case o.svg:
		return endLine([]byte(picture.SVG(l, o.drawing())))
	}
	return endLine([]byte(picture.Text(l, o.drawing())))
}

// columns returns the width of a text drawing.
func (o *planOptions) columns() int {
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

func (o *planOptions) drawing() picture.Options {
	return picture.Options{Array: strings.Join(o.arrays, ""), Dims: o.dims, Width: o.columns()}
}
