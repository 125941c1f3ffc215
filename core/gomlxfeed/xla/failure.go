//go:build cgo && (linux || darwin)

package xla

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
)

// refusal is how go-xla words an error that the plugin returned.
var refusal = regexp.MustCompile(`PJRT error \(code=(\d+)\): ([^\n]*)`)

// codes are PJRT's codes as ours. The others are Unsupported: the plugin cannot
// do here what was asked of it.
var codes = map[int]status.Code{
	1: status.Cancelled,
	3: status.InvalidArgument,
	4: status.Timeout,
	8: status.ResourceExhausted,
}

// failed gives an error of go-xla our form: the plugin could not do what doing
// says, as in "create a client".
func (p *plugin) failed(doing string, err error) *status.Error {
	said := refusal.FindStringSubmatch(err.Error())
	if said == nil {
		return status.Errorf(status.Internal, "gomlxfeed", "the plugin %s could not %s: %s", p.path, doing, cut(innermost(err).Error()))
	}
	number, _ := strconv.Atoi(said[1]) // the expression admits digits only
	code, special := codes[number]
	if !special {
		code = status.Unsupported
	}
	e := status.Errorf(code, "gomlxfeed", "the plugin %s could not %s: %s (PJRT code %d)", p.path, doing, cut(strings.TrimRight(said[2], ". ")), number)
	return e.With("pjrt_code", number)
}

func innermost(err error) error {
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return err
}

// cut gives the first line of a foreign text, and no more than a message holds.
func cut(text string) string {
	const most = 300
	text, _, _ = strings.Cut(text, "\n")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}
