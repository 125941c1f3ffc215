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
	Kind    string            // "go", "virtual", or the name under which an Opener is registered
	Path    string            // of the plugin, absolute; "" for the pure-Go kinds
	Devices int               // how many are asked for; 0 where the text does not say
	Options map[string]string // what else stands behind "?"; the opener knows the names

	text string
}

// String gives the text that was parsed.
func (s Spec) String() string { return s.text }

const specForms = `use "go", "virtual:N" or "xla:/absolute/path/plugin.so?devices=N"`

// parseSpec reads a specification. It checks its form, not whether it can be opened.
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
			return Spec{}, fail("%q: the number of devices is missing", text).WithHint(`say how many, such as "virtual:8"`)
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

// parsePlugin reads PATH[?key=value&…]. The path is taken as it stands: it is
// not unescaped, and ends at the first question mark.
func (s *Spec) parsePlugin(rest string) error {
	path, query, _ := strings.Cut(rest, "?")
	if !filepath.IsAbs(path) {
		return fail("%q: the plugin's path must be absolute, but is %q", s.text, path).
			WithHint("give the whole path of the shared library: plugins are never searched for or downloaded")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return fail("%q: what follows the question mark is not key=value&key=value", s.text)
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

// OptionNames lists the options of the specification in order, for an opener
// that refuses those it does not know.
func (s Spec) OptionNames() []string { return slices.Sorted(maps.Keys(s.Options)) }

func fail(format string, args ...any) *status.Error {
	return status.Errorf(status.InvalidArgument, "gomlxfeed", format, args...)
}
