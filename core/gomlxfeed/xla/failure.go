//go:build cgo && (linux || darwin)

package xla

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
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

// fail gives an error about the plugin, which the message calls "it": what is
// opened is named once, by whoever opens it.
func fail(code status.Code, format string, args ...any) *status.Error {
	return status.Errorf(code, "gomlxfeed", format, args...)
}

// failed gives an error of go-xla our form: the plugin could not do what doing
// says, as in "create a client".
func failed(doing string, err error) *status.Error {
	said := refusal.FindStringSubmatch(err.Error())
	if said == nil {
		return fail(status.Internal, "it could not %s: %s", doing, cut(innermost(err).Error()))
	}
	number, _ := strconv.Atoi(said[1]) // the expression admits digits only
	code, special := codes[number]
	if !special {
		code = status.Unsupported
	}
	return fail(code, "it could not %s: %s (PJRT code %d)", doing, cut(strings.TrimRight(said[2], ". ")), number).
		With("pjrt_code", number)
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

// explained adds what to do where no client can be created.
func explained(k kind, e *status.Error) error {
	switch code, _ := e.Attr("pjrt_code").(int); {
	case k == cuda && code == 9:
		return e.WithHint("look at nvidia-smi, at CUDA_VISIBLE_DEVICES and at option visible_devices")
	case e.Code == status.ResourceExhausted:
		return e.WithHint("another program may hold the device")
	}
	return e
}

// named says in an error what was to be opened.
func named(spec gomlxfeed.Spec, err error) error {
	var ours *status.Error
	if !errors.As(err, &ours) {
		return err
	}
	e := *ours
	e.Msg = fmt.Sprintf("%q was not opened: %s", spec, ours.Msg)
	return &e
}
