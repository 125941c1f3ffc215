package wording

import (
	"strings"
	"unicode/utf8"
)

// WriteWrapped writes a text in lines of at most width columns. All lines but the first
// begin with two spaces.
func WriteWrapped(b *strings.Builder, text string, width int) {
	column := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			b.WriteString("\n  ")
			column = 2
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	b.WriteByte('\n')
}
