package credentials

import "strings"

// section has the settings of a section by their names in lower case.
type section map[string]string

// parseINI parses a file of settings in the form of AWS. It returns the sections by name, or the number of the first line
// that is neither "[section]" nor "name = value" (or "name: value"), and else 0. A line that is indented more than the setting before it
// belongs to that setting and is left out. Text after " #" or " ;" is a comment.
func parseINI(text string) (sections map[string]section, wrong int) {
	sections = map[string]section{}
	var now section
	indent := -1 // of the last setting
	for i, line := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		bare := uncommented(line)
		depth := len(line) - len(strings.TrimLeft(line, " \t"))
		if bare == "" || indent >= 0 && depth > indent {
			continue
		}
		if inner, ok := strings.CutPrefix(bare, "["); ok {
			name, closed := strings.CutSuffix(inner, "]")
			if !closed {
				return nil, i + 1
			}
			if name = sectionName(name); sections[name] == nil {
				sections[name] = section{}
			}
			now, indent = sections[name], -1
			continue
		}
		end := strings.IndexAny(bare, "=:")
		if end <= 0 || now == nil {
			return nil, i + 1
		}
		name := strings.ToLower(strings.TrimSpace(bare[:end]))
		now[name], indent = strings.TrimSpace(bare[end+1:]), depth
	}
	return sections, 0
}

// uncommented returns a line without its comment and the space around it.
func uncommented(line string) string {
	line = " " + strings.ReplaceAll(line, "\t", " ")
	for _, mark := range []string{" #", " ;"} {
		line, _, _ = strings.Cut(line, mark)
	}
	return strings.TrimSpace(line)
}

// sectionName returns a name with one space after its kind, and without quotes, as in `sso-session "my team"`.
func sectionName(name string) string {
	kind, rest, _ := strings.Cut(strings.TrimSpace(name), " ")
	return strings.TrimSpace(kind + " " + strings.Trim(rest, ` "'`))
}
