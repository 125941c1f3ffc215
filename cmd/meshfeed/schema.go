package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	diagnoses "github.com/meshfeed/meshfeed/core/diagnosis/document"
	layouts "github.com/meshfeed/meshfeed/core/layout/document"
	diagrams "github.com/meshfeed/meshfeed/core/plan/diagram/document"
	memories "github.com/meshfeed/meshfeed/core/plan/memory/document"
	strategies "github.com/meshfeed/meshfeed/core/plan/strategy/document"
	"github.com/meshfeed/meshfeed/core/status"
	views "github.com/meshfeed/meshfeed/core/view/document"
	"github.com/meshfeed/meshfeed/internal/wording"
)

func newSchema() *cobra.Command {
	kinds := []string{"layout", "strategy", "report", "memory", "diagram", "measurements", "diagnosis", "view"}
	schemas := []func() string{layouts.Schema, strategies.Schema, strategies.ReportSchema, memories.Schema, diagrams.Schema, diagnoses.Schema, diagnoses.ReportSchema, views.Schema}
	return &cobra.Command{
		Use:   "schema [layout|strategy|report|memory|diagram|measurements|diagnosis|view]",
		Short: "print the JSON Schema of a kind of documents",
		Long: `Prints the JSON Schema (draft 2020-12) of layout documents, of the documents that "meshfeed advise",
"meshfeed memory" and "meshfeed draw" read, of the report that "meshfeed advise --json" prints, of the
measurements of a loop, of their diagnosis, which loader.report() returns, or of the views of
mf_dataset_view in C. Every valid document matches it. The commands also check rules that a schema cannot
express.`,
		Example: "  meshfeed schema > layout.schema.json\n  meshfeed schema strategy > strategy.schema.json",
		Args:    need(0, 1, "at most one kind of document"),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind := append(args, kinds[0])[0]
			i := slices.Index(kinds, kind)
			if i < 0 {
				return status.Errorf(status.InvalidArgument, cmd.Name(), "there is no schema of %s documents", wording.Quote(kind)).WithHint("%s", wording.Suggest(kind, kinds))
			}
			var text bytes.Buffer
			if err := json.Indent(&text, []byte(schemas[i]()), "", " "); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), text.String())
			return err
		},
		ValidArgs: kinds,
	}
}
