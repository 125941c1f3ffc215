package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// checkFlags are the flags of the command check.
type checkFlags struct {
	format string
	json   bool
	strict bool
	wasm   string
}

var formats = []string{"text", "json", "github"}

func newCheck() *cobra.Command {
	var c checkFlags
	cmd := &cobra.Command{
		Use:   "check LAYOUT.json…",
		Short: "list the problems of layouts, for CI",
		Long: `Checks layout documents without devices and without data, and lists their problems with line and column.
"meshfeed explain CODE" explains a problem.

An argument is a file, a pattern such as 'layouts/*.json', or - for standard input.
With --format github the problems are printed as annotations for GitHub Actions.
With --wasm the documents are checked by the WebAssembly validator of the layout page, which has access to
the document and to nothing else on this machine. --wasm=FILE runs another version of the validator.

The exit status is 0 if there is no error, 1 if there is one, and 2 if a document cannot be read.`,
		Example: "  meshfeed check layout.json\n  meshfeed check --strict --format github 'layouts/*.json'\n  generate-layout | meshfeed check --json -",
		Args:    c.arguments,
		RunE:    func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },

		ValidArgsFunction: layoutFiles,
	}
	cmd.Flags().StringVar(&c.format, "format", "text", "how to print the problems: text, json or github")
	cmd.Flags().BoolVar(&c.json, "json", false, "short for --format json")
	cmd.Flags().BoolVar(&c.strict, "strict", false, "let warnings count as errors")
	cmd.Flags().StringVar(&c.wasm, "wasm", "", "check with a validator in WebAssembly: the built-in one, or a `FILE`")
	cmd.Flags().Lookup("wasm").NoOptDefVal = builtIn
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that does not exist
	return cmd
}

// arguments requires at least one document. The value of --wasm is optional, so it
// must follow an equals sign; a module as a separate argument is an error.
func (c *checkFlags) arguments(cmd *cobra.Command, args []string) error {
	if i := slices.IndexFunc(args, isModule); i >= 0 && c.wasm == builtIn {
		return usage(cmd, fmt.Sprintf("%q is a validator and not a layout; write --wasm=%s", args[i], args[i]))
	}
	return need(1, -1, "at least one layout document")(cmd, args)
}

func isModule(name string) bool { return strings.HasSuffix(name, ".wasm") }

// checked is a document with its findings, or with the error of reading it.
type checked struct {
	file string
	text []byte
	*findings
	err error
}

func (c *checkFlags) run(cmd *cobra.Command, args []string) error {
	if c.json && cmd.Flags().Changed("format") && c.format != "json" {
		return usage(cmd, fmt.Sprintf("--json and --format %s exclude each other", c.format))
	}
	if c.json {
		c.format = "json"
	}
	p := printer{cmd.OutOrStdout(), paintFor(cmd.OutOrStdout())}
	write := map[string]func([]checked) error{"text": p.text, "json": p.json, "github": p.annotate}[c.format]
	if write == nil {
		return status.Errorf(status.InvalidArgument, cmd.Name(), "there is no format %s", wording.Quote(c.format)).WithHint("%s", wording.Suggest(c.format, formats))
	}
	files, err := expand(args)
	if err != nil {
		return err
	}
	list := c.checkAll(cmd, files)
	if err := write(list); err != nil {
		return err
	}
	return c.result(cmd, list)
}

// result returns the first error of reading a document, and prints the others.
// Without such an error it returns errProblem if some document has an error.
func (c *checkFlags) result(cmd *cobra.Command, list []checked) error {
	var unread error
	found := false
	for _, d := range list {
		switch {
		case d.err != nil && unread == nil:
			unread = d.err
		case d.err != nil:
			fmt.Fprintln(cmd.ErrOrStderr(), "meshfeed:", describe(d.err))
		default:
			found = found || d.count(problem.Error) > 0 || c.strict && d.count(problem.Warning) > 0
		}
	}
	if unread == nil && found {
		return errProblem
	}
	return unread
}

func (c *checkFlags) checkAll(cmd *cobra.Command, files []string) []checked {
	v := validator{module: c.wasm}
	defer v.close()
	list := make([]checked, len(files))
	for i, file := range files {
		d := &list[i]
		d.file = file
		if d.text, d.err = readText(cmd, file, layoutKind); d.err == nil {
			d.findings, d.err = v.find(cmd, file, d.text)
		}
	}
	return list
}

// expand returns the files that the patterns match. An argument that names a
// file is not a pattern, even if it contains special characters.
func expand(args []string) (files []string, err error) {
	for _, arg := range args {
		if _, err := os.Stat(arg); err == nil || !strings.ContainsAny(arg, "*?[") {
			files = append(files, arg)
			continue
		}
		found, err := filepath.Glob(arg)
		if err != nil {
			return nil, status.Errorf(status.InvalidArgument, "check", "%q is not a pattern: %w", arg, err).WithHint("write \\ before a bracket that is part of a name")
		}
		if len(found) == 0 {
			return nil, status.Errorf(status.NotFound, "check", "no file matches %q", arg).WithHint("name files, or leave the pattern to the shell")
		}
		files = append(files, found...)
	}
	return files, nil
}

