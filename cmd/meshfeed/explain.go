package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/core/status"
)

func newExplain() *cobra.Command {
	return &cobra.Command{
		Use:     "explain [CODE]",
		Short:   "explain a problem of a layout and its remedy",
		Long:    `Explains the code of a problem that check, plan or the page shows. Without a code it lists all.`,
		Example: "  meshfeed explain indivisible",
		Args:    need(0, 1, "at most one code"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listCodes(cmd)
			}
			text := layout.Explain(problem.Code(args[0]))
			if text == "" {
				return status.Errorf(status.NotFound, "explain", "%q is not the code of a problem", args[0]).
					WithHint("%s", suggested(args[0], layout.Codes(), "meshfeed explain"))
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n\n%s\n", args[0], folded(text, 80))
			return err
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) (codes []string, _ cobra.ShellCompDirective) {
			for _, c := range layout.Codes() {
				codes = append(codes, string(c)+"\t"+firstSentence(c))
			}
			return codes, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// listCodes prints a table of all codes.
func listCodes(cmd *cobra.Command) error {
	rows := [][]string{{"code", "what it means"}}
	for _, c := range layout.Codes() {
		rows = append(rows, []string{string(c), firstSentence(c)})
	}
	return table(cmd.OutOrStdout(), rows)
}

func firstSentence(c problem.Code) string {
	first, _, _ := strings.Cut(layout.Explain(c), ". ")
	return strings.TrimSuffix(first, ".")
}

// folded wraps a text at a number of columns.
func folded(text string, columns int) string {
	var out strings.Builder
	line := 0
	for _, word := range strings.Fields(text) {
		switch {
		case line > 0 && line+1+len(word) > columns:
			out.WriteByte('\n')
			line = 0
		case line > 0:
			out.WriteByte(' ')
			line++
		}
		out.WriteString(word)
		line += len(word)
	}
	return out.String()
}
