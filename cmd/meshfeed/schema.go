package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/status"
	strategies "github.com/meshfeed/meshfeed/core/strategy/document"
	"github.com/meshfeed/meshfeed/internal/wording"
)

func newSchema() *cobra.Command {
	kinds := []string{"layout", "strategy"}
	return &cobra.Command{
		Use:   "schema [layout|strategy]",
		Short: "print the JSON Schema of layouts or strategy documents",
		Long: `Prints the JSON Schema (draft 2020-12) of layout documents, or of the strategy documents of "meshfeed
advise", for editors and generators. Every valid document matches it. "meshfeed check" and "meshfeed
advise" also check rules that a schema cannot express.`,
		Example: "  meshfeed schema > layout.schema.json\n  meshfeed schema strategy > strategy.schema.json",
		Args:    need(0, 1, "at most one kind of document"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := document.Schema()
			switch {
			case len(args) == 0 || args[0] == kinds[0]:
			case args[0] == kinds[1]:
				text = strategies.Schema()
			default:
				return status.Errorf(status.InvalidArgument, cmd.Name(), "there is no schema of %s documents", wording.Quote(args[0])).WithHint("%s", wording.Suggest(args[0], kinds))
			}
			_, err := io.WriteString(cmd.OutOrStdout(), text)
			return err
		},
		ValidArgs: kinds,
	}
}
