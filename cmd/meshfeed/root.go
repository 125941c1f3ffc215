package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed"
	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/wording"
)

const about = `Inspects Arrow data and plans how it reaches a device mesh.

A layout is a JSON document: a mesh, arrays with their partition specs, a batch size.
Checking and drawing a layout, and planning how to split a model, need neither devices nor data.`

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
		return usage(cmd, flagProblem(cmd, err))
	})
	root.AddCommand(newInspect(), newCache(), newPlan(), newCheck(), newAdvise(), newMemory(), newVerify(), newConvert(), newBench(), newDevices(), newPage(), newServe(), newSchema(), newSelfcheck(), newDoctor(), newExplain(), newDraw())
	root.SetHelpCommand(newHelp())
	trimLists(root)
	return root
}

// flagProblem returns the text of an error of a flag, without the names of Go's functions.
func flagProblem(cmd *cobra.Command, err error) string {
	number, ok := errors.AsType[*strconv.NumError](err)
	if !ok {
		return err.Error()
	}
	expected := "expected an integer"
	_, name, _ := strings.Cut(err.Error(), ` for "--`)
	name, _, _ = strings.Cut(name, `"`)
	flag := cmd.Flag(name)
	switch {
	case flag != nil && flag.Value.Type() == "intSlice":
		expected = "expected integers with commas, such as 128,4096"
	case number.Func == "ParseBool":
		expected = "expected true or false"
	case number.Func == "ParseFloat":
		expected = "expected a number"
	case errors.Is(err, strconv.ErrRange):
		expected = "the number is out of range"
	}
	return strings.TrimSuffix(err.Error(), number.Error()) + expected
}

// newHelp builds the verb help, which rejects unknown verbs.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [verb]",
		Short: "explain a verb",
		RunE: func(cmd *cobra.Command, args []string) error {
			verb, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			if err := knownVerb(cmd.Root(), rest); err != nil {
				return err
			}
			return verb.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) (verbs []string, _ cobra.ShellCompDirective) {
			for _, verb := range cmd.Root().Commands() {
				if verb.IsAvailableCommand() {
					verbs = append(verbs, verb.Name()+"\t"+verb.Short)
				}
			}
			return verbs, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// knownVerb rejects an unknown verb and suggests similar ones.
func knownVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	e := status.Errorf(status.InvalidArgument, "", "%q is not a verb of meshfeed", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return e.WithHint("did you mean %s?", strings.Join(near, " or "))
	}
	return e.WithHint("meshfeed --help lists them")
}

// suggested returns the hint of the error about an unknown name: the known name that it
// probably means, and the command that lists all.
func suggested[T ~string](name string, known []T, command string) string {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	if near := wording.Nearest(name, names); near != "" {
		return "did you mean " + near + "? " + command + " prints the names"
	}
	return command + " prints the names"
}

// need returns a check of the number of arguments. A negative most means no
// bound. Empty arguments are rejected: a script passes one when a variable is
// unset.
func need(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || most >= 0 && len(args) > most {
			return usage(cmd, "expected "+what+", got "+counted(len(args), "argument"))
		}
		if i := slices.Index(args, ""); i >= 0 {
			return usage(cmd, fmt.Sprintf("expected %s, but argument %d is empty", what, i+1))
		}
		return nil
	}
}

// exclusive allows at most one of the named flags.
func exclusive(cmd *cobra.Command, names ...string) error {
	set := slices.DeleteFunc(names, func(name string) bool { return !cmd.Flags().Changed(name) })
	if len(set) < 2 {
		return nil
	}
	return usage(cmd, fmt.Sprintf("--%s and --%s exclude each other", set[0], set[1]))
}

func usage(cmd *cobra.Command, problem string) error {
	return status.New(status.InvalidArgument, cmd.Name(), problem).WithHint("usage: %s", cmd.UseLine())
}
