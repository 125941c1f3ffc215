//go:build cgo && (linux || darwin)

package xla

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// pluginError matches the text of go-xla for an error of the plugin.
var pluginError = regexp.MustCompile(`PJRT error \(code=(\d+)\): ([^\n]*)`)

// codes maps PJRT's error codes to status codes. All other codes become Unsupported.
var codes = map[int]status.Code{
	1: status.Cancelled,
	3: status.InvalidArgument,
	4: status.Timeout,
	8: status.ResourceExhausted,
}

// fail builds an error about the plugin. The message calls the plugin "it", because
// gomlxfeed puts the specification of the devices before the message.
func fail(code status.Code, format string, args ...any) *status.Error {
	return status.Errorf(code, "gomlxfeed", format, args...)
}

// failed converts an error of go-xla. doing completes the text "it could not …",
// for example "create a client".
func failed(doing string, err error) *status.Error {
	found := pluginError.FindStringSubmatch(err.Error())
	if found == nil {
		return fail(status.Internal, "it could not %s: %s", doing, wording.FirstLine(innermost(err).Error()))
	}
	number, _ := strconv.Atoi(found[1]) // digits only
	code, known := codes[number]
	if !known {
		code = status.Unsupported
	}
	return fail(code, "it could not %s: %s (PJRT code %d)", doing, wording.FirstLine(strings.TrimRight(found[2], ". ")), number).
		With("pjrt_code", number)
}

// innermost returns the last error in the chain of wrapped errors.
func innermost(err error) error {
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return err
}

// explained adds a remedy to the error of creating a client.
func explained(k kind, e *status.Error) error {
	switch code, _ := e.Attr("pjrt_code").(int); {
	case k == cuda && code == 9: // FAILED_PRECONDITION: the plugin finds no usable GPU
		return e.WithHint("check nvidia-smi, CUDA_VISIBLE_DEVICES and the option visible_devices")
	case e.Code == status.ResourceExhausted:
		return e.WithHint("another program may use the device")
	}
	return e
}
