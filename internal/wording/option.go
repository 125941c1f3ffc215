package wording

import (
	"regexp"
	"strings"
)

var (
	goOption = regexp.MustCompile(`\b(?:loader\.)?Options\.([A-Z]\w*)`)
	hump     = regexp.MustCompile(`([a-z0-9])([A-Z])`)
)

// Options replaces Go's names of options in an error, for callers of another language.
// With the prefix "--" and the separator "-", Options.MaxHostBytes becomes
// --max-host-bytes; in C and Python it is max_host_bytes.
func Options(text, prefix, separator string) string {
	return goOption.ReplaceAllStringFunc(text, func(name string) string {
		_, name, _ = strings.Cut(name, "Options.")
		return prefix + strings.ToLower(hump.ReplaceAllString(name, "${1}"+separator+"${2}"))
	})
}
