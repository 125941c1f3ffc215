package layout

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

func itoa(n int) string { return strconv.Itoa(n) }

// spanText writes a range as a slice, such as 0:64.
func spanText(start, stop int) string { return itoa(start) + ":" + itoa(stop) }

// thousands writes a number with commas.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// bytesText writes a size with three digits at least: 960 B, 8.25 KiB, 48.8 KiB.
func bytesText(n int64) string {
	switch {
	case n < 0 || n > MaxInteger:
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

// count writes a number with its noun.
func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + many
}

// ratio writes a/b with three digits.
func ratio(a, b int64) string { return strconv.FormatFloat(float64(a)/float64(b), 'g', 3, 64) }

// times says how often a is b where it is more than that: "2.5 times".
func times(a, b int64) string {
	if text := ratio(a, b); text != "1" {
		return text + " times"
	}
	return "just over once"
}

// plain makes a name safe to print: what cannot be printed is escaped.
func plain(name string) string {
	for _, r := range name {
		if !unicode.IsPrint(r) {
			q := strconv.Quote(name)
			return cut(q[1:len(q)-1], 60)
		}
	}
	return cut(name, 60)
}
