package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/core/layout"
)

func newCheck() *cobra.Command {
	var asJSON, strict bool
	cmd := &cobra.Command{
		Use:   "check LAYOUT.json",
		Short: "say what is wrong with a layout, for CI",
		Long: `Checks a layout document without devices and without data, and lists its problems.

The exit status is 0 if there is no error, 1 if there is one, and 2 if the document cannot be read.`,
		Example: "  meshfeed check layout.json\n  generate-layout | meshfeed check --json -",
		Args:    need(1, 1, "one layout document"),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := readLayout(cmd, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				err = writeProblems(cmd.OutOrStdout(), l)
			} else {
				err = printProblems(cmd.OutOrStdout(), args[0], l)
			}
			if err == nil && (l.Err() != nil || strict && hasWarning(l)) {
				return errFound
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the problems as JSON")
	cmd.Flags().BoolVar(&strict, "strict", false, "let warnings count as errors")
	return cmd
}

// writeProblems prints the problems as they stand in the report.
func writeProblems(out io.Writer, l *layout.Layout) error {
	var report struct {
		Problems json.RawMessage `json:"problems"`
	}
	if err := json.Unmarshal(l.Report(layout.ReportOptions{}), &report); err != nil {
		return err
	}
	return writeJSON(out, report)
}

func printProblems(out io.Writer, name string, l *layout.Layout) error {
	count := map[layout.Severity]int{}
	for _, p := range l.Problems() {
		count[p.Severity]++
		fmt.Fprintf(out, "%s: %s at %s (%s)\n  %s\n", name, p.Severity, orRoot(p.Path), p.Code, p.Message)
		if p.Hint != "" {
			fmt.Fprintf(out, "  → %s\n", p.Hint)
		}
	}
	_, err := fmt.Fprintf(out, "%s: %s, %s\n", name, counted(count[layout.Error], "error"), counted(count[layout.Warning], "warning"))
	return err
}

func orRoot(pointer string) string {
	if pointer == "" {
		return "the document"
	}
	return pointer
}

func hasWarning(l *layout.Layout) bool {
	for _, p := range l.Problems() {
		if p.Severity == layout.Warning {
			return true
		}
	}
	return false
}
