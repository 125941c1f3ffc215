// Package wording formats names, shapes, sizes and numbers for error messages
// and drawings of layouts. It cuts long names, because a name may come from an
// untrusted file.
package wording

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxName is the largest number of bytes of a name that a message shows.
const maxName = 60

// Quote writes a name in quotes. It cuts a long name.
func Quote(name string) string { return strconv.Quote(Cut(name, maxName)) }

// QuotedList writes names in quotes, separated by commas, without cutting them.
func QuotedList(names []string) string { return `"` + strings.Join(names, `", "`) + `"` }

// Plain writes a name without quotes. It escapes characters that cannot be
// printed, and cuts a long name.
func Plain(name string) string {
	for _, r := range name {
		if !strconv.IsPrint(r) {
			q := strconv.Quote(name)
			return Cut(q[1:len(q)-1], maxName)
		}
	}
	return Cut(name, maxName)
}

// Cut shortens a text to at most limit bytes, between two characters, and appends an
// ellipsis.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}

// FirstLine returns the first line of a message that other software wrote, without
// spaces around it. It cuts a long line.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return Cut(strings.TrimSpace(line), 300)
}

// Shape writes a shape as Python does: (30, 128), (30,) or ().
func Shape(shape []int) string {
	s := strings.ReplaceAll(strings.Trim(fmt.Sprint(shape), "[]"), " ", ", ")
	if len(shape) == 1 {
		s += ","
	}
	return "(" + s + ")"
}

// Span writes a range as a slice, such as 0:64.
func Span(start, stop int) string { return strconv.Itoa(start) + ":" + strconv.Itoa(stop) }

// Thousands writes a number with commas.
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Count writes a number with its noun: "1 batch", "2,000 batches".
func Count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Thousands(n) + " " + many
}

// Bytes writes a size with up to three significant digits: 960 B, 8.25 KiB,
// 48.8 KiB. A size outside 0 to 2^53 is unknown.
func Bytes(n int64) string {
	switch {
	case n < 0 || n > 1<<53:
		return "unknown"
	case n < 1024:
		return fmt.Sprintf("%d B", n)
	}
	f, unit := float64(n)/1024, 0
	for f >= 999.5 && unit < 5 {
		f /= 1024
		unit++
	}
	digits := 2
	if f >= 100 {
		digits = 0
	} else if f >= 10 {
		digits = 1
	}
	s := strconv.FormatFloat(f, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s + " " + []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}[unit]
}

// Seconds writes a time in nanoseconds with three significant digits: 3.4 µs, 12.6 s.
func Seconds(ns int64) string {
	unit, f := " s", float64(ns)/1e9
	switch {
	case ns < 1_000_000:
		unit, f = " µs", float64(ns)/1e3
	case ns < 1_000_000_000:
		unit, f = " ms", float64(ns)/1e6
	}
	return strconv.FormatFloat(f, 'g', 3, 64) + unit
}

// Ratio writes a/b with three significant digits.
func Ratio(a, b int64) string { return strconv.FormatFloat(float64(a)/float64(b), 'g', 3, 64) }

// Times writes the ratio of a to b, such as "2.5 times". The number a must be larger
// than b.
func Times(a, b int64) string {
	if text := Ratio(a, b); text != "1" {
		return text + " times"
	}
	return "just over once"
}

// Suggest returns the hint of the error about an unknown name: the known name that it
// probably means, and the known names unless they are many.
func Suggest[T ~string](name string, known []T) string {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	near, all := Nearest(name, names), QuotedList(names)
	switch {
	case near == "":
		return "use one of " + all
	case len(names) > 10:
		return "did you mean " + strconv.Quote(near) + "?"
	}
	return "did you mean " + strconv.Quote(near) + "? The names are " + all
}

// Nearest returns the known name that a misspelled name probably means, or "". It
// allows an edit distance of a third of the name's bytes: an inserted, removed or
// replaced byte counts 1. Case does not count.
func Nearest(name string, known []string) string {
	if len(name) > maxName {
		return ""
	}
	name, found, least := strings.ToLower(name), "", len(name)/3+1
	for _, k := range known {
		if d := distance(name, strings.ToLower(k)); d < least {
			found, least = k, d
		}
	}
	return found
}

// distance returns the edit distance of two texts (Levenshtein 1966).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(row[j]+1, row[j+1]+1, replaced)
		}
	}
	return row[len(b)]
}
