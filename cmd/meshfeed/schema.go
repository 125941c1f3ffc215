package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/core/layout/document"
	strategies "github.com/meshfeed/meshfeed/core/strategy/document"
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
				return usage(cmd, fmt.Sprintf("%q is not a kind of document", args[0]))
			}
			_, err := io.WriteString(cmd.OutOrStdout(), text)
			return err
		},
		ValidArgs: kinds,
	}
}
