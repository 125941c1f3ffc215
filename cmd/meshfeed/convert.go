package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/arrowio/convert"
	"github.com/meshfeed/meshfeed/core/status"
)

func newConvert() *cobra.Command {
	var asJSON bool
	var o convert.Options
	cmd := &cobra.Command{
		Use:   "convert FILE… FOLDER",
		Short: "write a dataset as Arrow IPC files that are fast to shuffle",
		Long: `Opens files of Arrow IPC, Parquet and NumPy, raw files, streams, globs, directories and
addresses of web servers as one dataset. Writes it into the last argument, a folder, as Arrow IPC files
without compression. Open the folder, and the records have the order of the input. Lists of one length
become fixed-size lists; dictionaries and views become plain values. A column that cannot be converted
is an error: --columns names the others.

A run that was ended continues with the same command, and does not repeat finished files. With --part 1/8
to --part 8/8, eight runs on any machines that share the folder convert an eighth of the files each. The
files are the same bytes for any number of parts. A folder that lacks files does not open, but a glob
over it does.

With --map MODULE:FUNCTION, the command of the Python package computes fields by a Python function, and
writes them beside the others: meshfeed convert --map prepare:tokenize --columns tokens text/*.parquet out.

The input must not change. The exit status is 0 if the files of the part are there, 130 after Ctrl-C, and
2 otherwise.`,
		Example: "  meshfeed convert train-*.parquet converted\n  meshfeed convert --columns tokens,label --part 3/8 some-directory converted",
		Args:    need(2, -1, "files, globs or directories, then a folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			inputs, dir := args[:len(args)-1], args[len(args)-1]
			update, finish := newProgress(cmd.ErrOrStderr(), "converting", records...)
			o.Progress = update
			report, err := convert.Run(cmd.Context(), inputs, dir, o)
			finish()
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), conversionFacts(dir, report))
			}
			return printConversion(cmd.OutOrStdout(), dir, report)
		},
	}
	datasetFlags(cmd, &o.Files, &asJSON)
	cmd.Flags().Int64Var(&o.RowsPerFile, "rows-per-file", 0, "records of each file; 0 for the row groups of about 256 MiB of input")
	cmd.Flags().Var((*partFlag)(&o), "part", "convert one of several parts of the files, such as 3/8")
	return cmd
}

// partFlag is the value of --part.
type partFlag convert.Options

// Type implements pflag.Value.
func (f *partFlag) Type() string { return "i/n" }

// String implements pflag.Value.
func (f *partFlag) String() string {
	if f.Parts == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", f.Part, f.Parts)
}

// Set implements pflag.Value.
func (f *partFlag) Set(text string) error {
	part, parts, _ := strings.Cut(text, "/")
	i, err := strconv.Atoi(part)
	n, err2 := strconv.Atoi(parts)
	if err != nil || err2 != nil || i < 1 || i > n {
		return status.New(status.InvalidArgument, "", "expected 1/8 for the first of eight parts, to 8/8 for the last")
	}
	f.Part, f.Parts = i, n
	return nil
}

func printConversion(out io.Writer, dir string, r convert.Report) error {
	p := r.Part
	text := fmt.Sprintf("%s in %s: wrote %s with %s", counted(r.Records, "record"), counted(r.Files, "file"), counted(p.Written, "file"), sized(p.Bytes))
	if p.Of > 1 {
		text = fmt.Sprintf("part %d of %d has %s in %s: wrote %s with %s", p.Number, p.Of, counted(p.Records, "record"), counted(p.Written+p.Present, "file"), counted(p.Written, "file"), sized(p.Bytes))
	}
	if p.Present > 0 {
		text += fmt.Sprintf("; %d were there", p.Present)
	}
	text += "\n"
	if n := len(r.Missing); n > 0 {
		text += fmt.Sprintf("%s is not finished: other parts have yet to write %d of its %s\n", visible(dir), n, counted(r.Files, "file"))
	} else {
		text += visible(dir) + " is finished: open it as a directory\n"
	}
	_, err := io.WriteString(out, text)
	return err
}

// conversionFacts describes the whole conversion, and under "part" what this run was for.
func conversionFacts(dir string, r convert.Report) map[string]any {
	missing, p := r.Missing, r.Part
	if missing == nil {
		missing = []string{}
	}
	return map[string]any{
		"folder": dir, "records": r.Records, "files": r.Files, "finished": len(missing) == 0, "missing": missing,
		"part": map[string]any{
			"number": p.Number, "of": p.Of, "records": p.Records, "files": p.Written + p.Present,
			"written": p.Written, "present": p.Present, "bytes": p.Bytes,
		},
	}
}
