package gomlxfeed

import (
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/status"
)

// Spec is a parsed specification of devices, such as "xla:/opt/plugin.so?devices=8".
type Spec struct {
	Kind    string            // "go", "virtual", or the name of a registered Opener
	Path    string            // path of the plugin, absolute; "" for the pure-Go kinds
	Devices int               // requested number; 0 if the text has none
	Options map[string]string // further options after "?"; their names depend on the opener

	text string
}

// String returns the text that was parsed.
func (s Spec) String() string { return s.text }

const specForms = `use "go", "virtual:N" or "xla:/absolute/path/plugin.so?devices=N"`

// parseSpec parses a specification. It checks the form only and opens nothing.
func parseSpec(text string) (Spec, error) {
	kind, rest, more := strings.Cut(text, ":")
	s := Spec{Kind: kind, text: text}
	var err error
	switch kind {
	case "go":
		if more {
			return Spec{}, fail("%q: the pure-Go backend has one device and no options", text).WithHint(`use "go", or "virtual:N" for N devices`)
		}
		s.Devices = 1
	case "virtual":
		if rest == "" {
			return Spec{}, fail("%q: the number of devices is missing", text).WithHint(`add it, such as "virtual:8"`)
		}
		s.Devices, err = parseCount(text, rest)
	default:
		if !more {
			return Spec{}, fail("%q does not name devices", text).WithHint(specForms)
		}
		err = s.parsePlugin(rest)
	}
	return s, err
}

// parsePlugin parses PATH[?key=value&…]. The path ends at the first question mark
// and is not unescaped.
func (s *Spec) parsePlugin(rest string) error {
	path, query, _ := strings.Cut(rest, "?")
	if !filepath.IsAbs(path) {
		return fail("%q: the plugin's path must be absolute, but is %q", s.text, path).
			WithHint("give the absolute path of the shared library: plugins are not searched for or downloaded")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return fail("%q: the text after the question mark is not key=value&key=value", s.text)
	}
	s.Path, s.Options = path, map[string]string{}
	for key, given := range values {
		if len(given) != 1 {
			return fail("%q: option %q is given %d times", s.text, key, len(given))
		}
		s.Options[key] = given[0]
	}
	if count, asked := s.Options["devices"]; asked {
		delete(s.Options, "devices")
		s.Devices, err = parseCount(s.text, count)
	}
	return err
}

func parseCount(text, digits string) (int, error) {
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || n > mesh.MaxDevices {
		return 0, fail("%q: the number of devices must be 1 to %d, but is %q", text, mesh.MaxDevices, digits)
	}
	return n, nil
}

// OptionNames returns the names of the options, sorted, so that an opener can
// reject unknown ones.
func (s Spec) OptionNames() []string { return slices.Sorted(maps.Keys(s.Options)) }

func fail(format string, args ...any) *status.Error {
	return status.Errorf(status.InvalidArgument, "gomlxfeed", format, args...)
}
