package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/core/layout"
)

// checking holds the flags of check.
type checking struct {
	format string
	json   bool
	strict bool
	wasm   string
}

func newCheck() *cobra.Command {
	var c checking
	cmd := &cobra.Command{
		Use:   "check LAYOUT.json",
		Short: "say what is wrong with a layout, for CI",
		Long: `Checks a layout document without devices and without data, and lists its problems.

With --format github they are written as commands that GitHub Actions shows as annotations of the file.
With --wasm the validator of the layout page answers instead of this program: a WebAssembly module that
sees the document and nothing else of this machine. --wasm=FILE names another one, of another version.

The exit status is 0 if there is no error, 1 if there is one, and 2 if the document cannot be read.`,
		Example: "  meshfeed check layout.json\n  meshfeed check --strict --format github layout.json\n  generate-layout | meshfeed check --json -",
		Args:    c.arguments,
		RunE:    func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
	}
	cmd.Flags().StringVar(&c.format, "format", "text", "how to print the problems: text, json or github")
	cmd.Flags().BoolVar(&c.json, "json", false, "short for --format json")
	cmd.Flags().BoolVar(&c.strict, "strict", false, "let warnings count as errors")
	cmd.Flags().StringVar(&c.wasm, "wasm", "", "ask a validator in WebAssembly, the carried one or a `FILE`")
	cmd.Flags().Lookup("wasm").NoOptDefVal = carried
	return cmd
}

// arguments expects one document. A flag whose value may be left out takes its
// value after an equals sign only, so a separate one lands here.
func (c *checking) arguments(cmd *cobra.Command, args []string) error {
	if i := slices.IndexFunc(args, isModule); i >= 0 && c.wasm == carried {
		return usage(cmd, fmt.Sprintf("%q is a validator and not a layout; write --wasm=%s", args[i], args[i]))
	}
	return need(1, 1, "one layout document")(cmd, args)
}

func isModule(name string) bool { return strings.HasSuffix(name, ".wasm") }

func (c *checking) run(cmd *cobra.Command, path string) error {
	if c.json && cmd.Flags().Changed("format") && c.format != "json" {
		return usage(cmd, fmt.Sprintf("--json and --format %s do not go together", c.format))
	}
	if c.json {
		c.format = "json"
	}
	write := map[string]func(io.Writer, string, *findings) error{"text": printProblems, "json": writeProblems, "github": annotate}[c.format]
	if write == nil {
		return usage(cmd, fmt.Sprintf("the format is text, json or github, not %q", c.format))
	}
	f, err := c.find(cmd, path)
	if err != nil {
		if c.format == "github" {
			_ = annotation(cmd.OutOrStdout(), "error", path, "the document cannot be read", describe(err)) // the run fails in any case
		}
		return err
	}
	if err := write(cmd.OutOrStdout(), path, f); err != nil {
		return err
	}
	if f.count(layout.Error) > 0 || c.strict && f.count(layout.Warning) > 0 {
		return errFound
	}
	return nil
}

// find asks the validator that the flags name.
func (c *checking) find(cmd *cobra.Command, path string) (*findings, error) {
	if c.wasm != "" {
		return askModule(cmd, c.wasm, path)
	}
	l, err := readLayout(cmd, path)
	if err != nil {
		return nil, err
	}
	return findingsOf(l.Report(layout.ReportOptions{}))
}

// writeProblems prints the problems as they stand in the report.
func writeProblems(out io.Writer, _ string, f *findings) error { return writeJSON(out, f.raw) }

func printProblems(out io.Writer, name string, f *findings) error {
	for _, p := range f.problems {
		fmt.Fprintf(out, "%s: %s at %s (%s)\n  %s\n", name, p.Severity, orRoot(p.Path), p.Code, p.Message)
		if p.Hint != "" {
			fmt.Fprintf(out, "  → %s\n", p.Hint)
		}
	}
	_, err := fmt.Fprintf(out, "%s: %s, %s\n", name, counted(f.count(layout.Error), "error"), counted(f.count(layout.Warning), "warning"))
	return err
}

func orRoot(pointer string) string {
	if pointer == "" {
		return "the document"
	}
	return pointer
}

// annotate prints the problems as workflow commands of GitHub Actions.
func annotate(out io.Writer, name string, f *findings) error {
	for _, p := range f.problems {
		command := string(p.Severity)
		if p.Severity == layout.Info {
			command = "notice"
		}
		text := p.Message
		if p.Hint != "" {
			text += "\n" + p.Hint
		}
		if err := annotation(out, command, name, fmt.Sprintf("%s at %s", p.Code, orRoot(p.Path)), text); err != nil {
			return err
		}
	}
	return nil
}

// What a workflow command writes instead of the characters that end it, and
// those that end one of its properties.
var (
	inMessage  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	inProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func annotation(out io.Writer, command, file, title, text string) error {
	where := ""
	if file != "-" {
		where = "file=" + inProperty.Replace(file) + ","
	}
	_, err := fmt.Fprintf(out, "::%s %stitle=%s::%s\n", command, where, inProperty.Replace(title), inMessage.Replace(text))
	return err
}
