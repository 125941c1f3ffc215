package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed"
	"github.com/meshfeed/meshfeed/core/status"
)

const about = `Looks into Arrow data and plans how it reaches a device mesh.

A layout is a JSON document: a mesh, arrays with their partition specs, a batch size. It is
checked and drawn without devices and without data.`

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "meshfeed",
		Short:         "feed Arrow data, already sharded, to device meshes",
		Long:          about,
		Version:       meshfeed.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,

		SuggestionsMinimumDistance: 2,
		Args:                       knownVerb,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("meshfeed {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage(cmd, err.Error())
	})
	root.AddCommand(newInspect(), newPlan(), newCheck(), newVerify(), newBench(), newDevices(), newPage(), newServe())
	return root
}

// knownVerb refuses words that are no verb, and says what stands for them.
func knownVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if args[0] == "convert" {
		return status.New(status.Unsupported, "", "convert is not part of meshfeed yet").
			WithHint("write Arrow IPC with pyarrow: python -c \"import pyarrow as pa, pyarrow.parquet as pq; t = pq.read_table('in.parquet'); pa.ipc.new_file('out.arrow', t.schema).write_table(t)\"")
	}
	e := status.Errorf(status.InvalidArgument, "", "%q is not a verb of meshfeed", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return e.WithHint("did you mean %s?", strings.Join(near, " or "))
	}
	return e.WithHint("meshfeed --help lists them")
}

// need checks the number of arguments. most is negative for no bound.
func need(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || most >= 0 && len(args) > most {
			return usage(cmd, "expected "+what+", got "+counted(len(args), "argument"))
		}
		return nil
	}
}

func usage(cmd *cobra.Command, problem string) error {
	return status.New(status.InvalidArgument, cmd.Name(), problem).WithHint("usage: %s", cmd.UseLine())
}
