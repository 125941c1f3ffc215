package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/plan/memory"
	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// explainers have the explanations of codes, by the kind of document that they concern.
var explainers = []struct {
	kind    string
	codes   []problem.Code
	explain func(problem.Code) string
}{
	{"layout", layout.Codes(), layout.Explain},
	{"memory", memory.Codes(), memory.Explain},
	{"strategy", strategy.Codes(), strategy.Explain},
}

// explanation is the meaning of a code in one or more kinds of documents, and the JSON of
// the verb.
type explanation struct {
	Code  string   `json:"code"`
	Kinds []string `json:"reports"`
	Text  string   `json:"text"`
}

// explained lists the meanings of all codes. Kinds of documents that share a meaning are
// in one explanation.
func explained() (list []explanation) {
	for _, e := range explainers {
		for _, code := range e.codes {
			x := explanation{string(code), []string{e.kind}, e.explain(code)}
			same := slices.IndexFunc(list, func(o explanation) bool { return o.Code == x.Code && o.Text == x.Text })
			if same >= 0 {
				list[same].Kinds = append(list[same].Kinds, e.kind)
				continue
			}
			list = append(list, x)
		}
	}
	return list
}

func newExplain() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain [CODE]",
		Short: "explain a problem or an assumption, and the remedy",
		Long: `Explains a code of the JSON reports of check, plan, memory and advise, or of the page: of a problem, of a
rule that excludes meshes, or of an assumption. Without a code it lists all.`,
		Example: "  meshfeed explain indivisible\n  meshfeed explain tensor-node",
		Args:    need(0, 1, "at most one code"),
		RunE: func(cmd *cobra.Command, args []string) error {
			list := explained()
			found := slices.DeleteFunc(slices.Clone(list), func(e explanation) bool { return len(args) > 0 && e.Code != args[0] })
			switch {
			case len(found) == 0:
				return unexplained(args[0], list)
			case asJSON:
				return writeJSON(cmd.OutOrStdout(), found)
			case len(args) == 0:
				return listCodes(cmd, list)
			}
			return writeExplanations(cmd, found)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) (codes []string, _ cobra.ShellCompDirective) {
			for _, e := range explained() {
				codes = append(codes, e.Code+"\t"+e.kinds()+": "+e.firstSentence())
			}
			return codes, cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

func unexplained(code string, list []explanation) error {
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Code
	}
	return status.Errorf(status.NotFound, "explain", "%s is not a code of a report", wording.Quote(code)).
		WithHint("%s", suggested(code, names, "meshfeed explain"))
}

func (e explanation) kinds() string { return strings.Join(e.Kinds, ", ") }

func writeExplanations(cmd *cobra.Command, list []explanation) error {
	var parts []string
	for _, e := range list {
		parts = append(parts, fmt.Sprintf("%s (%s)\n\n%s\n", e.Code, e.kinds(), folded(e.Text, 80)))
	}
	_, err := fmt.Fprint(cmd.OutOrStdout(), strings.Join(parts, "\n"))
	return err
}

// listCodes prints a table of codes.
func listCodes(cmd *cobra.Command, list []explanation) error {
	rows := [][]string{{"code", "report of", "what it means"}}
	for _, e := range list {
		rows = append(rows, []string{e.Code, e.kinds(), e.firstSentence()})
	}
	return table(cmd.OutOrStdout(), rows)
}

func (e explanation) firstSentence() string {
	first, _, _ := strings.Cut(e.Text, ". ")
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