// printer writes checked documents in one of the formats.
type printer struct {
	out   io.Writer
	paint paint
}

// json prints the problems in the JSON form of the layout report.
func (p printer) json(list []checked) error {
	type file struct {
		File     string          `json:"file"`
		Problems json.RawMessage `json:"problems,omitempty"`
		*failure
	}
	all := struct {
		*failure        // error of the first document that cannot be read
		Files    []file `json:"files"`
	}{Files: make([]file, len(list))}
	files := all.Files
	for i, d := range list {
		files[i].File = d.file
		if d.err != nil {
			files[i].failure = failureOf(d.err)
			if all.failure == nil {
				all.failure = files[i].failure
			}
		} else {
			files[i].Problems = d.raw.Problems
		}
	}
	return writeJSON(p.out, all)
}

func (p printer) text(list []checked) (err error) {
	errors, warnings, read := 0, 0, 0
	for _, d := range list {
		if d.err != nil {
			continue // result prints it to standard error
		}
		file := visible(d.file)
		for _, f := range d.problems {
			line, column := locate(d.text, f.Path)
			fmt.Fprintf(p.out, "%s:%d:%d: %s at %s (%s)\n  %s\n", file, line, column, p.paint.severity(f.Severity), visible(orRoot(f.Path)), f.Code, visible(f.Message))
			if f.Hint != "" {
				fmt.Fprintf(p.out, "  → %s\n", visible(f.Hint))
			}
		}
		n, w := d.count(problem.Error), d.count(problem.Warning)
		_, err = fmt.Fprintf(p.out, "%s: %s, %s\n", file, counted(n, "error"), counted(w, "warning"))
		errors, warnings, read = errors+n, warnings+w, read+1
	}
	if len(list) > 1 {
		_, err = fmt.Fprintf(p.out, "%s of %d: %s, %s\n", counted(read, "layout"), len(list), counted(errors, "error"), counted(warnings, "warning"))
	}
	return err
}

func orRoot(pointer string) string {
	if pointer == "" {
		return "the document"
	}
	return pointer
}

// annotate prints the problems as GitHub Actions workflow commands.
func (p printer) annotate(list []checked) error {
	for _, d := range list {
		if d.err != nil {
			at := position{file: d.file}
			at.line, at.column = syntaxAt(d)
			if err := annotation(p.out, "error", at, "the document cannot be read", describe(d.err)); err != nil {
				return err
			}
			continue
		}
		for _, f := range d.problems {
			command := string(f.Severity)
			if f.Severity == problem.Info {
				command = "notice"
			}
			text := f.Message
			if f.Hint != "" {
				text += "\n" + f.Hint
			}
			at := position{file: d.file}
			at.line, at.column = locate(d.text, f.Path)
			if err := annotation(p.out, command, at, fmt.Sprintf("%s at %s", f.Code, visible(orRoot(f.Path))), text); err != nil {
				return err
			}
		}
	}
	return nil
}

// syntaxPosition matches the position in the message of a JSON syntax error.
var syntaxPosition = regexp.MustCompile(`\(line (\d+), byte (\d+)\)`)

// syntaxAt returns the line and column of a syntax error, or zeros if the error
// has no position.
func syntaxAt(d checked) (line, column int) {
	found := syntaxPosition.FindStringSubmatch(d.err.Error())
	if found == nil {
		return 0, 0
	}
	line, _ = strconv.Atoi(found[1]) // digits only
	column, _ = strconv.Atoi(found[2])
	lines := bytes.SplitN(d.text, []byte{'\n'}, line+1)
	if line > len(lines) || column > len(lines[line-1])+1 {
		return 0, 0
	}
	return line, 1 + utf8.RuneCount(lines[line-1][:column-1])
}

// position is a line and column of a file, or the whole file if line is 0.
type position struct {
	file         string
	line, column int
}

// Escapes of GitHub Actions workflow commands, in messages and in properties.
var (
	inMessage  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	inProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func annotation(out io.Writer, command string, at position, title, text string) error {
	where := ""
	if at.file != "-" {
		where = "file=" + inProperty.Replace(at.file) + ","
		if at.line > 0 {
			where += fmt.Sprintf("line=%d,col=%d,", at.line, at.column)
		}
	}
	_, err := fmt.Fprintf(out, "::%s %stitle=%s::%s\n", command, visible(where), visible(inProperty.Replace(title)), inMessage.Replace(text))
	return err
}
