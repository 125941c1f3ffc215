package main

import (
	"io"

	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/spf13/cobra"
)

func newSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "print the JSON Schema of layout documents",
		Long: `Prints the JSON Schema (draft 2020-12) of layout documents, for editors and generators. Every valid
layout document matches it. "meshfeed check" also checks rules that a schema cannot express.`,
		Example: "  meshfeed schema > layout.schema.json",
		Args:    need(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), document.Schema())
			return err
		},
	}
}
