package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/meshfeed/meshfeed/core/problem"
)

// writeJSON prints v as indented JSON without HTML escapes.
func writeJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// visible escapes, as Go does, what a terminal or a CI log would act on: control
// characters, text direction marks, line ends and broken UTF-8.
func visible(text string) string {
	if strings.IndexFunc(text, invisible) < 0 && utf8.ValidString(text) {
		return text
	}
	var out strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			fmt.Fprintf(&out, `\x%02x`, text[i])
		case invisible(r):
			quoted := strconv.QuoteRuneToASCII(r)
			out.WriteString(quoted[1 : len(quoted)-1])
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

func invisible(r rune) bool { return !unicode.IsPrint(r) }

// output is where a verb prints. It keeps the first error of a write, so that a
// verb need not check each write.
type output struct {
	io.Writer
	began bool // something was written
	err   error
}

func (o *output) Write(b []byte) (int, error) {
	o.began = true
	n, err := o.Writer.Write(b)
	o.err = cmp.Or(o.err, err)
	return n, err
}

func isTerminal(out io.Writer) bool {
	if o, ok := out.(*output); ok {
		out = o.Writer
	}
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// paint reports whether text is colored.
type paint bool

// paintFor enables colors on a terminal, unless NO_COLOR is set (no-color.org).
func paintFor(out io.Writer) paint {
	return paint(isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

func (p paint) severity(s problem.Severity) string {
	if !p {
		return string(s)
	}
	color := map[problem.Severity]string{problem.Error: "31", problem.Warning: "33", problem.Info: "36"}[s]
	return "\x1b[1;" + color + "m" + string(s) + "\x1b[0m"
}

// table aligns columns. The first row is the heading.
func table(out io.Writer, rows [][]string) error {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, text := range row {
			cells[i] = visible(text)
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// counted formats a number and its noun: "1 file", "2 files".
func counted[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	plural := noun + "s"
	if stem, ok := strings.CutSuffix(noun, "ch"); ok {
		plural = stem + "ches"
	}
	return grouped(int64(n)) + " " + plural
}

// grouped formats a number with commas between thousands.
func grouped(n int64) string {
	if n < 0 {
		return "-" + grouped(-n)
	}
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

// sized formats bytes in the unit that leaves one to three digits before the point.
func sized(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n)/1024, 0
	for v >= 1024 && unit < len(units)-1 {
		v, unit = v/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", v, units[unit])
}

// shapeText formats the shape of a row: "scalar", "8 × 8".
func shapeText(shape []int) string {
	if len(shape) == 0 {
		return "scalar"
	}
	parts := make([]string, len(shape))
	for i, n := range shape {
		parts[i] = fmt.Sprint(n)
	}
	return strings.Join(parts, " × ")
}
