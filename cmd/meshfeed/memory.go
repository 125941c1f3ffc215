package main

import (
	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/core/plan/memory"
	"github.com/meshfeed/meshfeed/core/plan/memory/document"
)

func newMemory() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "memory MEMORY.json",
		Short: "list what the arrays of a model take on a device",
		Long: `Computes the memory of the arrays of a model on each device: array by array, with the axes along which
devices hold copies, and the sums with gradients and the states of the optimizer. Names arrays that are
probably replicated by mistake. Needs neither devices nor data.

MEMORY.json is a document such as mf.memory(...).to_json() of Python writes, or - for standard input:

  {"meshfeed":1, "mesh":{"axes":[["data",4]]}, "optimizer":"adamw",
   "arrays":{"w":{"shape":[512,512], "dtype":"bfloat16", "spec":["data"]}}}

The exit status is 0 if there is no error, 1 if a spec does not fit its array or the arrays do not fit a
device, and 2 if the document cannot be read.`,
		Example: "  meshfeed memory model.json",
		Args:    need(1, 1, "one memory document"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := readText(cmd, args[0], memoryKind)
			if err != nil {
				return err
			}
			u, err := document.Measure(text)
			if err != nil {
				return named(args[0], err)
			}
			return writeMemory(cmd, u, asJSON)
		},
		ValidArgsFunction: layoutFiles,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}

func writeMemory(cmd *cobra.Command, u *memory.Usage, asJSON bool) error {
	var text []byte
	if asJSON {
		text = endLine(document.Report(u))
	} else {
		text = []byte(document.Text(u))
	}
	_, err := cmd.OutOrStdout().Write(text)
	if err == nil && u.Err() != nil {
		return errProblem
	}
	return err
}
