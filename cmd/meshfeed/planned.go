package main

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// plannedFlags describe a layout in place of a document.
type plannedFlags struct {
	axes      string
	processes int
	batch     int
}

func (p *plannedFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.axes, "axes", "", "plan a layout of these axes, such as data=4,model=2, in place of a document")
	f.IntVar(&p.processes, "processes", 1, "with --axes: the processes of the mesh, which have equally many devices")
	f.IntVar(&p.batch, "batch", 0, "with --axes: rows of the global batch, the B of a shape")
}

// check rejects flags that need --axes.
func (p *plannedFlags) check(cmd *cobra.Command) error {
	for _, name := range []string{"processes", "batch"} {
		if p.axes == "" && cmd.Flags().Changed(name) {
			return usage(cmd, "--"+name+" goes with --axes only")
		}
	}
	return nil
}

// layout makes the layout of the flags. An array is described as NAME=SHAPE:DTYPE[:SPEC].
// Without a spec, the first axis splits the batch, and an array without B is replicated.
func (p *plannedFlags) layout(cmd *cobra.Command, arrays []string) (*layout.Layout, error) {
	axes, err := parseAxes(cmd, p.axes)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	text.WriteString(`{"meshfeed":1,"mesh":{"axes":[`)
	for i, axis := range axes {
		write(&text, i, []any{axis.Name, axis.Size})
	}
	text.WriteString(`],"processes":` + strconv.Itoa(p.processes) + `},"arrays":{`)
	for i, array := range arrays {
		name, rest, _ := strings.Cut(array, "=")
		name = strings.TrimSpace(name)
		parts := entries(rest, ":")
		if name == "" || len(parts) < 2 || len(parts) > 3 {
			return nil, usage(cmd, "--array is "+strconv.Quote(array)+", but with --axes it describes an array, such as x=B,128:float32 or x=B,128:float32:data,-")
		}
		var spec sharding.PartitionSpec
		switch shape := shapeOf(parts[0]); {
		case len(parts) == 3:
			spec = parseSpec(parts[2])
		case len(shape) > 0 && shape[0] == "B":
			spec = sharding.P(axes[0].Name)
		}
		write(&text, i, name)
		text.WriteByte(':')
		write(&text, 0, map[string]any{"shape": shapeOf(parts[0]), "dtype": parts[1], "spec": append([][]string{}, spec...)})
	}
	text.WriteByte('}')
	if p.batch != 0 {
		text.WriteString(`,"batch":{"size":` + strconv.Itoa(p.batch) + `}`)
	}
	text.WriteByte('}')
	d, err := document.Parse(text.Bytes())
	if err != nil {
		return nil, byCommand(cmd, err)
	}
	return layout.Draft(d)
}

// shapeOf returns the entries of a shape such as B,128: numbers, and names of batch
// dimensions. An empty text is the shape of a scalar.
func shapeOf(text string) []any {
	shape := []any{}
	if text == "" {
		return shape
	}
	for _, entry := range entries(text, ",") {
		if n, err := strconv.Atoi(entry); err == nil {
			shape = append(shape, n)
		} else {
			shape = append(shape, entry)
		}
	}
	return shape
}

// write writes a value as JSON, with a comma before it unless it is the first.
func write(text *bytes.Buffer, i int, value any) {
	if i > 0 {
		text.WriteByte(',')
	}
	encoded, _ := json.Marshal(value) // text, numbers and lists of them have no error
	text.Write(encoded)
}
