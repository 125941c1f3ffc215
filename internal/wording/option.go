package wording

import "strings"

// Options replaces Go's names of options in an error, for callers of another language.
// With the prefix "--" and the separator "-", Options.MaxHostBytes becomes
// --max-host-bytes; in C and Python it is max_host_bytes.
func Options(text, prefix, separator string) string {
	before, after, found := strings.Cut(text, "Options.")
	if !found {
		return text
	}
	name := after[:len(after)-len(strings.TrimLeftFunc(after, isLetter))]
	rest := Options(after[len(name):], prefix, separator)
	if name == "" || !isUpper(rune(name[0])) || strings.TrimRightFunc(before, isLetter) != before {
		return before + "Options." + name + rest // such as DatasetOptions.Inputs
	}
	return strings.TrimSuffix(before, "loader.") + prefix + split(name, separator) + rest
}

// split writes a name of Go in lower case, with a separator between its words.
func split(name, separator string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && isUpper(r) && !isUpper(rune(name[i-1])) {
			b.WriteString(separator)
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

func isUpper(r rune) bool { return 'A' <= r && r <= 'Z' }

// isLetter reports whether a name may contain the character.
func isLetter(r rune) bool {
	return isUpper(r) || 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '_'
}
